"""A forgery in an honest form is found by recomputing results, at the stated rate."""

from types import SimpleNamespace

import pytest

from kbench import KbenchError, features
from kbench.execution.plugins import load_registry
from kbench.execution.warm_parents import WarmParents
from kbench.records import Limits
from kbench_sharing.reading import parse_bundle
from kbench_sharing.verifying import Verifying, agreement, draw_sample, p_detect
from tests.support.bundles import SUITE, files, results_of, signed, with_results
from tests.support.made_torch import fake_torch

HONEST = [(f"cell {number}", split) for number in range(40) for split in range(5)]


@pytest.mark.parametrize(("share", "k"), [(0.1, 5), (0.25, 5), (0.1, 20)])
def test_forged_results_are_chosen_at_the_stated_rate(share, k):
    """2,000 nonces: the standard deviation of the rate is at most 1.2 %."""
    forged = set(HONEST[: round(share * len(HONEST))])
    n = 2000
    found = sum(
        not forged.isdisjoint(draw_sample(HONEST, "id", f"{nonce:016x}", k)) for nonce in range(n)
    )
    assert found / n >= p_detect(share, k) - 0.04
    # without replacement it is a little higher
    assert found / n <= p_detect(share, k) + 0.06


def test_the_choice_depends_on_the_nonce_and_the_bundle_only():
    first = draw_sample(HONEST, "id", "00", 5)
    assert first == draw_sample(HONEST[::-1], "id", "00", 5)
    assert first != draw_sample(HONEST, "id", "01", 5)
    assert first != draw_sample(HONEST, "di", "00", 5)


def test_a_forger_who_signs_again_gets_another_choice():
    bundle = files()
    values = results_of(bundle)
    values[0]["metrics"]["accuracy"] = 1.0
    forged = signed(with_results(bundle, values))
    assert parse_bundle(forged).id != parse_bundle(bundle).id


def test_all_results_are_chosen_where_there_are_few():
    assert sorted(draw_sample(HONEST[:3], "id", "00", 5)) == HONEST[:3]
    assert p_detect(0.0, 5) == 0.0
    assert p_detect(1.0, 1) == 1.0


@pytest.fixture(scope="module")
def theirs():
    bundle = parse_bundle(files())
    return next(iter(bundle.results.values()))[0]


def compared(theirs, other_cpu=False, **changes):
    details = theirs.details.model_dump()
    return agreement(theirs, {**theirs.metrics, **changes}, details, other_cpu)


def test_equal_numbers_agree_whatever_their_times(theirs):
    assert compared(theirs).verdict == "equal"
    assert compared(theirs, fit_time_s=99.0, peak_memory_mib=1.0).verdict == "equal"


def test_sums_in_another_order_are_noise_on_any_cpu(theirs):
    found = compared(theirs, log_loss=0.4 * (1 + 3e-7))
    assert found.verdict == "noise"
    assert found.detail == "log_loss 0.4000, here 0.4000"
    assert compared(theirs, log_loss=0.4 * (1 + 1e-5)).verdict == "different"


def test_the_label_of_one_row_is_noise_on_another_cpu_only(theirs):
    one_row = theirs.metrics["accuracy"] - 1 / 30
    assert compared(theirs, accuracy=one_row).verdict == "different"
    assert compared(theirs, True, accuracy=one_row).verdict == "noise"
    assert compared(theirs, True, accuracy=one_row - 1 / 30).verdict == "different"
    assert compared(theirs, True, log_loss=0.41).verdict == "different"


def test_a_gram_error_is_rounded_on_another_cpu(theirs):
    theirs = theirs.model_copy(
        update={"metrics": {**theirs.metrics, "gram_error_frobenius": 2e-10}}
    )
    assert compared(theirs, gram_error_frobenius=4e-10).verdict == "different"
    assert compared(theirs, True, gram_error_frobenius=4e-10).verdict == "noise"
    assert compared(theirs, True, gram_error_frobenius=4e-8).verdict == "different"


def test_other_rows_or_another_choice_of_the_search_differ(theirs):
    details = theirs.details.model_dump()
    others = agreement(theirs, theirs.metrics, {**details, "split_hash": "0" * 16}, True)
    assert (others.verdict, others.detail) == ("different", "the rows of the split differ")
    chosen = agreement(theirs, theirs.metrics, {**details, "chosen": {}}, False)
    assert chosen.detail == "the search chose different parameters"
    search = [{**details["search"][0], "values": [0.9, 0.1]}]
    inner = agreement(theirs, theirs.metrics, {**details, "search": search}, False)
    assert inner.detail == "a validation score 0.9500, here 0.1000"


ON_GPU = f"{SUITE}[protocol]\ndevice = 'cuda'\n"


def test_a_device_that_is_not_here_is_no_difference(monkeypatch):
    fake_torch(monkeypatch, 0)
    units, reasons = Verifying(parse_bundle(files(text=ON_GPU)), load_registry(), Limits()).units()
    assert units == []
    (reason,) = reasons
    assert reason.startswith('device = "cuda" needs a GPU, and torch finds none')


def test_each_gpu_recomputes_one_result_at_a_time(monkeypatch):
    fake_torch(monkeypatch, 2)
    bundle, jobs = parse_bundle(files(text=ON_GPU)), []

    def engine(parents, cache, n_jobs, machine, started):
        jobs.append(n_jobs)
        raise KbenchError("enough")

    monkeypatch.setattr(features, "LocalEngine", engine)
    for asked in (1, 5):
        verifying = Verifying(bundle, load_registry(), Limits(), asked)
        with pytest.raises(KbenchError, match="enough"):
            list(verifying._compute(WarmParents(), verifying._suite(bundle.results), []))
    assert jobs == [1, 2]


def test_the_label_of_one_row_is_noise_on_another_device(monkeypatch):
    bundle = parse_bundle(files())
    theirs = next(iter(bundle.results.values()))[0]
    cpu = bundle.manifest.machines[theirs.machine].cpu
    monkeypatch.setattr(features.machine, "cpu_model", lambda: cpu)
    monkeypatch.setattr(features.machine, "versions", lambda: bundle.manifest.versions)
    metrics = {**theirs.metrics, "accuracy": theirs.metrics["accuracy"] - 1 / 30}
    found = {}
    for device in ("", "NVIDIA H100 (80 GiB)"):
        details = {**theirs.details.model_dump(), "device": device}
        answer = SimpleNamespace(
            outcome=SimpleNamespace(status="ok", value={"metrics": metrics, "details": details})
        )
        unit = next(iter(bundle.results)), 0
        found[device] = Verifying(bundle, load_registry(), Limits())._compare(unit, answer).verdict
    assert list(found.values()) == ["different", "noise"]

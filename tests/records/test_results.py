"""Results as lines of the journal: written, read back, and refused where they are none."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench import Limits, Result
from kbench.records import Details
from kbench.storage.journal import Journal

FULL = Result(
    task_key="t",
    cell_key="c",
    split=3,
    status="ok",
    metrics={"accuracy": 0.9, "fit_time_s": 1e-3},
    details=Details(
        chosen={"learner.C": 2.0, "scaling": "none", "learner.layers": [1, 2]},
        search=[{"learner.C": 2.0, "accuracies": [0.5, None], "converged": True}],
        at_boundary=["learner.C"],
        notes=["few rows"],
        split_hash="0123",
        contention=["steal"],
    ),
    printed="hello",
    started_ms=1,
    ended_ms=2,
    seconds=0.5,
    limits=Limits(task_timeout_s=7.0, task_memory_mib=9.0),
    jobs=2,
    timing="exclusive",
    version="0.1.0",
    machine="m1",
    host="here",
    cpu="a CPU",
    machine_speed_s=0.01,
)
FAILED = Result("t", "c", 0, "timed_out", error="took 2 s", printed="...", seconds=2.0)


def as_text(result):
    return json.dumps(result.to_json())


@pytest.mark.parametrize("result", [FULL, FAILED, dataclasses.replace(FULL, jobs=None)])
def test_a_result_comes_back_as_it_was_written(result):
    assert Result.from_json(json.loads(as_text(result))) == result


def test_a_line_has_every_field_of_a_result_in_order(tmp_path):
    line = FULL.to_json()
    assert list(line) == [each.name for each in dataclasses.fields(Result)]
    assert line["limits"] == {"task_timeout_s": 7.0, "task_memory_mib": 9.0}
    assert line["details"]["contention"] == ["steal"]
    # the journal looks for the key there, so that it need not parse most lines
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append("result", **line)
    assert journal.path.read_text().startswith('{"kind":"result","task_key":"t",')
    assert Result.from_json(journal.results(["t"])["t"][0]) == FULL


def test_details_of_what_failed_are_left_out():
    failed = dataclasses.replace(FAILED, details=Details(notes=["lost"]))
    assert failed.to_json()["details"] == {}
    assert Result.from_json(failed.to_json()).details == Details()
    assert not failed.is_ok


@given(st.dictionaries(st.text(), st.floats()))
def test_metrics_come_back_be_they_finite_or_not(metrics):
    result = dataclasses.replace(FULL, metrics=metrics)
    back = Result.from_json(json.loads(as_text(result)))
    assert as_text(back) == as_text(result)
    assert back.metrics.keys() == metrics.keys()


def test_nan_and_infinities_are_metrics():
    metrics = {"bound": math.inf, "loss": -math.inf, "ratio": math.nan}
    back = Result.from_json(json.loads(as_text(dataclasses.replace(FULL, metrics=metrics))))
    assert (back.metrics["bound"], back.metrics["loss"]) == (math.inf, -math.inf)
    assert math.isnan(back.metrics["ratio"])


def test_what_another_version_wrote_besides_is_passed_over():
    line = FULL.to_json() | {"kind": "result", "crc": "0", "gpu": {"name": "H200"}}
    line["details"] |= {"energy_j": 3.0}
    line["limits"] |= {"disk_mib": 1.0}
    assert Result.from_json(line) == FULL


def test_what_another_version_did_not_write_has_its_default():
    line = {"task_key": "t", "cell_key": "c", "split": 0, "status": "ok"}
    assert Result.from_json(line) == Result("t", "c", 0, "ok")


@pytest.mark.parametrize("name", ["task_key", "cell_key", "split", "status"])
def test_a_line_without_what_tells_results_apart_is_refused(name):
    with pytest.raises(ValueError, match=name):
        Result.from_json({key: each for key, each in FULL.to_json().items() if key != name})


@pytest.mark.parametrize(
    "change",
    [
        {"task_key": 7},
        {"split": "first"},
        {"split": 0.5},
        {"split": None},
        {"status": "fine"},
        {"metrics": [0.9]},
        {"metrics": {"accuracy": None}},
        {"metrics": {"accuracy": "high"}},
        {"details": None},
        {"details": {"search": 3}},
        {"details": {"notes": "one text"}},
        {"details": {"chosen": ["learner.C"]}},
        {"limits": {"task_timeout_s": "soon"}},
        {"limits": None},
        {"timing": "sometimes"},
        {"jobs": "two"},
        {"seconds": [1.0]},
        {"cpu": None},
    ],
)
def test_a_line_whose_fields_are_not_of_their_type_is_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        Result.from_json(FULL.to_json() | change)


@pytest.mark.parametrize("line", [None, [], "result", 3, {}])
def test_what_is_no_line_is_refused(line):
    with pytest.raises(ValueError):
        Result.from_json(line)

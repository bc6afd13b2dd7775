"""What a run becomes in MLflow, whatever its names and values."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbench_mlflow.tracking.run import cut, escape_name, printable
from tests.support.tracking_runs import FAILED, IRIS, a_run, client_of, state


def test_importing_the_module_imports_nothing_heavy():
    code = (
        "import sys; from kbench_mlflow.tracking.store import Store;"
        "from kbench_mlflow.tracking.address import default_uri;"
        "Store('sqlite:///x.db'); default_uri();"
        "heavy = {'mlflow', 'sqlalchemy', 'pandas', 'sklearn', 'requests'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_run_is_read_back_as_it_was_given(store, uci):
    run = a_run()
    run_id = store.log(uci, run)
    (row,) = store.read("uci")
    assert row.run_id == run_id
    assert row.experiment_id == uci.id
    for name in ("key", "machine", "name", "status", "n_splits_done", "start_ms", "end_ms"):
        assert getattr(row, name) == getattr(run, name)
    assert row.params == run.params
    assert row.metrics == run.metrics
    assert row.tags["kbench.suite"] == "uci"
    assert row.tags["kbench.digest"] == run.digest


def test_mlflow_shows_means_at_the_number_of_splits_and_values_by_split(store, uci):
    store.log(uci, a_run())
    ((info, _, tags, _, points, data),) = state(store, uci)
    assert info == ("FINISHED", "rff + linear-svm on iris", 1_700_000_000_000, 1_700_000_005_000)
    assert points["accuracy"] == [(2, 0.75, 1_700_000_005_000)]
    assert [point[:2] for point in points["accuracy_by_split"]] == [(0, 0.5), (1, 1.0)]
    assert data == [("iris", IRIS.digest[:36])]
    assert tags["mlflow.source.name"] == "kbench"


def test_every_other_status_is_a_failed_run(store, uci):
    others = ["error", "timed_out", "out_of_memory", "crashed", "unavailable", "skipped"]
    for status in others:
        run_id = store.log(uci, replace(FAILED, key=status, status=status))
        assert client_of(store).get_run(run_id).info.status == "FAILED"
    assert {row.key: row.status for row in store.read("uci")} == {each: each for each in others}


def test_artifacts_lie_beside_the_database_whatever_the_current_folder(store, uci, tmp_path):
    run_id = store.log(uci, replace(FAILED, artifacts={"../../a/error.txt": "Tracebäck"}))
    (file,) = (tmp_path / "mlartifacts" / "uci").rglob("error.txt")
    assert file.read_text(encoding="utf-8") == "Tracebäck"
    assert file.is_relative_to(tmp_path / "mlartifacts" / "uci" / run_id / "artifacts")


def test_an_artifact_that_cannot_be_stored_costs_itself_only(store, uci, tmp_path):
    (tmp_path / "mlartifacts").write_text("not a folder")
    store.log(uci, FAILED)
    (row,) = store.read("uci")
    assert row.status == "timed_out"
    assert row.tags["kbench.artifacts"].startswith("not uploaded: error.txt")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_values_that_are_not_finite_are_never_logged(store, uci, value):
    run = a_run(metrics={"accuracy": 1.0, "x": value}, by_split={"x": {0: value, 1: 2.0}})
    store.log(uci, run)
    ((_, _, _, metrics, points, _),) = state(store, uci)
    assert metrics == {"accuracy": 1.0, "x_by_split": 2.0}
    assert [point[:2] for point in points["x_by_split"]] == [(1, 2.0)]


def test_long_values_are_cut_visibly_and_keep_their_end(store, uci):
    error = "".join(f"line {i}\n" for i in range(3000))
    store.log(uci, a_run(params={"p": "ab" * 5000}, tags={"error": error}))
    (row,) = store.read("uci")
    assert len(row.params["p"]) == 6000
    assert "characters cut" in row.params["p"]
    assert len(row.tags["kbench.error"]) == 8000
    assert "characters cut" in row.tags["kbench.error"]
    assert row.tags["kbench.error"].endswith(error[-4000:])


@pytest.mark.slow
def test_more_values_than_a_batch_holds(store, uci):
    run = a_run(
        params={f"p{i}": "" if i % 2 else str(i) for i in range(250)},
        tags={f"t{i}": "x" for i in range(130)},
        metrics={f"m{i}": float(i) for i in range(1200)},
        by_split={"accuracy": {i: float(i) for i in range(900)}},
    )
    store.log(uci, run)
    (row,) = store.read("uci")
    assert row.params == run.params
    assert row.metrics == run.metrics
    assert {f"kbench.t{i}" for i in range(130)} < row.tags.keys()
    assert len(client_of(store).get_metric_history(row.run_id, "accuracy_by_split")) == 900
    assert store.log(uci, replace(run, end_ms=run.end_ms + 1)) == row.run_id


def test_names_and_values_from_anywhere_are_accepted(store, uci):
    odd = {"a=b": "1", "a?b": "2", "../up": "\x00\ud800", "": "empty", "x" * 300: "long"}
    numbers = {name: float(i) for i, name in enumerate(odd)}
    store.log(uci, a_run(name="", params=odd, tags=odd, metrics=numbers, by_split={"ü": {0: 1.0}}))
    (row,) = store.read("uci")
    assert len(row.params) == len(odd)
    assert sorted(row.metrics.values()) == sorted(numbers.values())


@settings(max_examples=50)
@given(st.lists(st.text(max_size=300), unique=True, max_size=8))
@example(["..0", ".", "...", "a/..", "a/.b"])
@example([249 * "a" + "/b", 248 * "a" + "/.b", 300 * "a", 301 * "a"])
def test_names_become_allowed_and_stay_distinct(names):
    from mlflow.utils.validation import _validate_metric_name

    renamed = escape_name(names)
    assert list(renamed) == names
    assert len(set(renamed.values())) == len(names)
    for name in renamed.values():
        _validate_metric_name(name)
        assert name.isascii()
        assert 0 < len(name) <= 250


@settings(max_examples=50)
@given(st.text(), st.integers(min_value=100, max_value=150), st.integers(min_value=0, max_value=40))
def test_cut_text_fits_and_keeps_its_end(text, limit, repeat):
    text = text * repeat
    short = cut(text, limit)
    assert len(short) <= limit
    short.encode("utf-8")
    assert "\x00" not in short
    if len(text) > limit:
        assert short[-40:] == printable(text)[-40:]
    else:
        assert short == printable(text)


def test_the_digest_tells_content_apart_and_leaves_the_start_out():
    changes = [
        {"end_ms": 1},
        {"status": "error"},
        {"n_splits_done": 5},
        {"by_split": {}},
        {"dataset": None},
        {"dataset": replace(IRIS, n_rows=1)},
        {"artifacts": {"a": "b"}},
        {"machine": "m2"},
        {"name": "x"},
    ]
    digests = {a_run(**each).digest for each in [*changes, {}]}
    assert len(digests) == len(changes) + 1
    assert a_run(start_ms=1).digest == a_run().digest

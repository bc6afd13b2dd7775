"""Cells as MLflow runs: written once whatever happens, read back unchanged."""

import contextlib
import http.client
import http.server
import logging
import math
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbench import StoreError, tracking
from kbench.tracking import DatasetInput, Run, Store

IRIS = DatasetInput("iris", "0123456789abcdef" * 4, "sklearn.datasets.load_iris", 150, 4)


def a_run(**changes):
    given = {
        "key": "k1",
        "machine": "m1",
        "name": "rff + linear-svm on iris",
        "status": "ok",
        "start_ms": 1_700_000_000_000,
        "end_ms": 1_700_000_005_000,
        "params": {"dataset": "iris", "feature_map": "rff", "feature_map.n_components": "64"},
        "tags": {"suite": "uci", "version": "0.1.0"},
        "metrics": {"accuracy": 0.75, "fit_time_s": 0.5},
        "n_splits_done": 2,
        "by_split": {"accuracy": {0: 0.5, 1: 1.0}},
        "dataset": IRIS,
    }
    return Run(**(given | changes))


FAILED = a_run(
    status="timeout",
    end_ms=1_700_000_001_000,
    metrics={},
    n_splits_done=0,
    by_split={},
    tags={"suite": "uci", "version": "0.1.0", "error": "took 300 s"},
    artifacts={"error.txt": "Traceback ..."},
)
LONGER = a_run(
    end_ms=1_700_000_009_000,
    metrics={"accuracy": 0.8, "fit_time_s": 0.4},
    n_splits_done=3,
    by_split={"accuracy": {0: 0.5, 1: 1.0, 2: 0.9}},
)
OTHER_PARAMS = a_run(params={"dataset": "iris", "feature_map": "nystroem"})
OTHER_VALUE = a_run(
    metrics={"accuracy": 0.25, "fit_time_s": 0.5}, by_split={"accuracy": {0: 0.0, 1: 0.5}}
)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A migrated store: each new one costs seconds."""
    path = tmp_path_factory.mktemp("template") / "mlflow.db"
    tracking._create(path)
    return path


@pytest.fixture
def path(template, tmp_path):
    return Path(shutil.copy(template, tmp_path / "mlflow.db"))


@pytest.fixture
def store(path):
    return Store(f"sqlite:///{path}")


@pytest.fixture
def uci(store):
    return store.experiment("uci")


def live(store, experiment):
    store.open()
    return list(store._client.search_runs([experiment.id]))


def state(store, experiment, *, histories=True):
    """Everything a reader can see of the runs, without what differs from write to write."""
    seen = []
    for run in live(store, experiment):
        tags = {k: v for k, v in run.data.tags.items() if k not in tracking._BOOKKEEPING}
        points = {
            name: sorted(
                (m.step, m.value, m.timestamp)
                for m in store._client.get_metric_history(run.info.run_id, name)
            )
            for name in (run.data.metrics if histories else ())
        }
        data = [(each.dataset.name, each.dataset.digest) for each in run.inputs.dataset_inputs]
        info = run.info
        seen.append(
            (
                (info.status, info.run_name, info.start_time, info.end_time),
                run.data.params,
                tags,
                run.data.metrics,
                points,
                data,
            )
        )
    return seen


# -- what a run becomes --------------------------------------------------------------------


def test_importing_the_module_imports_nothing_heavy():
    code = (
        "import sys, kbench.tracking as t; t.Store('sqlite:///x.db'); t.default_uri();"
        "heavy = {'mlflow', 'sqlalchemy', 'pandas', 'sklearn', 'requests'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_run_is_read_back_as_it_was_given(store, uci):
    run = a_run()
    run_id = store.log(uci, run)
    (row,) = store.read("uci")
    assert row["run_id"] == run_id
    assert row["experiment_id"] == uci.id
    for name in ("key", "machine", "name", "status", "n_splits_done", "start_ms", "end_ms"):
        assert row[name] == getattr(run, name)
    assert row["params"] == run.params
    assert row["metrics"] == run.metrics
    assert row["tags"]["kbench.suite"] == "uci"
    assert row["tags"]["kbench.digest"] == run.digest


def test_mlflow_shows_means_at_the_number_of_splits_and_values_by_split(store, uci):
    store.log(uci, a_run())
    ((info, _, tags, _, points, data),) = state(store, uci)
    assert info == ("FINISHED", "rff + linear-svm on iris", 1_700_000_000_000, 1_700_000_005_000)
    assert points["accuracy"] == [(2, 0.75, 1_700_000_005_000)]
    assert [point[:2] for point in points["accuracy_by_split"]] == [(0, 0.5), (1, 1.0)]
    assert data == [("iris", IRIS.digest[:36])]
    assert tags["mlflow.source.name"] == "kbench"


@pytest.mark.parametrize(
    "status", ["error", "timeout", "memory", "crash", "unavailable", "skipped"]
)
def test_every_other_status_is_a_failed_run(store, uci, status):
    run_id = store.log(uci, replace(FAILED, status=status))
    assert store._client.get_run(run_id).info.status == "FAILED"
    assert store.read("uci")[0]["status"] == status


def test_artifacts_lie_beside_the_database_whatever_the_current_folder(store, uci, path):
    run_id = store.log(uci, replace(FAILED, artifacts={"../../a/error.txt": "Tracebäck"}))
    (file,) = (path.parent / "mlartifacts" / "uci").rglob("error.txt")
    assert file.read_text(encoding="utf-8") == "Tracebäck"
    assert file.is_relative_to(path.parent / "mlartifacts" / "uci" / run_id / "artifacts")


def test_an_artifact_that_cannot_be_stored_costs_itself_only(store, uci, path):
    (path.parent / "mlartifacts").write_text("not a folder")
    store.log(uci, FAILED)
    (row,) = store.read("uci")
    assert row["status"] == "timeout"
    assert row["tags"]["kbench.artifacts"].startswith("not stored: error.txt")


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
    assert len(row["params"]["p"]) == 6000
    assert "characters cut" in row["params"]["p"]
    assert len(row["tags"]["kbench.error"]) == 8000
    assert "characters cut" in row["tags"]["kbench.error"]
    assert row["tags"]["kbench.error"].endswith(error[-4000:])


def test_more_values_than_a_batch_holds(store, uci):
    run = a_run(
        params={f"p{i}": "" if i % 2 else str(i) for i in range(250)},
        tags={f"t{i}": "x" for i in range(130)},
        metrics={f"m{i}": float(i) for i in range(1200)},
        by_split={"accuracy": {i: float(i) for i in range(900)}},
    )
    store.log(uci, run)
    (row,) = store.read("uci")
    assert row["params"] == run.params
    assert row["metrics"] == run.metrics
    assert {f"kbench.t{i}" for i in range(130)} < row["tags"].keys()
    assert len(store._client.get_metric_history(row["run_id"], "accuracy_by_split")) == 900
    assert store.log(uci, replace(run, end_ms=run.end_ms + 1)) == row["run_id"]


def test_names_and_values_from_anywhere_are_accepted(store, uci):
    odd = {"a=b": "1", "a?b": "2", "../up": "\x00\ud800", "": "empty", "x" * 300: "long"}
    numbers = {name: float(i) for i, name in enumerate(odd)}
    store.log(uci, a_run(name="", params=odd, tags=odd, metrics=numbers, by_split={"ü": {0: 1.0}}))
    (row,) = store.read("uci")
    assert len(row["params"]) == len(odd)
    assert sorted(row["metrics"].values()) == sorted(numbers.values())


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=300), unique=True, max_size=8))
def test_names_become_allowed_and_stay_distinct(names):
    from mlflow.utils.validation import _validate_metric_name

    allowed = tracking._allowed(names)
    assert len(set(allowed)) == len(names)
    for name in allowed:
        _validate_metric_name(name)
        assert name.isascii()
        assert 0 < len(name) <= 250


@settings(max_examples=50)
@given(st.text(), st.integers(min_value=100, max_value=150), st.integers(min_value=0, max_value=40))
def test_cut_text_fits_and_keeps_its_end(text, limit, repeat):
    text = text * repeat
    cut = tracking._text(text, limit)
    assert len(cut) <= limit
    cut.encode("utf-8")
    assert "\x00" not in cut
    if len(text) > limit:
        assert cut[-40:] == tracking._printable(text)[-40:]
    else:
        assert cut == tracking._printable(text)


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


# -- writing again -------------------------------------------------------------------------


@pytest.mark.parametrize("anew", [False, True])
def test_writing_again_changes_nothing(store, uci, anew):
    run_id = store.log(uci, a_run())
    before = state(store, uci)
    again = Store(store.uri) if anew else store
    again.open()
    client, again._client = again._client, ReadOnly(again._client)
    assert again.log(uci, a_run()) == run_id
    again._client = client
    assert state(store, uci) == before


class ReadOnly:
    """A client that has no way to write."""

    def __init__(self, client):
        self.search_runs = client.search_runs


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (FAILED, a_run(), True),
        (a_run(), LONGER, True),
        (a_run(), replace(a_run(), end_ms=1_700_000_006_000), True),
        (a_run(), a_run(params={**a_run().params, "learner.C": "1"}), True),
        (a_run(), a_run(name="renamed", tags={"suite": "other"}), True),
        (a_run(), a_run(metrics={**a_run().metrics, "log_loss": 0.1}), True),
        (a_run(), FAILED, False),
        (LONGER, a_run(), False),
        (a_run(), OTHER_PARAMS, False),
        (a_run(), OTHER_VALUE, False),
        (a_run(), a_run(dataset=replace(IRIS, digest="f" * 64)), False),
        (a_run(), a_run(by_split={"accuracy": {0: 1.0, 1: 0.5}}), False),
    ],
)
def test_what_differs_is_mended_or_else_written_anew(store, uci, first, second, kept, anew):
    old = store.log(uci, first)
    again = Store(store.uri) if anew else store
    new = again.log(uci, second)
    assert (old == new) is kept
    (seen,) = state(again, uci)
    (info, params, tags, _, points, data) = seen
    assert info[0] == ("FINISHED" if second.status == "ok" else "FAILED")
    assert info[1] == second.name
    assert info[3] == second.end_ms
    assert params == second.params
    assert ("kbench.error" in tags) == ("error" in second.tags)
    (row,) = again.read("uci")
    assert row["metrics"] == second.metrics
    assert row["tags"]["kbench.digest"] == second.digest
    for name, values in second.by_split.items():
        assert [point[:2] for point in points[f"{name}_by_split"]] == sorted(values.items())
    assert max([p[0] for p in points.get("accuracy", [])], default=0) == second.n_splits_done
    assert data == [(second.dataset.name, second.dataset.digest[:36])]
    assert again.log(uci, second) == new


def test_the_same_cell_of_another_machine_or_experiment_is_another_run(store, uci):
    other = store.experiment("other")
    ids = {
        store.log(uci, a_run()),
        store.log(uci, a_run(machine="m2")),
        store.log(other, a_run()),
    }
    assert len(ids) == 3
    assert [row["machine"] for row in store.read("uci")] in (["m1", "m2"], ["m2", "m1"])
    assert [row["machine"] for row in store.read("other")] == ["m1"]


def test_a_run_deleted_by_hand_comes_back(store, uci):
    old = store.log(uci, a_run())
    store._client.delete_run(old)
    assert Store(store.uri).log(uci, a_run()) != old
    # ... also where this process believes that it is there and has to add something
    store.log(uci, LONGER)
    assert [row["n_splits_done"] for row in Store(store.uri).read("uci")] == [3]


class Faulty:
    """A client whose n-th write fails, before or after it took effect."""

    def __init__(self, client, nth, after):
        self._inner, self._left, self._after = client, nth, after

    def __getattr__(self, name):
        call = getattr(self._inner, name)
        if name.startswith(("search", "get")) or not callable(call):
            return call

        def once(*args, **kwargs):
            self._left -= 1
            if self._left == 0 and not self._after:
                raise ConnectionError("Connection reset by peer")
            result = call(*args, **kwargs)
            if self._left == 0:
                raise ConnectionError("Connection reset by peer")
            return result

        return once


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("first", "second"), [(None, FAILED), (FAILED, a_run()), (a_run(), LONGER)]
)
def test_a_fault_at_any_write_is_repaired(store, first, second, after, monkeypatch):
    monkeypatch.setattr(tracking, "_RETRY_S", -1.0)  # the first fault is reported
    expected = store.experiment("undisturbed")
    for run in filter(None, (first, second)):
        store.log(expected, run)
    (wanted,) = state(store, expected)
    client = store._client
    faults = 0
    for nth in range(1, 20):
        experiment = store.experiment(f"fault {nth}")
        if first is not None:
            store.log(experiment, first)
        store._client = Faulty(client, nth, after)
        failed = False
        try:
            store.log(experiment, second)
        except StoreError:
            failed = True
        store._client = client
        if failed:
            faults += 1
            store.log(experiment, second)
        (seen,) = state(store, experiment)
        # A mended run that was interrupted may be written anew, without its earlier history.
        assert (seen[0][0], *seen[0][2:], seen[1], seen[2], seen[3]) == (
            wanted[0][0],
            *wanted[0][2:],
            wanted[1],
            wanted[2],
            wanted[3],
        )
        for name, points in seen[4].items():
            assert set(points) >= {max(wanted[4][name])}
            steps = [step for step, _, _ in points]
            assert len(steps) == len(set(steps))
        assert seen[5] == wanted[5]
        if not failed and store._client is client and nth > faults + 1:
            break
    assert faults >= 3


def test_one_short_fault_is_not_even_reported(store, uci):
    store.open()
    store._client = Faulty(store._client, 1, after=True)  # the reply to the creation is lost
    store.log(uci, a_run())
    assert len(live(store, uci)) == 1


def test_two_runs_of_one_identity_are_reduced_to_one(store, uci):
    kept = store.log(uci, a_run())
    for _ in range(2):  # what a client does that repeats a request whose reply was lost
        tags = {"kbench.cell_key": "k1", "kbench.machine": "m1", "kbench.writing": "?"}
        store._client.create_run(uci.id, tags=tags)
    assert Store(store.uri).log(uci, a_run()) == kept
    assert len(live(store, uci)) == 1


def test_a_dataset_that_another_writer_adds_at_the_same_time(store, uci, monkeypatch):
    store.open()
    log_inputs, failures = store._client.log_inputs, []

    def racing(run_id, datasets):
        if len(failures) < 2:
            failures.append(run_id)
            raise RuntimeError("(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.name")
        log_inputs(run_id, datasets)

    monkeypatch.setattr(store._client, "log_inputs", racing)
    store.log(uci, a_run())
    assert len(failures) == 2
    assert state(store, uci)[0][5] == [("iris", IRIS.digest[:36])]


# -- older runs ----------------------------------------------------------------------------


def test_superseded_runs_are_not_read_until_they_are_planned_again(store, uci):
    store.log(uci, a_run(key="old"))
    store.log(uci, a_run(key="elsewhere", machine="m2"))
    store.log(uci, a_run(key="apart", name="another cell"))
    store.log(uci, a_run(key="new"))
    planned = {"rff + linear-svm on iris": ["new"]}
    assert store.supersede(uci, "m1", planned) == 1
    assert store.supersede(uci, "m1", planned) == 0
    assert {row["key"] for row in store.read("uci")} == {"new", "apart", "elsewhere"}
    assert tracking.delivered_without_mlflow(store.uri, uci.id) == {
        (row["key"], row["tags"]["kbench.digest"]) for row in store.read("uci")
    }
    back = Store(store.uri)
    back.log(uci, a_run(key="old"))
    assert back.supersede(uci, "m1", {"rff + linear-svm on iris": ["old"]}) == 1
    assert {row["key"] for row in back.read("uci")} == {"old", "apart", "elsewhere"}


def test_two_blocks_may_plan_the_same_labels(store, uci):
    for key in ("a", "b", "c"):
        store.log(uci, a_run(key=key))
    store.supersede(uci, "m1", {a_run().name: ["a", "b"]})
    assert {row["key"] for row in store.read("uci")} == {"a", "b"}


def test_only_runs_without_data_are_withdrawn(store, uci):
    store.log(uci, replace(FAILED, key="line 1", status="unavailable", dataset=None))
    store.log(uci, replace(FAILED, key="line 2", status="unavailable", dataset=None))
    store.log(uci, a_run(key="k1"))
    assert store.withdraw(uci, "m1", ["line 1", "k1", "unheard of"]) == 1
    assert {row["key"] for row in store.read("uci")} == {"line 2", "k1"}
    assert store.withdraw(uci, "m1", ["line 1"]) == 0


def test_sweep_gives_up_runs_whose_writer_is_gone(store, uci):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    owner = tracking._owner()
    ids = {}
    for name, changes in {
        "mine": {},
        "dead": {"kbench.pid": str(gone.pid)},
        "number reused": {"kbench.pid_start": "earlier"},
        "elsewhere": {"kbench.host": "another", "kbench.pid": str(gone.pid)},
    }.items():
        tags = {**owner, **changes, "kbench.cell_key": name, "kbench.machine": "m1"}
        ids[name] = store._client.create_run(uci.id, tags=tags).info.run_id
    ids["not ours"] = store._client.create_run(uci.id).info.run_id
    assert store.sweep(uci) == 2
    status = {name: store._client.get_run(run_id).info.status for name, run_id in ids.items()}
    assert status == {
        "mine": "RUNNING",
        "dead": "KILLED",
        "number reused": "KILLED",
        "elsewhere": "RUNNING",
        "not ours": "RUNNING",
    }
    assert store.read("uci") == []
    store.log(uci, a_run(key="dead"))
    assert [row["key"] for row in store.read("uci")] == ["dead"]


def test_a_process_is_told_from_a_later_one_of_its_number():
    assert tracking._process_start(os.getpid()) == tracking._process_start(os.getpid())
    assert tracking._process_start(os.getpid()) != ""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert tracking._process_start(gone.pid) == ""


# -- reading -------------------------------------------------------------------------------


def test_reading_skips_what_is_deleted_foreign_or_unfinished(store, uci):
    store.log(uci, a_run())
    store._client.delete_run(store.log(uci, a_run(key="deleted")))
    store._client.create_run(uci.id, run_name="not ours")
    store._begin(uci, a_run(key="begun"), a_run(key="begun")._content)
    assert [row["key"] for row in store.read("uci")] == ["k1"]
    assert store.read("no such experiment") == []


def test_of_two_runs_of_one_identity_the_newest_is_read(store, uci):
    store.log(uci, a_run())
    blind = Store(store.uri)
    blind.open()
    blind._indexes[uci.id] = {}  # a writer that could not know of the first run
    newer = blind.log(uci, a_run(end_ms=1_800_000_000_000, metrics={"accuracy": 0.1}))
    assert [row["run_id"] for row in store.read("uci")] == [newer]


def test_reading_goes_through_all_pages(store, uci, monkeypatch):
    monkeypatch.setattr(tracking, "_RUNS_A_PAGE", 2)
    for i in range(5):
        store.log(uci, a_run(key=f"k{i}", start_ms=i + 1))
    assert [row["key"] for row in store.read("uci")] == [f"k{i}" for i in range(5)]


def test_what_is_delivered_is_known_without_mlflow(store, uci, path):
    for i in range(3):
        store.log(uci, a_run(key=f"k{i}"))
    store.log(uci, replace(FAILED, key="failed"))
    store.log(store.experiment("other"), a_run(key="other"))
    store._client.delete_run(store.log(uci, a_run(key="deleted")))
    store._client.set_terminated(store.log(uci, a_run(key="killed")), "KILLED")
    store._begin(uci, a_run(key="begun"), a_run(key="begun")._content)
    delivered = tracking.delivered_without_mlflow(store.uri, uci.id)
    assert delivered == {(r["key"], r["tags"]["kbench.digest"]) for r in store.read("uci")}
    assert delivered == {(r.key, r.digest) for r in [a_run(key=f"k{i}") for i in range(3)]} | {
        ("failed", replace(FAILED, key="failed").digest)
    }
    store._client.delete_experiment(uci.id)
    assert tracking.delivered_without_mlflow(store.uri, uci.id) == set()


def test_what_cannot_be_told_without_mlflow(tmp_path):
    assert tracking.delivered_without_mlflow("http://127.0.0.1:5000", "1") is None
    assert tracking.delivered_without_mlflow(f"sqlite:///{tmp_path}/none.db", "1") == set()
    (tmp_path / "odd.db").write_text("not a database")
    assert tracking.delivered_without_mlflow(f"sqlite:///{tmp_path}/odd.db", "1") is None


# -- stores --------------------------------------------------------------------------------


def test_the_default_store(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert tracking.default_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    assert tracking.old_store_notice(tmp_path) is None
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    assert tracking.old_store_notice(tmp_path) is None
    (tmp_path / "mlruns" / "0" / "meta.yaml").touch()
    assert f"sqlite:///{tmp_path}/mlflow.db" in tracking.old_store_notice(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://server:5000")
    assert tracking.default_uri(tmp_path) == "http://server:5000"
    assert tracking.old_store_notice(tmp_path) is None


def test_mlflow_chooses_the_same_store(path, monkeypatch):
    import mlflow

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(path.parent)
    assert mlflow.get_tracking_uri() == tracking.default_uri()


def test_an_experiment_is_created_once_found_again_and_restored(store):
    first = store.experiment("uci")
    assert Store(store.uri).experiment("uci") == first
    run_id = store.log(first, a_run())
    store._client.delete_experiment(first.id)
    assert store.read("uci") == []
    assert store.experiment("uci") == first
    assert store.log(first, a_run()) == run_id
    assert [row["run_id"] for row in store.read("uci")] == [run_id]


def test_a_new_store_is_put_in_place_whole(template):
    folder = template.parent
    assert [each.name for each in folder.iterdir()] == ["mlflow.db"]
    with contextlib.closing(sqlite3.connect(template)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() in (("wal",), ("delete",))


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda path: path.write_text("x" * 5000), "not a database"),
        (lambda path: sql(path, "DELETE FROM alembic_version"), "schema none"),
        (lambda path: sql(path, "UPDATE alembic_version SET version_num = 'abc'"), "schema abc"),
        (lambda path: sql(path, "DROP TABLE alembic_version"), "schema none"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_in_one_line(path, damage, word):
    damage(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=word) as raised:
        Store(f"sqlite:///{path}").open()
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lacking", [(tracking.fcntl, "flock"), (os, "link"), None])
def test_file_systems_without_locks_or_links_do_as_well(template, tmp_path, monkeypatch, lacking):
    def refuse(*_):
        raise OSError("not supported")

    migrations = []

    def migrate(path, artifacts):
        migrations.append(path)
        shutil.copy(template, path)

    monkeypatch.setattr(tracking, "_migrate", migrate)
    if lacking is not None:
        monkeypatch.setattr(*lacking, refuse)
    path = tmp_path / "mlflow.db"
    path.touch()  # an empty file is no store yet
    tracking._create(path)
    assert path.read_bytes() == template.read_bytes()
    tracking._create(path)  # as if another process had been faster
    assert len(migrations) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["mlflow.db"]


def test_a_store_that_another_host_has_made_meanwhile_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "mlflow.db"

    def migrate(new, artifacts):
        new.write_text("ours")
        path.write_text("theirs")

    monkeypatch.setattr(tracking, "_migrate", migrate)
    tracking._create(path)
    assert path.read_text() == "theirs"
    assert [each.name for each in tmp_path.iterdir()] == ["mlflow.db"]


def test_what_a_killed_creation_left_behind_is_removed(template, tmp_path, monkeypatch):
    monkeypatch.setattr(tracking, "_migrate", lambda path, artifacts: shutil.copy(template, path))
    left = tmp_path / f".mlflow.db.{socket.gethostname()}.1-journal"
    left.touch()
    elsewhere = tmp_path / ".mlflow.db.another-host.1"
    elsewhere.touch()
    tracking._create(tmp_path / "mlflow.db")
    assert {each.name for each in tmp_path.iterdir()} == {"mlflow.db", elsewhere.name}


def sql(path, statement):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute(statement)


@pytest.mark.parametrize(
    ("uri", "word"),
    [
        ("gibberish://x", "gibberish"),
        ("sqlite:////proc/none/mlflow.db", "/proc/none"),
        ("postgresql://kb:secret@127.0.0.1:{port}/db", "does not answer"),
        ("http://kb:secret@127.0.0.1:{port}", "does not answer"),
        ("http://kb:secret@127.0.0.1:x", "does not answer"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_quickly_and_without_its_password(uri, word):
    started = time.monotonic()
    with pytest.raises(StoreError, match=word) as raised:
        Store(uri.format(port=a_free_port())).open()
    assert time.monotonic() - started < 5
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


def a_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_locked_database_fails_soon_and_nothing_is_doubled(store, uci, path, monkeypatch):
    monkeypatch.setattr(tracking, "_LOCK_S", 0.2)
    store.log(uci, a_run())
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(StoreError, match="locked"):
            store.log(uci, LONGER)
        assert time.monotonic() - started < 5
        assert store.log(uci, a_run())  # nothing to write
        other.execute("ROLLBACK")
    store.log(uci, LONGER)
    assert [row["n_splits_done"] for row in store.read("uci")] == [3]
    assert len(live(store, uci)) == 1


def test_a_full_disk_fails_soon_and_nothing_is_doubled(store, uci, path):
    big = a_run(key="big", params={f"p{i}": "x" * 6000 for i in range(90)})
    store.log(uci, a_run())
    log = path.with_name("mlflow.db-wal")
    written = (log if log.exists() else path).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    started = time.monotonic()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (written + 20_000, hard))
        with pytest.raises(StoreError, match=r"full|disk|I/O"):
            store.log(uci, big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert time.monotonic() - started < 5
    store.log(uci, big)
    assert {row["key"] for row in store.read("uci")} == {"k1", "big"}
    assert len(live(store, uci)) == 2


def test_a_store_that_vanishes_under_way_is_told(store, uci, path):
    store.log(uci, a_run())
    path.unlink()
    with pytest.raises(StoreError, match="removed"):
        store.log(uci, LONGER)
    assert not path.exists()


def test_nothing_is_printed_and_logging_is_left_as_it_was(path, capfd, recwarn):
    logger = logging.getLogger("mlflow")
    before = (logger.level, logging.getLogger().handlers[:], logging.getLogger().level)
    store = Store(f"sqlite:///{path}")
    experiment = store.experiment("uci")
    store.log(experiment, FAILED)
    store.log(experiment, a_run())
    with pytest.raises(StoreError), store._calls("test"):
        store._client.log_param("0" * 32, "a", "b")
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list
    assert (logger.level, logging.getLogger().handlers[:], logging.getLogger().level) == before


def test_the_file_system_of_a_path():
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("the platform does not say")
    assert tracking._file_system(Path("/proc/self/stat")) == "proc"
    assert tracking._file_system(Path("/proc")) == "proc"
    assert tracking._file_system(Path("/")) != ""


# -- new stores under fire -----------------------------------------------------------------

OPEN = "import sys; from kbench.tracking import Store; Store(sys.argv[1]).experiment('uci')"


def in_a_process(uri, code=OPEN, *more):
    return subprocess.Popen(
        [sys.executable, "-c", code, uri, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_two_processes_may_open_a_new_store_at_once(tmp_path):
    path = tmp_path / "new folder" / "mlflow.db"
    both = [in_a_process(f"sqlite:///{path}") for _ in range(2)]
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    assert [each.name for each in path.parent.iterdir()] == ["mlflow.db"]
    store = Store(f"sqlite:///{path}")
    assert store.log(store.experiment("uci"), a_run())


WRITE = """
import sys; from kbench.tracking import Run, Store
store = Store(sys.argv[1]); experiment = store.experiment("uci")
for i in range(40):
    store.log(experiment, Run(f"k{i}", sys.argv[2], "n", "ok", 1, 2, metrics={"a": i}))
"""


@pytest.mark.slow
def test_two_processes_may_write_at_once(path, store):
    uri = f"sqlite:///{path}"
    both = [in_a_process(uri, WRITE, machine) for machine in ("m1", "m2")]
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    rows = store.read("uci")
    assert sorted((row["machine"], row["metrics"]["a"]) for row in rows) == [
        (machine, i) for machine in ("m1", "m2") for i in range(40)
    ]
    assert len({row["experiment_id"] for row in rows}) == 1


@pytest.mark.slow
def test_a_kill_during_the_first_migration_leaves_the_path_usable(tmp_path):
    path = tmp_path / "mlflow.db"
    killed = 0
    for pause in (0.1, 0.6):
        process = in_a_process(f"sqlite:///{path}")
        while process.poll() is None and not list(tmp_path.glob(".mlflow.db.*")):
            time.sleep(0.01)
        time.sleep(pause)
        killed += process.poll() is None and not path.exists()
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert killed
    store = Store(f"sqlite:///{path}")
    assert store.log(store.experiment("uci"), a_run())
    assert not list(tmp_path.glob(".mlflow.db.*"))


# -- a server, and faults on the way to it -------------------------------------------------


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards requests to a server, with one fault at the n-th of them."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Forward)
        self.upstream = port
        self.uri = f"http://127.0.0.1:{self.server_address[1]}"
        self.rules()

    def rules(self, fault=None, nth=0, lasting=False):
        self.fault, self.nth, self.lasting, self.count, self.struck = fault, nth, lasting, 0, 0

    def strikes(self):
        self.count += 1
        hit = self.count >= self.nth if self.lasting else self.count == self.nth
        self.struck += hit
        return self.fault if hit else None

    def handle_error(self, *_):
        """A client that has given up is no news."""


class Forward(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.strikes()
        if fault == "away":
            self.close_connection = True
            return
        if fault in ("error 500", "not MLflow"):
            self.answer(500 if fault == "error 500" else 200, b"<p>hello</p>", "text/html")
            return
        if fault == "slow":
            time.sleep(1.5)
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=30)
        upstream.request(self.command, self.path, body, dict(self.headers))
        reply = upstream.getresponse()
        content = reply.read()
        upstream.close()
        if fault == "reply lost":
            self.close_connection = True
            return
        self.answer(reply.status, content, reply.headers.get("Content-Type", ""))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def answer(self, status, content, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def server(template, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(template, folder / "mlflow.db")
    port = a_free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as probe:
                    probe.request("GET", "/health")
                    if probe.getresponse().status == 200:
                        break
            except OSError:
                pass
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def proxy(server, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Proxy(server) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_server_holds_what_a_local_store_holds(proxy, store, capfd):
    remote = Store(proxy.uri)
    states = []
    for each in (store, remote):
        experiment = each.experiment("same")
        for run in (FAILED, a_run(), a_run(), LONGER, a_run(key="k2", name="other")):
            each.log(experiment, run)
        assert {row["key"] for row in each.read("same")} == {"k1", "k2"}
        assert each.supersede(experiment, "m1", {"other": ["k3"]}) == 1
        assert each.sweep(experiment) == 0
        states.append(sorted(state(each, experiment), key=str))
    assert states[0] == states[1]
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["away", "error 500", "reply lost", "slow"])
def test_a_fault_on_the_way_to_the_server_is_repaired(proxy, fault, capfd):
    store = Store(proxy.uri)
    wanted = store.experiment(f"undisturbed {fault}")
    for run in (FAILED, a_run()):
        store.log(wanted, run)
    positions = {"reply lost": range(1, 9)}.get(fault, (2, 4, 5))
    struck = 0
    for nth in positions:
        experiment = store.experiment(f"{fault} {nth}")
        for run in (FAILED, a_run()):
            store._indexes.clear()
            proxy.rules(fault, nth)
            with contextlib.suppress(StoreError):
                store.log(experiment, run)
            struck += proxy.struck
            proxy.rules()
            store.log(experiment, run)
        assert state(store, experiment, histories=False) == state(store, wanted, histories=False)
    assert struck >= len(positions)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_server_that_stays_away_costs_seconds_and_is_filled_later(proxy):
    store = Store(proxy.uri)
    experiment = store.experiment("away")
    store.log(experiment, a_run(key="first"))
    for fault, seconds in [("away", 4), ("error 500", 4), ("slow", 8), ("not MLflow", 4)]:
        proxy.rules(fault, nth=1, lasting=True)
        started = time.monotonic()
        with pytest.raises(StoreError, match=r"127\.0\.0\.1") as raised:
            store.log(experiment, a_run(key=fault))
        assert time.monotonic() - started < seconds
        assert "\n" not in str(raised.value)
        with pytest.raises(StoreError):
            Store(proxy.uri).open()
    proxy.rules()
    keys = ["first", "away", "error 500", "slow", "not MLflow"]
    for _ in range(2):
        for key in keys:
            store.log(experiment, a_run(key=key))
    assert sorted(row["key"] for row in store.read("away")) == sorted(keys)
    assert len(live(store, experiment)) == 5


@pytest.mark.slow
def test_a_client_that_repeats_requests_leaves_one_run(proxy, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")  # as a user may have set it
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    store = Store(proxy.uri)
    experiment = store.experiment("repeated")
    store._index(experiment)
    proxy.rules("reply lost", nth=1)
    kept = store.log(experiment, a_run())
    proxy.rules()
    assert len(live(store, experiment)) == 2
    assert Store(proxy.uri).log(experiment, a_run()) == kept
    assert len(live(store, experiment)) == 1


@pytest.mark.slow
def test_writers_that_bring_the_same_new_dataset_at_once(proxy):
    stores = [Store(proxy.uri) for _ in range(4)]
    for nth in range(5):
        experiment = stores[0].experiment(f"race {nth}")
        failures = []

        def write(store, key, experiment=experiment, failures=failures):
            try:
                store.log(experiment, a_run(key=key))
            except StoreError as error:
                failures.append(error)

        threads = [
            threading.Thread(target=write, args=(each, f"k{i}")) for i, each in enumerate(stores)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert [each[5] for each in state(stores[0], experiment)] == [
            [("iris", IRIS.digest[:36])]
        ] * 4


# -- another database ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgresql():
    """Address of an empty database of a PostgreSQL server of our own."""
    pytest.importorskip("psycopg", reason="SQLAlchemy reaches PostgreSQL through psycopg 3")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [shutil.which("initdb")]
    if found[-1] is None:
        pytest.skip("PostgreSQL is not installed")
    programs = Path(found[-1]).parent
    user = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = "postgres"
    with tempfile.TemporaryDirectory() as folder:
        if user is not None:
            shutil.chown(folder, user)
        port = a_free_port()

        def call(program, *arguments):
            command = [programs / program, "-D", f"{folder}/data", *arguments]
            done = subprocess.run(
                command, user=user, cwd=folder, stdout=log, stderr=log, check=False
            )
            assert done.returncode == 0, Path(log.name).read_text()

        with (Path(folder) / "log").open("w") as log:
            call("initdb", "-A", "trust", "-U", "kb", "--no-sync")
            options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
            call("pg_ctl", "-w", "-o", options, "start")
            try:
                yield f"postgresql+psycopg://kb:secret@127.0.0.1:{port}/postgres"
            finally:
                call("pg_ctl", "-m", "immediate", "stop")


@pytest.mark.slow
def test_postgresql_holds_what_a_local_store_holds(postgresql, store):
    both = [in_a_process(postgresql, WRITE, machine) for machine in ("m1", "m2")]  # a new store
    assert [(process.communicate()[0], process.returncode) for process in both] == [("", 0)] * 2
    remote = Store(postgresql)
    assert len(remote.read("uci")) == 80
    odd = a_run(key="k2", tags={"error": "\x00 ü"}, metrics={"x": 1e308, "y": math.nan})
    states = []
    for each in (store, remote):
        experiment = each.experiment("same")
        for run in (FAILED, a_run(), LONGER, OTHER_PARAMS, odd):
            each.log(experiment, replace(run, artifacts={}))
        states.append(sorted(state(each, experiment), key=str))
    assert states[0] == states[1]
    assert tracking.delivered_without_mlflow(postgresql, "1") is None
    with pytest.raises(StoreError) as raised:
        Store(f"{postgresql}-none").open()
    assert "secret" not in str(raised.value)

"""A run is written once, whatever was there before and whatever fails on the way."""

import contextlib
import sqlite3
from dataclasses import replace

import pytest

from kbench import StoreError
from kbench_mlflow.tracking import database
from kbench_mlflow.tracking import store as store_module
from kbench_mlflow.tracking.connection import Connection
from kbench_mlflow.tracking.run import FORMAT
from kbench_mlflow.tracking.store import Store
from tests.support.tracking_runs import (
    FAILED,
    IRIS,
    LONGER,
    OTHER_PARAMS,
    OTHER_VALUE,
    a_run,
    client_of,
    live,
    state,
)


@pytest.mark.parametrize("anew", [False, True])
def test_writing_again_changes_nothing(store, uci, anew):
    run_id = store.log(uci, a_run())
    before = state(store, uci)
    again = Store(store.uri) if anew else store
    client = client_of(again)
    again.client = ReadOnly(client)
    assert again.log(uci, a_run()) == run_id
    again.client = client
    assert state(store, uci) == before


class ReadOnly:
    """A client that has no way to write."""

    def __init__(self, client):
        self.search_runs = client.search_runs


@pytest.mark.parametrize("anew", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (FAILED, a_run(), True),
        (a_run(), LONGER, True),
        (a_run(), replace(a_run(), end_ms=1_700_000_006_000), True),
        (a_run(), a_run(params={**a_run().params, "learner.C": "1"}), True),
        (a_run(), a_run(tags={"suite": "other"}), True),
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
    assert row.metrics == second.metrics
    assert row.tags["kbench.digest"] == second.digest
    for name, values in second.by_split.items():
        assert [point[:2] for point in points[f"{name}_by_split"]] == sorted(values.items())
    assert max([p[0] for p in points.get("accuracy", [])], default=0) == second.n_splits_done
    assert data == [(second.dataset.name, second.dataset.digest[:36])]
    assert again.log(uci, second) == new


def test_the_same_cell_under_another_name_is_another_run(store, uci):
    """Two labels of one thing are two rows; a name that is planned no more is superseded."""
    old, new = (store.log(uci, a_run(name=name)) for name in (a_run().name, "renamed"))
    assert old != new
    assert [store.log(uci, a_run()), store.log(uci, a_run(name="renamed"))] == [old, new]
    assert len(live(store, uci)) == 2


def test_the_same_cell_of_another_machine_or_experiment_is_another_run(store, uci):
    other = store.experiment("other")
    ids = {
        store.log(uci, a_run()),
        store.log(uci, a_run(machine="m2")),
        store.log(other, a_run()),
    }
    assert len(ids) == 3
    assert [row.machine for row in store.read("uci")] in (["m1", "m2"], ["m2", "m1"])
    assert [row.machine for row in store.read("other")] == ["m1"]


def test_a_run_deleted_by_hand_comes_back(store, uci):
    old = store.log(uci, a_run())
    client_of(store).delete_run(old)
    assert Store(store.uri).log(uci, a_run()) != old
    # ... also where this process believes that it is there and has to add something
    store.log(uci, LONGER)
    assert [row.n_splits_done for row in Store(store.uri).read("uci")] == [3]


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


@pytest.mark.parametrize(
    ("first", "second", "after"),
    [
        (FAILED, a_run(), True),
        pytest.param(FAILED, a_run(), False, marks=pytest.mark.slow),
        pytest.param(None, FAILED, True, marks=pytest.mark.slow),
        pytest.param(None, FAILED, False, marks=pytest.mark.slow),
        pytest.param(a_run(), LONGER, True, marks=pytest.mark.slow),
        pytest.param(a_run(), LONGER, False, marks=pytest.mark.slow),
    ],
)
def test_a_fault_at_any_write_is_repaired(store, first, second, after, monkeypatch):
    monkeypatch.setattr(store_module, "_SLOW_S", -1.0)  # the first fault is reported
    monkeypatch.setattr(Connection, "insert", lambda *runs: [])
    expected = store.experiment("undisturbed")
    for run in filter(None, (first, second)):
        store.log(expected, run)
    (wanted,) = state(store, expected)
    client = client_of(store)
    faults = 0
    for nth in range(1, 20):
        experiment = store.experiment(f"fault {nth}")
        if first is not None:
            store.log(experiment, first)
        store.client = Faulty(client, nth, after)
        failed = False
        try:
            store.log(experiment, second)
        except StoreError:
            failed = True
        store.client = client
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
        if not failed and nth > faults + 1:
            break
    assert faults >= 3


def test_one_short_fault_is_not_even_reported(store, uci, monkeypatch):
    store.open()
    monkeypatch.setattr(store, "insert", lambda *runs: [])
    store.client = Faulty(client_of(store), 1, after=True)  # the reply to the creation is lost
    store.log(uci, a_run())
    assert len(live(store, uci)) == 1


def test_two_runs_of_one_identity_are_reduced_to_one(store, uci):
    kept = store.log(uci, a_run())
    for _ in range(2):  # what a client does that repeats a request whose reply was lost
        tags = {
            "kbench.cell_key": "k1",
            "kbench.format": FORMAT,
            "kbench.cell": a_run().name,
            "kbench.machine": "m1",
            "kbench.writing": "?",
        }
        client_of(store).create_run(uci.id, tags=tags)
    assert Store(store.uri).log(uci, a_run()) == kept
    assert len(live(store, uci)) == 1


def test_a_dataset_that_another_writer_adds_at_the_same_time(store, uci, monkeypatch):
    store.open()
    log_inputs, failures = client_of(store).log_inputs, []

    def racing(run_id, datasets):
        if len(failures) < 2:
            failures.append(run_id)
            raise RuntimeError("(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.name")
        log_inputs(run_id, datasets)

    monkeypatch.setattr(client_of(store), "log_inputs", racing)
    monkeypatch.setattr(store, "insert", lambda *runs: [])
    store.log(uci, a_run())
    assert len(failures) == 2
    assert state(store, uci)[0][5] == [("iris", IRIS.digest[:36])]


def test_a_run_is_inserted_as_mlflow_would_write_it(store, uci, monkeypatch):
    run = a_run(artifacts={"map/ä.json": "{}\n"}, n_splits_done=3)
    with monkeypatch.context() as patch:
        patch.setattr(store, "insert", lambda *runs: [])
        by_calls = store.log(uci, run)
        expected = state(store, uci), rows(store, by_calls)
    client_of(store).delete_run(by_calls)
    inserted = Store(store.uri).log(uci, run)
    assert (state(store, uci), rows(store, inserted)) == expected
    assert client_of(store).download_artifacts(inserted, "map/ä.json")
    with contextlib.closing(sqlite3.connect(store.address.path)) as opened:
        assert opened.execute("SELECT count(*) FROM datasets").fetchone() == (1,)


def rows(store, run_id):
    """Return the rows of a run in all tables, without its id and what differs between writes."""
    columns = "SELECT * FROM {} WHERE {} = ? ORDER BY 1, 2, 3"
    places = dict.fromkeys(("runs", "tags", "params", "metrics", "latest_metrics"), "run_uuid")
    places |= {"inputs": "destination_id"}
    found = {}
    with contextlib.closing(sqlite3.connect(store.address.path)) as opened:
        opened.row_factory = sqlite3.Row
        for table, column in places.items():
            each = map(dict, opened.execute(columns.format(table, column), [run_id]))
            found[table] = [
                {name: str(value).replace(run_id, "id") for name, value in row.items()}
                for row in each
            ]
        (made,) = (row.pop("input_uuid") for row in found["inputs"])
        tags = "SELECT name, value FROM input_tags WHERE input_uuid = ?"
        found["input_tags"] = [tuple(row) for row in opened.execute(tags, [made])]
    return found


OTHERWISE = {
    "another schema": "ALTER TABLE runs ADD COLUMN workspace TEXT",
    "files elsewhere": "UPDATE experiments SET artifact_location = 's3://bucket'",
}


@pytest.mark.parametrize("why", ["a column", "a full disk", *OTHERWISE])
def test_mlflow_writes_what_cannot_be_inserted(store, uci, monkeypatch, why):
    path, content = store.address.path, a_run().content
    if why == "a column":
        monkeypatch.setattr(IRIS.__class__, "columns", property(lambda data: {"no_such": ""}))
    elif why == "a full disk":
        opened = database.to_write

        def with_full_disk(path):
            connection = opened(path)
            (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {n_pages}")
            return connection

        monkeypatch.setattr(database, "to_write", with_full_disk)
        content = replace(content, params={str(i): "x" * 6000 for i in range(9)})
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(OTHERWISE[why])
    content = replace(content, tags={"mlflow.user": "me"})
    assert not store.insert(uci.id, [content])
    assert live(store, uci) == []

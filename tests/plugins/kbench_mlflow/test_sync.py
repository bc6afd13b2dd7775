"""What a journal has reaches a store that lacks it, without suite file, data or plugin."""

import dataclasses
import json
import subprocess
import sys
import zlib

import pytest

from kbench import Metric, Protocol, Ref, Suite, SuiteError
from kbench.errors import JournalError
from kbench.execution.session import lock_name
from kbench.machine import machine_id
from kbench.planning.cached_results import Validity, recall
from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell, task_key
from kbench.planning.planner import line_key
from kbench.planning.plans import Plans
from kbench.records import Cell, DatasetFacts, Details, Problem, Result, Tune
from kbench.results.stored import Query
from kbench.storage.journal import Journal
from kbench_mlflow.delivery import (
    Delivery,
    deliver_leftovers,
    read_all_results,
    sync_suites,
)
from kbench_mlflow.reading import read_stored_results, rows_without_run
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.views import WITHOUT_RUN

AWAY = "http://127.0.0.1:9"  # nobody listens on the discard port
KNOWN = DatasetFacts("c" * 64, source="here", n_samples=150, n_features=4)
MAP = Ref("rff", {"gamma": Tune((0.1, 1.0)), "kernel": Ref("gaussian", {"bandwidth": "median"})})
SUITE = Suite("trial", (), metric=Metric("log_loss", "lower"))


def a_cell(learner, key, problem=None, n_splits=2):
    protocol = Protocol(n_folds=n_splits, scaling=("minmax", "standard"))
    cell = Cell(Ref("iris", label="flowers"), MAP, Ref(learner, {"C": 2}), protocol)
    return PlannedCell(cell, key, None if problem else KNOWN, n_splits, problem)


def finish(journal, planned, *splits, status="ok"):
    for index in splits or range(planned.n_splits):
        metrics = dict.fromkeys(
            ("accuracy", "log_loss", "fit_time_s", "predict_time_s", "search_time_s"), 0.5
        )
        result = Result(
            task_key(planned.key, index),
            planned.key,
            split=index,
            status=status,
            metrics=metrics if status == "ok" else {},
            details=Details(split_hash="0"),
            error="" if status == "ok" else "as told",
            started_ms=1_700_000_000_000,
            ended_ms=1_700_000_001_000,
            seconds=1.0,
            version="0",
            machine_speed_s=0.01,
            machine=machine_id(),
            host="here",
            cpu="a CPU",
        )
        journal.append("result", **result.to_json())


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def plans(journal):
    return Plans(journal)


def names(runs):
    return {run.name: run.status for run in runs}


def test_a_plan_comes_back_as_it_was(journal, plans):
    cells = [
        a_cell("ridge", "k1"),
        a_cell("svm", "k2", problem=Problem("unavailable", "no network")),
    ]
    plans.keep(SUITE, "sqlite:////x.db", cells)
    plans.keep(SUITE, "sqlite:////x.db", cells)
    assert len(list(journal.read("plan"))) == 1
    found, metric = plans.cells("trial")
    assert found == cells
    assert found[0].cell.name == cells[0].cell.name
    assert metric == SUITE.metric
    finish(journal, cells[0])
    assert [sorted(each.results) for each in plans.cells("trial")[0]] == [[0, 1], []]


def test_the_latest_plan_of_a_cell_counts_and_the_others_stay(plans):
    one, two = a_cell("ridge", "k1"), a_cell("svm", "k2")
    plans.keep(SUITE, "a", [one, two])
    edited = dataclasses.replace(one, key="k3")
    plans.keep(SUITE, "b", [edited])
    assert [each.key for each in plans.cells("trial")[0]] == ["k3", "k2"]
    assert [each.key for each in plans.cells("trial", "a")[0]] == ["k1", "k2"]
    assert plans.suites() == {"trial": {"a", "b"}}


def relabelled(planned, label):
    cell = planned.cell
    learner = Ref(cell.learner.name, cell.learner.params, label)
    return dataclasses.replace(planned, cell=dataclasses.replace(cell, learner=learner))


def test_a_cell_that_a_later_plan_relabels_is_not_brought_back(journal, plans, store_uri):
    one, other = a_cell("ridge", "k1"), a_cell("svm", "k2")
    finish(journal, one)
    finish(journal, other)
    plans.keep(SUITE, store_uri, [one, other])
    list(sync_suites(store_uri))
    renamed = relabelled(one, "mine")
    plans.keep(SUITE, store_uri, [renamed])
    assert [each.cell.name for each in plans.cells("trial")[0]] == [
        other.cell.name,
        renamed.cell.name,
    ]
    for _ in range(2):
        list(sync_suites(store_uri))
        found = names(Store(store_uri).read("trial"))
        assert set(found) == {other.cell.name, renamed.cell.name}
    # two labels of one thing in one plan are two cells
    plans.keep(SUITE, store_uri, [one, renamed])
    assert len(plans.cells("trial")[0]) == 3


def test_results_of_other_data_are_not_brought_back(journal, plans, store_uri):
    """A user's file was edited, and the second command named one method only."""
    one, other = a_cell("ridge", "k1"), a_cell("svm", "k2")
    edited = dataclasses.replace(
        one, key="k3", dataset=dataclasses.replace(KNOWN, checksum="d" * 64)
    )
    for each in (one, other, edited):
        finish(journal, each)
    plans.keep(SUITE, store_uri, [one, other])
    list(sync_suites(store_uri))
    plans.keep(SUITE, store_uri, [edited])
    for _ in range(2):
        list(sync_suites(store_uri))
        assert [run.key for run in Store(store_uri).read("trial")] == ["k3"]


def test_a_plan_of_another_version_is_passed_over(journal, plans, store_uri):
    cell = a_cell("ridge", "k1")
    finish(journal, cell)
    plans.keep(SUITE, store_uri, [a_cell("svm", "k2")])
    (line,) = journal.read("plan")
    ((*_, others),) = line["content"]["cells"]
    others["splits_in_all"] = others.pop("n_splits")
    renamed = {name: value for name, value in line.items() if name != "kind"}
    journal.append("plan", **{**renamed, "digest": "other"})
    (found,) = deliver_leftovers(journal, machine_id(), store_uri)
    assert "skipped 1 plan of another version of kbench" in found.sentence
    assert list(deliver_leftovers(journal, machine_id(), store_uri)) == []
    plans.keep(SUITE, store_uri, [cell])
    (found,) = sync_suites(store_uri)
    assert (found.delivered.written, found.unread) == (1, 1)


def test_what_is_still_to_be_fetched_is_no_plan_yet(journal, plans):
    plans.keep(SUITE, "a", [dataclasses.replace(a_cell("ridge", "k1"), dataset=None)])
    assert not journal.path.exists()


def test_a_settled_suite_is_open_again_once_it_computes(journal, plans):
    cell = a_cell("ridge", "k1")
    plans.keep(SUITE, "a", [cell])
    assert plans.list_open("a") == ["trial"]
    plans.settle("trial", "a")
    assert plans.list_open("a") == []
    plans.keep(SUITE, "a", [cell])  # killed after this
    assert plans.list_open("a") == ["trial"]
    assert plans.list_open("b") == []


def test_what_a_store_lacks_is_delivered_once(journal, plans, store_uri):
    cells = [a_cell("ridge", "k1"), a_cell("svm", "k2"), a_cell("knn", "k3")]
    plans.keep(SUITE, store_uri, cells)
    finish(journal, cells[0])
    finish(journal, cells[1], status="crashed")
    finish(journal, cells[2], 0)
    (found,) = sync_suites(store_uri)
    assert (found.delivered.written, found.finished, found.unfinished) == (2, 2, 1)
    runs = Store(store_uri).read("trial")
    assert sorted(names(runs).values()) == ["crashed", "ok"]
    assert {run.tags["kbench.metric"] for run in runs} == {"log_loss"}
    params = next(run for run in runs if run.key == "k1").params
    assert (params["learner.C"], params["feature_map.gamma"]) == ("2", "tune[0.1, 1]")
    assert params["feature_map.kernel"] == "gaussian"
    assert params["feature_map.kernel.bandwidth"] == "median"
    (again,) = sync_suites(store_uri)
    assert (again.delivered.written, again.delivered.stored) == (0, 2)
    finish(journal, cells[2], 1)
    (more,) = sync_suites(store_uri)
    assert (more.delivered.written, more.unfinished) == (1, 0)
    assert len(Store(store_uri).read("trial")) == 3


def test_cells_without_data_are_one_tag_until_they_have_results(journal, store_uri):
    def deliver(*cells):
        recall(cells, Validity(journal, Present(), also_outdated=True))
        delivery = Delivery(store_uri, "trial", journal, machine_id())
        assert delivery.finish(cells).problem == ""
        tags = Store(store_uri).tags("trial")
        runs = names(Store(store_uri).read("trial"))
        assert set(runs.values()) <= {"ok"}
        left = [row.learner.partition("(")[0] for row in rows_without_run(tags)]
        return len(runs), left, tags[f"{WITHOUT_RUN}{machine_id()}"]

    offline, large = Problem("unavailable", "no network"), Problem("skipped", "too large")
    done, ridge, gp = a_cell("ridge", "k1"), a_cell("svm", "k2"), a_cell("gp", "k4", large)
    gone = [a_cell(name, "", offline) for name in ("svm", "knn")]
    gone = [dataclasses.replace(cell, key=line_key(cell.cell)) for cell in gone]
    finish(journal, done)
    counts = "3 cells without a run: 2 unavailable, 1 skipped"
    assert deliver(done, *gone, gp) == (1, ["svm", "knn", "gp"], counts)
    query = Query("trial", {"store": store_uri})
    assert [row.status for row in read_stored_results(query).rows].count("unavailable") == 2
    # a command for one method leaves the others, and one that is stopped adds nothing
    finish(journal, ridge, 0)
    counts = "2 cells without a run: 1 unavailable, 1 skipped"
    assert deliver(ridge) == (1, ["knn", "gp"], counts)
    finish(journal, ridge, 1)
    assert deliver(ridge) == (2, ["knn", "gp"], counts)
    # the data are there, under another label, and the limit is higher
    knn = relabelled(a_cell("knn", "k3"), "mine")
    finish(journal, knn)
    assert deliver(knn) == (3, ["gp"], "1 cell without a run: 1 skipped")
    gp = a_cell("gp", "k4")
    finish(journal, gp)
    assert deliver(gp) == (4, [], "")
    # and the network is gone again: the run is of earlier data
    assert deliver(gone[0]) == (3, ["svm"], "1 cell without a run: 1 unavailable")


def test_which_suites(journal, plans, store_uri):
    cell = a_cell("ridge", "k1")
    finish(journal, cell)
    with pytest.raises(SuiteError, match=r"no suite has been run for the store sqlite.*/mlflow.db"):
        list(sync_suites(store_uri))
    plans.keep(SUITE, AWAY, [cell])
    with pytest.raises(SuiteError, match="--all: trial"):
        list(sync_suites(store_uri))
    with pytest.raises(SuiteError, match="no suite 'trail' was run here; did you mean 'trial'"):
        list(sync_suites(store_uri, ["trail"]))
    (found,) = sync_suites(store_uri, everything=True)
    assert (found.suite, found.delivered.written) == ("trial", 1)
    (found,) = sync_suites(store_uri)  # delivered there once, so that it belongs there
    assert found.delivered.written == 0


def test_a_store_that_is_away_keeps_all_and_ends_the_command(journal, plans):
    for name in ("one", "two"):
        plans.keep(dataclasses.replace(SUITE, name=name), AWAY, [a_cell("ridge", "k1")])
    finish(journal, a_cell("ridge", "k1"))
    (found,) = sync_suites(AWAY)
    assert "does not answer" in found.delivered.problem
    assert "kept: 1 finished cell" in found.sentence
    assert plans.list_open(AWAY) == ["one", "two"]


def test_leftovers_go_to_the_store_that_they_were_for(journal, plans, store_uri):
    mine, other, busy = (a_cell("ridge", key) for key in ("k1", "k2", "k3"))
    for cell in (mine, other, busy):
        finish(journal, cell)
    plans.keep(SUITE, store_uri, [mine])
    plans.keep(dataclasses.replace(SUITE, name="busy"), store_uri, [busy])
    plans.keep(dataclasses.replace(SUITE, name="other"), AWAY, [other])
    with journal.lock(lock_name("busy", store_uri)):
        (found,) = deliver_leftovers(journal, machine_id(), store_uri)
    assert (found.suite, found.delivered.written) == ("trial", 1)
    assert plans.list_open(store_uri) == ["busy"]
    assert plans.list_open(AWAY) == ["other"]


def test_results_are_complete_after_a_delivery_that_was_cut_off(journal, plans, store_uri):
    """The command was killed when one of two runs was written."""
    cells = [a_cell("ridge", "k1"), a_cell("svm", "k2")]
    plans.keep(SUITE, store_uri, cells)
    plans.keep(dataclasses.replace(SUITE, name="other"), store_uri, cells)
    for cell in cells:
        finish(journal, cell)
    delivery = Delivery(store_uri, "trial", journal, machine_id())
    (first, _), delivery.metric = plans.cells("trial")
    delivery.offer(first)
    said = []
    query = Query("trial", {"store": store_uri}, notice=said.append)
    with journal.lock(lock_name("trial", store_uri)):  # it goes on, and delivers them itself
        assert len(read_all_results(query).rows) == 1
    assert said == []
    assert [row.status for row in read_all_results(query).rows] == ["ok", "ok"]
    (text,) = said
    assert text.endswith("2 runs, 1 written now")
    assert len(read_all_results(query).rows) == 2
    assert len(said) == 1
    assert plans.list_open(store_uri) == ["other"]


def test_results_that_never_reached_the_store_are_read_too(journal, plans, store_uri):
    plans.keep(SUITE, store_uri, [a_cell("ridge", "k1")])
    finish(journal, a_cell("ridge", "k1"))
    assert len(read_all_results(Query("trial", {"store": store_uri})).rows) == 1


def test_what_cannot_be_delivered_hides_no_stored_result(journal, plans, store_uri, monkeypatch):
    plans.keep(SUITE, store_uri, [a_cell("ridge", "k1")])
    finish(journal, a_cell("ridge", "k1"))
    list(sync_suites(store_uri))
    plans.keep(SUITE, store_uri, [a_cell("ridge", "k1"), a_cell("svm", "k2")])
    finish(journal, a_cell("svm", "k2"))

    def refuse(*args, **kwargs):
        raise JournalError("the folder is only readable")

    monkeypatch.setattr(Journal, "lock", refuse)
    notices = []
    query = dataclasses.replace(Query("trial", {"store": store_uri}), notice=notices.append)
    assert len(read_all_results(query).rows) == 1
    assert any("the folder is only readable" in notice for notice in notices)


def run_sync(*arguments):
    command = [sys.executable, "-m", "kbench.cli", "sync", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_the_command_and_its_exit_codes(journal, plans, store_uri):
    cell = a_cell("ridge", "k1")
    finish(journal, cell)
    plans.keep(SUITE, AWAY, [cell])
    away = run_sync("--store", AWAY)
    assert away.returncode == 1
    assert "does not answer" in away.stderr
    assert "No result is lost" in away.stderr
    assert "Traceback" not in away.stderr
    there = run_sync("trial", "--store", store_uri, "--json")
    assert there.returncode == 0, there.stderr
    found = json.loads(there.stdout)
    assert (found["suite"], found["delivered"]["written"]) == ("trial", 1)
    wrong = run_sync("none", "--store", store_uri)
    assert wrong.returncode == 2


def test_a_journal_of_another_version_is_said_by_the_run_and_not_by_mlflow(journal, store_uri):
    journal.append("delivered", suite="trial", store=store_uri, experiment_id="1")
    line = journal.path.read_bytes()
    body = line[: line.rindex(b',"crc"')].replace(b'"v":2', b'"v":1')
    journal.path.write_bytes(b'%s,"crc":"%08x"}\n' % (body, zlib.crc32(body)))
    with pytest.raises(JournalError, match="another version"):
        list(journal.read("delivered"))
    Delivery(store_uri, "trial", journal, machine_id()).prepare()

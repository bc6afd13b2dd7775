"""Rows: what they tell by name, and what they write."""

import dataclasses
import json
import math

import pytest

from kbench import Cell, Protocol, Ref, Result
from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, DatasetFacts, Details, Metric, Problem
from kbench.results.row_builders import make_full_row, make_row
from kbench.results.rows import COLUMNS, TIMES, Row, columns, ranks
from kbench.results.stats import scores
from kbench_mlflow.reading import row_of_run
from kbench_mlflow.runs import build_run
from kbench_mlflow.tracking.store import Store
from tests.support.report_rows import changed, row

LOSS = Metric("log_loss", "lower")
CELL = Cell(Ref("iris", label="flowers"), Ref("rff"), Ref("ridge"), Protocol(n_folds=3))
SIZE = {"n_samples": 150, "n_features": 4}
FACTS = DatasetFacts("c" * 64, dataset_family="plants", source="somewhere", **SIZE)


def a_result(split, status="ok", **fields):
    metrics = {"accuracy": 0.5 + split / 10, "log_loss": 1.0 - split / 10, "converged": 1.0}
    metrics |= {"fit_time_s": 1.0, "predict_time_s": 0.5, "n_test": 50.0, "bound": math.nan}
    given = {
        "metrics": metrics if status == "ok" else {},
        "details": Details(
            split_hash=f"h{split}", notes=[f"note {split}"], at_boundary=["learner.C"]
        ),
        "error": "" if status == "ok" else "as told",
        "started_ms": 1_700_000_000_000 + split,
        "ended_ms": 1_700_000_000_100 + split,
        "version": "0.1.0",
        "machine_speed_s": 0.01,
        "cpu": "a CPU",
    }
    return Result(f"t{split}", "k", split, status, **given | fields)


def planned(*results, **fields):
    by_split = {each.split: each for each in results}
    return PlannedCell(
        CELL, "k", FACTS, 3, results=by_split, equivalence="e", family="fourier", **fields
    )


def searched(split, n_candidates, at_boundary, candidates):
    details = Details(split_hash=f"h{split}", at_boundary=at_boundary, search=candidates)
    metrics = {"accuracy": 0.9, "n_candidates": float(n_candidates)}
    return a_result(split, metrics=metrics, details=details)


CANDIDATES = [
    {
        "learner.C": 1.0,
        "learner.kernel": {"ref": "gaussian", "params": {"bandwidth": bandwidth}},
        "scaling": "minmax",
        "values": [0.5],
        "converged": True,
    }
    for bandwidth in (1.0, 2.0)
]
SEARCHED = planned(
    searched(0, 2, ["learner.kernel"], CANDIDATES),
    searched(1, 2, [], CANDIDATES),
    searched(2, 1, [], []),
)
DONE = planned(*(a_result(i) for i in range(3)))
CASES = [
    DONE,
    SEARCHED,
    planned(a_result(2), a_result(0)),
    planned(a_result(0), a_result(1, "error"), a_result(2)),
    planned(a_result(0, "timed_out")),
    planned(a_result(0, machine_speed_s=0.02, cpu="another"), a_result(1), a_result(2)),
    planned(*(a_result(i, timing="exclusive") for i in range(3))),
    PlannedCell(CELL, "k", None, 3, Problem("unavailable", "no network", 1_700_000_000_000)),
    PlannedCell(CELL, "k", FACTS, 3, Problem("error", "3 missing values", 1_700_000_000_000)),
]


def test_a_value_is_a_field_a_metric_or_derived_from_one():
    one = row("iris", "rff", converged=0.8, n_components=30, gram_error=0.25, n_test=50)
    names = ("dataset", "n_splits", "accuracy", "gram_error", "converged", "n_components")
    assert [one.value(name) for name in names] == ["iris", 3, 0.9, 0.25, False, 30]
    assert isinstance(one.value("n_components"), int)
    assert one.value("predict_time_per_row_s") == pytest.approx(0.001 / 50)
    assert one.value("log_loss") is None


@pytest.mark.parametrize(
    ("metrics", "derived"),
    [
        ({}, (None, None, None)),
        ({"converged": 1.0, "n_components": 30.5, "n_test": 0.0}, (True, 30.5, None)),
        ({"converged": 0.0, "predict_time_s": 1.0, "n_test": 4.0}, (False, None, 0.25)),
    ],
)
def test_what_is_derived_is_none_where_its_metrics_are_not_there(metrics, derived):
    one = Row("iris", "rff", "ridge", "ok", 5, 5, metrics)
    assert (one.converged, one.n_components, one.predict_time_per_row_s) == derived


def test_a_row_is_of_the_group_of_its_dataset_unless_told():
    row = Row("iris", "rff", "ridge", "ok", 5, 5)
    assert row.dataset_family == "iris"
    assert dataclasses.replace(row, dataset_family="plants").dataset_family == "plants"


@pytest.mark.parametrize(
    ("status", "done", "complete"), [("ok", 5, 1), ("ok", 4, 0), ("error", 5, 0)]
)
def test_a_row_is_complete_when_all_its_splits_are_ok(status, done, complete):
    assert Row("iris", "rff", "ridge", status, done, 5).is_complete is bool(complete)


@pytest.mark.parametrize("metric", [ACCURACY, LOSS])
def test_json_has_the_columns_first_and_then_all_else(metric):
    one = changed(
        row("iris", "rff", log_loss=0.5, log_loss_sd=0.1, gram_error=0.2, n_components=30),
        values_by_split={"accuracy": {"0": 0.9}, "log_loss": {"0": 0.5}},
    )
    written = one.to_json(metric)
    names = columns(metric)
    assert tuple(written)[: len(names)] == names
    others = [name for name in one.metrics if name not in names]
    assert list(written)[len(names) : len(names) + len(others)] == others
    assert list(written)[len(names) + len(others) :] == [
        *(
            "task",
            "dataset_family",
            "machine",
            "key",
            "checksum",
            "by_split",
            "metric_by_split",
            "values_by_split",
            "values_by_seed",
            "split_hash",
        ),
        *(
            "protocol",
            "search",
            "budget_curve",
            "map_details",
            "version",
            "at_boundary",
            "notes",
            "contention",
            "timing",
        ),
        *(
            "machine_speed_s",
            "error",
            "equivalence",
            "family",
            "made_from",
            "outdated",
            "search_space",
            "start_ms",
            "end_ms",
            "metric",
            "better",
        ),
    ]
    assert written["by_split"] == {"0": 0.9}
    assert written["metric_by_split"] == {"0": one.by_split(metric.name)["0"]}
    assert (written["metric"], written["better"]) == (metric.name, metric.better)
    assert (written["n_components"], written["converged"]) == (30, True)
    assert json.loads(json.dumps(written)) == written


def test_json_of_a_cell_without_results_has_the_same_keys():
    bare = make_row(PlannedCell(CELL, "k", None, 3)).to_json()
    assert tuple(bare)[: len(COLUMNS)] == COLUMNS
    assert bare.keys() == {*row("iris", "rff").to_json()} - {"n_train", "n_test"}
    assert bare["accuracy"] is None


@pytest.mark.parametrize("cell", CASES)
@pytest.mark.parametrize("metric", [ACCURACY, LOSS])
def test_a_row_of_the_journal_is_that_of_its_run(cell, metric, store_uri):
    """What `kbench recommend` shows is what `kbench results` and reports show."""
    store = Store(store_uri)
    experiment = store.experiment("trial")
    store.log(experiment, build_run(cell, "trial", "m1", metric))
    (run,) = store.read("trial")
    here, there = make_full_row(cell, "m1", metric), row_of_run(run)
    # the rest is on the pages of MLflow only
    assert dataclasses.replace(there, values_by_split={}) == dataclasses.replace(
        here, values_by_split={}
    )
    for name in ("accuracy", metric.name, *TIMES):
        assert there.by_split(name) == here.by_split(name)
    short = make_row(cell, metric)
    assert [short.value(name) for name in columns(metric)] == [
        here.value(name) for name in columns(metric)
    ]


def test_a_row_in_full_tells_what_its_results_tell():
    found = make_full_row(DONE, "m1", LOSS)
    assert found.metrics["accuracy"] == pytest.approx(0.6)
    assert "bound" not in found.metrics
    assert {"accuracy_sd", "log_loss_sd"} <= found.metrics.keys()
    assert found.by_split("log_loss") == {"0": 1.0, "1": 0.9, "2": 0.8}
    assert found.split_hash == {"0": "h0", "1": "h1", "2": "h2"}
    assert (found.notes, found.at_boundary) == ("note 0; note 1; note 2", "learner.C")
    assert (found.dataset_family, found.equivalence, found.machine) == ("plants", "e", "m1")
    assert found.family == "fourier"
    assert (found.start_ms, found.end_ms) == (1_700_000_000_000, 1_700_000_000_102)
    failed = make_full_row(CASES[3], "m1")
    assert (failed.status, failed.n_splits_done, failed.error) == ("error", 2, "as told")
    gone = make_full_row(CASES[7], "m1")
    assert (gone.status, gone.error) == ("unavailable", "no network")
    assert gone.start_ms == gone.end_ms == 1_700_000_000_000


def test_a_row_tells_what_was_searched_and_how_often_the_best_was_at_an_edge():
    found = make_full_row(SEARCHED, "m1")
    assert found.metrics["search_at_boundary"] == 0.5  # nothing was searched in the third
    assert found.search_space == ("learner.kernel",)
    nothing = make_full_row(planned(searched(0, 1, [], [])), "m1")
    assert nothing.search_space == ()
    assert "search_at_boundary" not in nothing.metrics


@pytest.mark.parametrize("name", ["error", "version", "dataset_family", "search", "notes"])
def test_a_metric_may_be_called_as_a_field(name):
    rows = [Row("iris", m, "ridge", "ok", 5, 5, {name: v}) for m, v in (("a", 0.2), ("b", 0.1))]
    assert rows[0].value(name) == 0.2
    assert scores(rows, Metric(name, "lower")).values.tolist() == [[0.2, 0.1]]
    assert ranks(rows, Metric(name, "lower")) == [2.0, 1.0]


def test_splits_keep_the_order_of_their_numbers():
    cell = Cell(Ref("iris"), Ref("rff"), Ref("ridge"), Protocol())
    results = {
        i: Result("t", "c", i, "ok", {"accuracy": 0.5, "fit_time_s": 1.0, "predict_time_s": 1.0})
        for i in range(12)
    }
    run = build_run(
        PlannedCell(cell, "k", DatasetFacts("c", dataset_family="g"), 12, results=results), "s", "m"
    )
    assert list(json.loads(run.tags["accuracy_by_split"])) == [str(i) for i in range(12)]
    assert list(json.loads(run.tags["split_hash"])) == [str(i) for i in range(12)]
    nothing = PlannedCell(cell, "k", None, 2, Problem("unavailable", "gone", 1))
    assert "dataset_family" not in build_run(nothing, "s", "m").tags


def test_chosen_numbers_are_metrics_that_pages_can_draw():
    """Logarithms where the grid spans decades; nothing of what is no number."""
    grid = [
        {"learner.C": c, "map.factor": f, "map.kernel": k, "learner.tol": 0.1}
        for c, f, k in ((0.01, 0.0, "a"), (1.0, 1.0, "b"), (100.0, 200.0, "b"))
    ]
    results = {
        i: a_result(i, details=Details(chosen=grid[i], search=grid)) for i in range(len(grid) - 1)
    }
    run = build_run(PlannedCell(CELL, "k", FACTS, 2, results=results), "s", "m")
    chosen = {name: value for name, value in run.metrics.items() if name.startswith("chosen.")}
    # a grid with 0 has no logarithms
    assert chosen == pytest.approx({"chosen.log10.learner.C": -1.0, "chosen.map.factor": 0.5})
    assert run.by_split["chosen.learner.C"] == {0: 0.01, 1: 1.0}


def test_chosen_numbers_are_no_metrics_of_results(store_uri):
    store = Store(store_uri)
    grid = [{"learner.C": 1.0}, {"learner.C": 8.0}]
    results = {0: a_result(0, details=Details(chosen=grid[1], search=grid))}
    run = build_run(PlannedCell(CELL, "k", FACTS, 1, results=results), "s", "m")
    assert run.metrics["chosen.learner.C"] == 8.0
    store.log(store.experiment("trial"), run)
    (stored,) = store.read("trial")
    assert not any(name.startswith("chosen.") for name in row_of_run(stored).metrics)

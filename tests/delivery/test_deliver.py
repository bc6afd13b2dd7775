"""What the MLflow run of a cell says beside its means, for tests and charts over datasets."""

import dataclasses
import json

import pytest

from kbench import Cell, Measure, Protocol, Ref
from kbench.delivery.as_run import TAG_CHARS, as_run
from kbench.evaluation.definitions import MEASURES
from kbench.planning.planner import PlannedCell
from kbench.records import DatasetFacts, Details, Result
from kbench.results.sources import budget_of, measure_of, of_run
from kbench.tracking import StoredRun

ERROR = Measure("expected_error", "lower")


def planned(n_values=2):
    cell = Cell(Ref("iris"), Ref("rff"), Ref("ridge"), Protocol())
    search = [
        {"learner.alpha": float(v), "accuracies": [0.5 + v / 1e6], "converged": True}
        for v in range(n_values)
    ]
    results = {
        i: Result(
            f"t{i}",
            "k",
            i,
            "ok",
            measures={
                "accuracy": 0.5 + i / 10,
                "expected_error": 0.4 - i / 10,
                "fit_time_s": 1.0,
                "predict_time_s": 1.0,
                "search_time_s": 1.0,
            },
            details=Details(search=search, split_hash=f"h{i}"),
            version="1",
            calibration_s=0.1,
            started_ms=1,
            ended_ms=2,
        )
        for i in range(2)
    }
    facts = DatasetFacts("c" * 64, group="flowers")
    return PlannedCell(cell, "k", facts, 2, results=results, equivalence="e", family="trees")


def stored(run):
    """Return a run as it is read back."""
    return StoredRun(
        key=run.key,
        machine=run.machine,
        name=run.name,
        status=run.status,
        n_splits_done=run.n_splits_done,
        params=run.params,
        tags={f"kbench.{name}": value for name, value in run.tags.items()},
        metrics=run.metrics,
        start_ms=run.start_ms,
        end_ms=run.end_ms,
    )


def test_the_measure_that_a_suite_compares_comes_back_with_its_splits():
    run = as_run(planned(), "s", "m", ERROR)
    assert run.metrics["expected_error_sd"] == pytest.approx(0.0707, abs=1e-4)
    assert run.by_split["expected_error"] == {0: 0.4, 1: pytest.approx(0.3)}
    row = of_run(stored(run))
    assert row.by_split("expected_error") == {"0": 0.4, "1": pytest.approx(0.3)}
    assert row.by_split("accuracy") == {"0": 0.5, "1": 0.6}
    assert (row.equivalence, row.family, row.group) == ("e", "trees", "flowers")
    assert row.value("expected_error") == pytest.approx(0.35)


def test_the_budget_that_a_suite_claims_comes_back():
    run = as_run(planned(), "s", "m", budget="seconds")
    assert budget_of([stored(run), stored(run), stored(as_run(planned(), "s", "m"))]) == "seconds"
    assert "budget" not in as_run(planned(), "s", "m").tags


def test_a_run_of_a_regression_task_has_no_accuracy():
    one = planned()
    results = {
        i: dataclasses.replace(result, measures={"rmse": 2.0 + i, "rmse_standardised": 0.5})
        for i, result in one.results.items()
    }
    facts = dataclasses.replace(one.dataset, task="regression")
    one = dataclasses.replace(one, dataset=facts, results=results)
    run = as_run(one, "s", "m", MEASURES["rmse_standardised"])
    assert run.metrics["rmse_sd"] == pytest.approx(0.7071, abs=1e-4)
    assert run.by_split["rmse"] == {0: 2.0, 1: 3.0}
    assert not [name for name in (*run.tags, *run.by_split, *run.metrics) if "accuracy" in name]
    row = of_run(stored(run))
    assert row.task == "regression"
    assert row.by_split("rmse") == {"0": 2.0, "1": 3.0}
    assert measure_of([stored(run)]).in_units is False


def test_what_the_search_saw_comes_back():
    row = of_run(stored(as_run(planned(), "s", "m")))
    assert row.search == {
        "learner.alpha": [[0.0, 0.5, 0.0, 2, False], [1.0, 0.500001, 0.0, 2, True]]
    }


def test_a_grid_that_fits_into_no_tag_stays_in_the_artifact():
    run = as_run(planned(2000), "s", "m")
    assert run.tags.get("search_curves", "{}") == "{}"
    assert all(len(tag) <= TAG_CHARS for tag in run.tags.values())
    assert len(json.loads(run.artifacts["search.json"])["0"]) == 2000


def test_what_a_map_says_of_itself_is_kept_with_the_names_of_columns():
    first = planned()
    said = {"columns": [0, 2], "round": 1}
    done = {
        i: dataclasses.replace(
            result, details=dataclasses.replace(result.details, map_details=said)
        )
        for i, result in first.results.items()
    }
    names = ("a", "b", "c", "d")
    facts = dataclasses.replace(first.dataset, feature_names=names)
    run = as_run(dataclasses.replace(first, results=done, dataset=facts), "s", "m")
    assert json.loads(run.artifacts["map.json"]) == {"0": said, "1": said}
    expected = {**said, "split": 0, "feature_names": ["a", "b", "c"]}
    assert of_run(stored(run)).map_details == expected
    assert "map.json" not in as_run(first, "s", "m").artifacts

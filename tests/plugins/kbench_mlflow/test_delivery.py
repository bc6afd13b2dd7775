"""What the MLflow run of a cell says beside its means, for tests and charts over datasets."""

import dataclasses
import json

import pytest

from kbench import Cell, Metric, Protocol, Ref
from kbench.evaluation.definitions import METRICS
from kbench.planning.planned import PlannedCell
from kbench.records import DatasetFacts, Details, Result
from kbench.results.row_builders import make_full_row
from kbench_mlflow.reading import budget_of, metric_of, row_of_run
from kbench_mlflow.runs import TAG_CHARS, build_run
from tests.support.tracking_runs import as_stored

ERROR = Metric("expected_error", "lower")


def planned(n_values=2):
    cell = Cell(Ref("iris"), Ref("rff"), Ref("ridge"), Protocol())
    search = [
        {"learner.alpha": float(v), "values": [0.5 + v / 1e6], "converged": True}
        for v in range(n_values)
    ]
    results = {
        i: Result(
            f"t{i}",
            "k",
            i,
            "ok",
            metrics={
                "accuracy": 0.5 + i / 10,
                "expected_error": 0.4 - i / 10,
                "fit_time_s": 1.0,
                "predict_time_s": 1.0,
                "search_time_s": 1.0,
            },
            details=Details(search=search, split_hash=f"h{i}"),
            version="1",
            machine_speed_s=0.1,
            started_ms=1,
            ended_ms=2,
        )
        for i in range(2)
    }
    facts = DatasetFacts("c" * 64, dataset_family="flowers")
    return PlannedCell(cell, "k", facts, 2, results=results, equivalence="e", family="trees")


def stored(run):
    """Return a run as it is read back."""
    return as_stored(
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


def test_the_metric_that_a_suite_compares_comes_back_with_its_splits():
    run = build_run(planned(), "s", "m", ERROR)
    assert run.metrics["expected_error_sd"] == pytest.approx(0.0707, abs=1e-4)
    assert run.by_split["expected_error"] == {0: 0.4, 1: pytest.approx(0.3)}
    row = row_of_run(stored(run))
    assert row.by_split("expected_error") == {"0": 0.4, "1": pytest.approx(0.3)}
    assert row.by_split("accuracy") == {"0": 0.5, "1": 0.6}
    assert (row.equivalence, row.family, row.dataset_family) == ("e", "trees", "flowers")
    assert row.value("expected_error") == pytest.approx(0.35)


def test_the_budget_that_a_suite_claims_comes_back():
    run = build_run(planned(), "s", "m", budget="seconds")
    assert (
        budget_of([stored(run), stored(run), stored(build_run(planned(), "s", "m"))]) == "seconds"
    )
    assert "equal_budget" not in build_run(planned(), "s", "m").tags


def test_a_run_of_a_regression_task_has_no_accuracy():
    one = planned()
    results = {
        i: dataclasses.replace(result, metrics={"rmse": 2.0 + i, "rmse_standardized": 0.5})
        for i, result in one.results.items()
    }
    facts = dataclasses.replace(one.dataset, task="regression")
    one = dataclasses.replace(one, dataset=facts, results=results)
    run = build_run(one, "s", "m", METRICS["rmse_standardized"])
    assert run.metrics["rmse_sd"] == pytest.approx(0.7071, abs=1e-4)
    assert run.by_split["rmse"] == {0: 2.0, 1: 3.0}
    assert not [name for name in (*run.tags, *run.by_split, *run.metrics) if "accuracy" in name]
    row = row_of_run(stored(run))
    assert row.task == "regression"
    assert row.by_split("rmse") == {"0": 2.0, "1": 3.0}
    assert metric_of([stored(run)]).in_units is False


def test_what_the_search_saw_comes_back():
    row = row_of_run(stored(build_run(planned(), "s", "m")))
    assert row.search == {
        "learner.alpha": [[0.0, 0.5, 0.0, 2, False], [1.0, 0.500001, 0.0, 2, True]]
    }


def of_seeds(n_seeds):
    """Return a cell whose splits were measured with several seeds of the map."""
    made = planned()
    values = {i: [0.1 + i / 10 + k / 1e7 for k in range(n_seeds)] for i in made.results}
    results = {
        i: dataclasses.replace(
            result.with_metric("n_map_seeds", n_seeds),
            details=dataclasses.replace(
                result.details, by_seed={"accuracy": values[i], "expected_error": values[i]}
            ),
        )
        for i, result in made.results.items()
    }
    return dataclasses.replace(made, results=results), values


def test_scores_by_seed_come_back():
    made, values = of_seeds(3)
    run = build_run(made, "s", "m", ERROR)
    row = row_of_run(stored(run))
    assert [list(row.by_seed("accuracy", str(i))) for i in values] == list(values.values())
    assert row.by_seed("expected_error", "1") == values[1]
    assert row.to_json()["values_by_seed"] == make_full_row(made, "m", ERROR).values_by_seed
    artifact = json.loads(run.artifacts["seeds.json"])
    assert artifact["0"] == {"accuracy": values[0], "expected_error": values[0]}
    assert "seeds.json" not in build_run(planned(), "s", "m").artifacts
    edited = dataclasses.replace(run, tags=run.tags | {"accuracy_by_seed": '{"0": "x"}'})
    assert row_of_run(stored(edited)).by_seed("accuracy", "0") == ()


def test_scores_by_seed_that_fit_into_no_tag_are_not_known():
    run = build_run(of_seeds(1000)[0], "s", "m")
    assert "accuracy_by_seed" not in run.tags
    assert row_of_run(stored(run)).by_seed("accuracy", "0") == ()
    assert len(json.loads(run.artifacts["seeds.json"])["0"]["accuracy"]) == 1000


def test_a_map_without_a_seed_has_one_score():
    made = planned()
    results = {i: result.with_metric("n_map_seeds", 1.0) for i, result in made.results.items()}
    row = row_of_run(stored(build_run(dataclasses.replace(made, results=results), "s", "m")))
    assert row.by_seed("accuracy", "1") == [0.6]


def test_a_grid_that_fits_into_no_tag_stays_in_the_artifact():
    run = build_run(planned(2000), "s", "m")
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
    run = build_run(dataclasses.replace(first, results=done, dataset=facts), "s", "m")
    assert json.loads(run.artifacts["map.json"]) == {"0": said, "1": said}
    expected = {**said, "split": 0, "feature_names": ["a", "b", "c"]}
    assert row_of_run(stored(run)).map_details == expected
    assert "map.json" not in build_run(first, "s", "m").artifacts

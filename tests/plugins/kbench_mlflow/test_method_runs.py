"""The runs of methods: means by the rules of the report, written once."""

import pytest

from kbench.evaluation.definitions import METRICS
from kbench.records import ACCURACY
from kbench_mlflow.reading import row_of_run
from kbench_mlflow.runs import method_runs
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.summaries import MethodRun
from tests.support.report_rows import changed, regression_row, row
from tests.support.tracking_runs import a_run, client_of, live


def by_name(rows, metric=ACCURACY):
    return {run.name: run for run in method_runs(rows, metric)}


def test_means_are_over_the_datasets_that_all_methods_finished():
    rows = [
        row("iris", "a", accuracies=[0.9, 0.9], fit_time_s=1.0),
        row("wine", "a", accuracies=[0.7, 0.7], fit_time_s=4.0, dataset_family="g"),
        row("wine-2", "a", accuracies=[0.5, 0.5], fit_time_s=4.0, dataset_family="g"),
        row("iris", "b", accuracies=[0.8, 0.8]),
        row("wine", "b", accuracies=[0.8, 0.8], dataset_family="g"),
        row("wine-2", "b", accuracies=[0.8, 0.8], dataset_family="g"),
        row("digits", "a", accuracies=[0.1, 0.1]),
        row("digits", "b", status="error"),
    ]
    found = by_name(rows)
    assert set(found) == {"a + ridge", "b + ridge"}
    metrics = found["a + ridge"].metrics
    # related datasets count once; times are geometric means
    assert metrics["accuracy"] == pytest.approx((0.9 + 0.6) / 2)
    assert metrics["fit_time_s"] == pytest.approx(2.0)
    assert metrics["mean_rank"] == 1.5
    assert metrics["n_datasets"] == 3
    assert found["a + ridge"].params == {"feature_map": "a", "learner": "ridge"}
    assert found["a + ridge"].tags["datasets"] == "iris, wine, wine-2"
    assert found["a + ridge"].tags["left_out"] == "digits"


def test_each_finished_dataset_has_its_own_metric_whoever_else_finished_it():
    rows = [
        row("iris", "a", accuracies=[0.9, 0.7]),
        row("iris", "b", accuracies=[0.8, 0.8]),
        row("digits", "a", accuracies=[0.1, 0.3]),
        row("digits", "b", status="error"),
    ]
    found = by_name(rows)
    of_a, of_b = found["a + ridge"].metrics, found["b + ridge"].metrics
    assert of_a["iris: accuracy"] == pytest.approx(0.8)
    assert of_a["digits: accuracy"] == pytest.approx(0.2)
    assert of_b["iris: accuracy"] == pytest.approx(0.8)
    assert "digits: accuracy" not in of_b


def test_there_are_no_means_without_a_common_dataset_and_none_of_different_units():
    assert method_runs([row("iris", "a"), row("wine", "b")], ACCURACY) == []
    sizes = {"x": 1.0, "y": 9.0}
    rows = [regression_row(d, m, [1.0, 1.1], sd) for d, sd in sizes.items() for m in "ab"]
    metrics = by_name(rows, METRICS["rmse"])["a + ridge"].metrics
    assert "rmse" not in metrics
    assert metrics["fit_time_s"] == pytest.approx(0.01)


def test_a_time_that_was_not_measured_is_left_out():
    rows = [changed(row(d, "a"), search_time_s=0.0) for d in ("x", "y")]
    assert "search_time_s" not in by_name(rows)["a + ridge"].metrics
    assert by_name(rows)["a + ridge"].metrics["n_components"] == 30


@pytest.mark.slow
def test_runs_of_methods_are_written_once_and_are_no_cells(store_uri):
    store = Store(store_uri)
    experiment = store.experiment("trial")
    params = {"dataset": "iris", "feature_map": "a", "learner": "ridge"}
    cell = a_run(key="k", name="a + ridge on iris", params=params, metrics={"accuracy": 0.5})
    store.log(experiment, cell)
    rows = [row_of_run(run) for run in store.cells(experiment, "m1")]
    runs = method_runs(rows, ACCURACY)
    assert store.log_methods(experiment, "m1", runs) == 1
    assert store.log_methods(experiment, "m1", runs) == 0
    assert len(store.read("trial")) == 1
    assert len(live(store, experiment)) == 2
    # another machine's are left alone, changed ones are replaced
    assert store.log_methods(experiment, "m2", runs) == 1
    other = MethodRun("a + ridge", {"feature_map": "a"}, {"accuracy": 0.7, "x": float("nan")})
    assert store.log_methods(experiment, "m1", [other]) == 1
    found = [run for run in live(store, experiment) if run.data.tags["kbench.kind"] == "method"]
    assert sorted(run.data.metrics["accuracy"] for run in found) == [0.5, 0.7]
    assert {run.info.status for run in found} == {"FINISHED"}
    # a writer that was interrupted
    (mine,) = (run for run in found if run.data.tags["kbench.machine"] == "m1")
    client_of(store).set_terminated(mine.info.run_id, "KILLED")
    assert store.log_methods(experiment, "m1", [other]) == 1
    assert len(live(store, experiment)) == 3

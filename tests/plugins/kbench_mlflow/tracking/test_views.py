"""Views, the note and the report run of an experiment; the page itself is tested in a browser."""

import json
import re
from dataclasses import replace
from importlib.resources import files

import pytest

from kbench.errors import PluginError, StoreError
from kbench.records import Metric
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.summaries import on_dataset
from kbench_mlflow.tracking.upsert import owner
from kbench_mlflow.tracking.views import (
    TAG,
    WITHOUT_RUN,
    Facts,
    View,
    experiment_tags,
    ui_address,
)
from tests.support.tracking_runs import FAILED, a_run, client_of

TABLE = View(
    "kbench-t", "Table", "table", {"selectedColumns": ["metrics.`{metric}`", "metrics.`{plain}`"]}
)


def tags_of(store, experiment):
    return client_of(store).get_experiment(experiment.id).tags


def test_a_view_is_a_tag_that_new_and_old_servers_read(store, uci):
    store.present(uci, {TABLE.key: TABLE}, Metric("log_loss", "lower"))
    value = json.loads(tags_of(store, uci)[TAG + "kbench-t"])
    columns = ["metrics.`log_loss`", "metrics.`accuracy`"]
    assert value["name"] == "Table"
    assert value["createdAt"] == uci.created
    assert json.loads(value["state"]) == {"selectedColumns": columns}
    assert value["selectedColumns"] == columns
    key, text = TABLE.tag(Facts(), 0)
    assert json.loads(text)["selectedColumns"] == ["metrics.`accuracy`"]
    assert key == TAG + "kbench-t"


def test_what_is_there_already_is_not_written(store, uci, monkeypatch):
    store.present(uci, {TABLE.key: TABLE})
    writes = []
    client = client_of(store)
    monkeypatch.setattr(client, "set_experiment_tag", lambda *given: writes.append(given))
    store.present(uci, {TABLE.key: TABLE})
    assert writes == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("my data.csv", "`kbench report 'my data.csv'`"),
        ("a;b", "`kbench report 'a;b'`"),
        ("a`*b*`", "``kbench report 'a`*b*`'``"),
    ],
)
def test_the_command_in_the_note_can_be_copied(name, shown):
    note = experiment_tags(name, {}, Facts(), 1, {})["mlflow.note.content"]
    assert f": {shown} (run" in note
    present = {f"{WITHOUT_RUN}m1": "2 cells without a run: 2 unavailable", f"{WITHOUT_RUN}m2": ""}
    note = experiment_tags(name, {}, Facts(), 1, present)["mlflow.note.content"]
    assert ". 2 cells without a run: 2 unavailable. " in note


def test_the_note_says_what_means_cover_and_never_replaces_somebodys(store, uci):
    store.present(uci, {})
    note = tags_of(store, uci)["mlflow.note.content"]
    assert "\n" not in note
    assert "first 100 loaded runs only" in note
    assert "`kbench report uci`" in note
    client_of(store).set_experiment_tag(uci.id, "mlflow.note.content", "ours since May")
    client_of(store).set_experiment_tag(uci.id, "mlflow.experimentKind", "genai_development")
    store.present(uci, {TABLE.key: TABLE})
    tags = tags_of(store, uci)
    assert tags["mlflow.note.content"] == "ours since May"
    assert tags["mlflow.experimentKind"] == "genai_development"
    assert TAG + "kbench-t" in tags


def test_the_views_that_come_with_kbench():
    import kbench_dashboards

    given = [each for each in kbench_dashboards.kbench_dashboards() if "view" in each.name]
    views = [View.of(each.name, each.read_text(encoding="utf-8")) for each in given]
    assert {view.mode for view in views} == {"table", "chart"}
    for view in views:
        # runs of methods have the means: MLflow's groups would mix datasets
        kind = "cell" if view.key == "kbench-searches" else "method"
        assert view.state["searchFilter"].startswith(f"tags.`kbench.kind` = '{kind}'")
        assert "groupBy" not in view.state
        assert {"params.`feature_map`", "params.`learner`"} <= set(view.state["selectedColumns"])
        # servers before the limit was raised take 5,000 signs
        assert len(view.tag(Facts(), 1_700_000_000_000)[1]) < 5000
    assert files("kbench_dashboards").joinpath("methods.view.json").is_file()


MATRIX = View(
    "kbench-m",
    "Matrix",
    "table",
    {
        "selectedColumns": ["metrics.`{on_dataset}`", "metrics.`{chosen}`"],
        "columnWidths": {"name": 200, "metrics.`{on_dataset}`": 80},
        "charts": [
            {"uuid": "d-{on_dataset}", "metricKey": "{on_dataset}"},
            {"uuid": "s-{search}", "selectedMetrics": ["{chosen}", "{metric}"]},
        ],
    },
)


def state_of(store, experiment, view):
    return json.loads(json.loads(tags_of(store, experiment)[TAG + view.key])["state"])


def a_cell(key, dataset, **metrics):
    params = {"dataset": dataset, "feature_map": "rff", "learner": "ridge"}
    return a_run(key=key, name=key, params=params, metrics={"accuracy": 0.5, **metrics})


def test_datasets_and_searched_parameters_come_from_the_runs(store, uci):
    store.present(uci, {MATRIX.key: MATRIX, TABLE.key: TABLE})
    # an empty view would hide that there are no results yet
    assert TAG + MATRIX.key not in tags_of(store, uci)
    assert TAG + TABLE.key in tags_of(store, uci)
    c, gamma = "chosen.log10.learner.C", "chosen.feature_map.gamma"
    store.log(uci, a_cell("1", "wine", **{c: 1.0, gamma: 2.0}))
    store.log(uci, a_cell("2", "iris", **{c: 1.0}))
    store.log(uci, replace(FAILED, key="3", name="3", params={"dataset": "failed"}))
    store.log(uci, a_cell("4", "gone", **{"chosen.old": 1.0}))
    assert store.supersede(uci, "m1", {"4": {"5"}}) == 1
    store.present(uci, {MATRIX.key: MATRIX})
    iris, wine = "iris: accuracy", "wine: accuracy"
    names = [f"metrics.`{name}`" for name in (iris, wine)]
    assert state_of(store, uci, MATRIX) == {
        "selectedColumns": [*names, f"metrics.`{gamma}`", f"metrics.`{c}`"],
        "columnWidths": {"name": 200, **dict.fromkeys(names, 40 + 8 * len(iris))},
        "charts": [
            {"uuid": f"d-{iris}", "metricKey": iris},
            {"uuid": f"d-{wine}", "metricKey": wine},
            {"uuid": "s-1", "selectedMetrics": [gamma, c, "accuracy"]},
            {"uuid": "s-2", "selectedMetrics": [c, "accuracy"]},
        ],
    }


def test_names_of_datasets_are_names_of_metrics_and_nothing_else(store, uci):
    hostile = ['a`b"', "{metric}", "{chosen}", "ä", "ö", "x" * 400, "../etc"]
    for name in hostile:
        store.log(uci, a_cell(name, name))
    store.present(uci, {MATRIX.key: MATRIX})
    columns = state_of(store, uci, MATRIX)["selectedColumns"]
    assert len(set(columns)) == len(hostile)
    # the same names as those of the runs of methods
    assert set(columns) == {f"metrics.`{on_dataset('accuracy', name)}`" for name in hostile}
    for column in columns:
        assert re.fullmatch(r"metrics\.`[A-Za-z0-9_.\-/ :]{1,250}`", column)


def test_datasets_for_which_there_is_no_room_are_left_out():
    facts = Facts(on_dataset=tuple(f"dataset {i:03}: accuracy" for i in range(300)))
    text = MATRIX.tag(facts, 0)[1]
    shown = json.loads(json.loads(text)["state"])["selectedColumns"]
    assert len(text) <= 20_000
    assert 30 < len(shown) < 300
    assert shown == [f"metrics.`{name}`" for name in facts.on_dataset[: len(shown)]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "an object with name, mode and state"),
        ('{"name": 1, "mode": "table", "state": {}}', "name must be a str"),
        (
            '{"name": "a", "mode": "3d", "state": {}}',
            "mode must be one of 'table', 'chart', got '3d'",
        ),
    ],
)
def test_files_that_are_no_views_are_named(text, problem):
    with pytest.raises(PluginError, match=rf"my\.view\.json.*{problem}"):
        View.of("my.view.json", text)


def test_a_view_that_mlflow_would_refuse(store, uci):
    large = View("kbench-l", "Large", "table", {"selectedColumns": ["x" * 12_000]})
    value = json.loads(large.tag(Facts(), 0)[1])
    assert "selectedColumns" not in value  # twice is too much: for new servers only
    assert json.loads(value["state"]) == large.state
    with pytest.raises(PluginError, match="'Larger' is too large for MLflow"):
        View("l", "Larger", "table", {"selectedColumns": ["x" * 30_000]}).tag(Facts(), 0)


def test_addresses_name_the_view():
    from kbench_mlflow.tracking.run import Experiment

    experiment = Experiment("7", "uci", 0)
    chart = View("kbench-c", "C", "chart", {})
    assert ui_address("http://h:1/", experiment, chart) == (
        "http://h:1/#/experiments/7/runs?viewStateShareKey=kbench-c&compareRunsMode=CHART"
    )


# -- the report run ------------------------------------------------------------------------


def artifacts(store, run_id):
    import mlflow

    return {
        each.path: mlflow.artifacts.load_text(
            f"{client_of(store).get_run(run_id).info.artifact_uri}/{each.path}"
        )
        for each in client_of(store).list_artifacts(run_id)
    }


def test_one_report_run_per_machine_that_no_reader_takes_for_a_cell(store, uci):
    store.log(uci, a_run())
    first = store.log_report(uci, "m1", {"report.html": "<p>é</p>", "../main.csv": "a,b"})
    assert artifacts(store, first) == {"report.html": "<p>é</p>", "main.csv": "a,b"}
    second = Store(store.uri).log_report(uci, "m1", {"report.html": "new"})
    # a table without rows now is not left over from then
    assert artifacts(store, second) == {"report.html": "new"}
    store.log_report(uci, "m2", {"report.html": "other"})
    runs = client_of(store).search_runs([uci.id], "tags.`kbench.kind` = 'report'")
    assert sorted(run.data.tags["kbench.machine"] for run in runs) == ["m1", "m2"]
    run = client_of(store).get_run(second)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "report")
    assert run.data.tags["kbench.kind"] == "report"
    assert [row.key for row in store.read("uci", superseded=True)] == ["k1"]
    assert store.sweep(uci) == 0


def test_a_report_that_cannot_be_written_leaves_the_earlier_one(store, uci, monkeypatch):
    first = store.log_report(uci, "m1", {"report.html": "old"})

    def fail(*given):
        raise OSError("the disk is full")

    monkeypatch.setattr(client_of(store), "log_text", fail)
    with pytest.raises(StoreError, match="the disk is full"):
        store.log_report(uci, "m1", {"report.html": "new"})
    (run,) = client_of(store).search_runs([uci.id])
    assert (run.info.run_id, run.info.status) == (first, "FINISHED")


def test_a_report_whose_writer_was_killed_does_not_run_for_ever(store, uci):
    tags = {**owner(), "kbench.kind": "report", "kbench.machine": "m1"}
    client_of(store).create_run(uci.id, tags={**tags, "kbench.pid_start": "another"})
    alive = client_of(store).create_run(uci.id, tags=tags)
    assert store.sweep(uci) == 1
    (run,) = client_of(store).search_runs([uci.id], "attributes.status = 'RUNNING'")
    assert run.info.run_id == alive.info.run_id


def test_reports_that_were_written_twice_become_one(store, uci):
    first = store.log_report(uci, "m1", {})
    tags = {"kbench.kind": "report", "kbench.machine": "m1"}
    client_of(store).create_run(uci.id, tags=tags)
    store.log_report(uci, "m1", {"report.html": "x"})
    runs = client_of(store).search_runs([uci.id])
    assert len(runs) == 1
    assert runs[0].info.status == "FINISHED"
    assert first


@pytest.mark.parametrize(("better", "ascending"), [("higher", False), ("lower", True)])
@pytest.mark.parametrize("name", ["methods", "charts", "datasets", "searches"])
def test_the_best_runs_come_first_whatever_the_direction(name, better, ascending):
    text = files("kbench_dashboards").joinpath(f"{name}.view.json").read_text(encoding="utf-8")
    view = View.of(f"{name}.view.json", text)
    state = json.loads(view.tag(Facts(Metric("my_error", better), "rmse"), 0)[1])
    assert state["orderByAsc"] is ascending
    assert state["orderByKey"] == "metrics.`my_error`"
    assert "accuracy" not in json.dumps(state)

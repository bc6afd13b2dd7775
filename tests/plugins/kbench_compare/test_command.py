"""`kbench compare` on stores made up here; `kbench report` keeps its page in one."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kbench.cli.app import app
from kbench.errors import KbenchError, SuiteError
from kbench_compare.command import _parse_side
from kbench_mlflow.tracking.store import Store
from tests.support.tracking_runs import a_run

ACCURACIES = (0.9, 0.92, 0.88, 0.9, 0.91)


def cell(dataset="iris", accuracies=ACCURACIES, seconds=0.1, **changes):
    """Return a run as deliveries write it."""
    by_split = {str(i): value for i, value in enumerate(accuracies)}
    times = dict.fromkeys(by_split, seconds)
    tags = {
        "suite": "trial",
        "version": "0.1.0",
        "n_splits": "5",
        "accuracy_by_split": json.dumps(by_split),
        "fit_time_s_by_split": json.dumps(times),
        "predict_time_s_by_split": json.dumps(times),
        "split_hash": json.dumps({split: f"{dataset}-{split}" for split in by_split}),
        "machine_speed_s": "0.01",
    }
    given = {
        "key": f"key of {dataset}",
        "name": f"rff + ridge on {dataset}",
        "params": {"dataset": dataset, "feature_map": "rff", "learner": "ridge"},
        "metrics": {"accuracy": sum(accuracies) / 5, "n_train": 120.0, "n_test": 30.0},
        "n_splits_done": 5,
        "by_split": {},
        "tags": tags | changes.pop("tags", {}),
        "dataset": None,
    }
    return a_run(**(given | changes))


WORSE = tuple(value - 0.1 + 0.001 * i for i, value in enumerate(ACCURACIES))


@pytest.fixture
def stores(migrated_store, tmp_path, monkeypatch):
    """Return what makes a store of runs, and yields its path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def make(name, *runs, superseding=()):
        path = shutil.copy(migrated_store, tmp_path / name)
        store = Store(f"sqlite:///{path}")
        experiment = store.experiment("trial")
        for run in (*superseding, *runs):
            store.log(experiment, run)
        store.supersede(experiment, "m1", {run.name: [run.key] for run in runs})
        return path

    return make


def kbench_compare(*arguments):
    found = CliRunner().invoke(app, ["compare", *arguments])
    if isinstance(found.exception, KbenchError):
        return 2, str(found.exception)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.stdout


def test_a_against_itself_passes_and_a_regression_does_not(stores):
    stores("a.db", cell(), cell("wine"), cell("only-here"))
    stores("b.db", cell(accuracies=WORSE), cell("wine", seconds=0.5))
    assert kbench_compare("trial@a.db", "trial@a.db", "--fail-on", "metric,time")[0] == 0
    code, printed = kbench_compare("trial@a.db", "trial@b.db")
    assert code == 1
    assert "regression accuracy: rff + ridge on iris" in printed
    assert "only in A: 1 cell" in printed
    assert "rff + ridge on only-here" in printed
    assert "regression missing: rff + ridge on only-here" in printed
    assert "2 regressions of accuracy and missing in 2 cells that both sides have" in printed
    code, printed = kbench_compare("trial@a.db", "trial@b.db", "--fail-on", "time")
    assert code == 1
    assert "regression fit_time_s: rff + ridge on wine" in printed
    assert "regression accuracy" not in printed
    assert kbench_compare("trial@a.db", "trial@b.db", "--fail-on", "none")[0] == 0
    assert kbench_compare("trial@b.db", "trial@a.db", "--fail-on", "metric,time")[0] == 0
    wine = ("--dataset", "win*")
    assert kbench_compare("trial@a.db", "trial@b.db", *wine)[0] == 0


def test_what_is_missing_fails_unless_left_out(stores):
    stores("a.db", cell(), cell("wine"), cell("wdbc"))
    gone = {"status": "unavailable", "n_splits_done": 0, "metrics": {}}
    empty = dict.fromkeys(("accuracy_by_split", "split_hash"), "{}")
    stores("b.db", cell(), cell("wine", tags=empty, **gone))
    code, printed = kbench_compare("trial@a.db", "trial@b.db")
    assert code == 1
    assert "regression unavailable: rff + ridge on wine" in printed
    assert "regression missing: rff + ridge on wdbc" in printed
    assert kbench_compare("trial@a.db", "trial@b.db", "--fail-on", "missing")[0] == 1
    assert kbench_compare("trial@a.db", "trial@b.db", "--fail-on", "metric,time")[0] == 0


def test_none_fails_on_nothing(stores):
    stores("a.db", cell())
    stores("b.db", cell(status="crashed", n_splits_done=0, tags={"split_hash": "{}"}))
    assert kbench_compare("trial@a.db", "trial@b.db")[0] == 1
    assert kbench_compare("trial@a.db", "trial@b.db", "--fail-on", "none")[0] == 0


def test_the_default_store_and_files(stores, tmp_path):
    stores("mlflow.db", cell())
    stores("b.db", cell(accuracies=WORSE))
    done = CliRunner().invoke(app, ["results", "trial", "--format", "json"])
    (tmp_path / "baseline.json").write_text(done.stdout)
    code, printed = kbench_compare("baseline.json", "trial", "--format", "json")
    assert code == 0
    (row,) = json.loads(printed)
    assert (row["accuracy_change"], row["accuracy_verdict"]) == (0.0, "same")
    assert row["fit_time_s_change"] == pytest.approx(1.0)
    code, printed = kbench_compare("baseline.json", "trial@b.db", "--format", "csv")
    assert code == 1
    assert printed.splitlines()[0].startswith("dataset,feature_map,learner,side")
    for form, sign in (("latex", r"\begin{tabular}"), ("markdown", "| iris |")):
        assert sign in kbench_compare("baseline.json", "trial", "--format", form)[1]


def test_a_file_of_several_machines_or_with_a_cell_twice_is_refused(stores, tmp_path):
    stores("mlflow.db", cell(), replace(cell(accuracies=WORSE), machine="m2"))
    every = (
        CliRunner().invoke(app, ["results", "trial", "--machine", "all", "--format", "json"]).stdout
    )
    (tmp_path / "every.json").write_text(every)
    for arguments, side in (
        (("every.json", "trial@machine=m1"), "A"),
        (("trial@machine=m1", "every.json"), "B"),
    ):
        code, printed = kbench_compare(*arguments)
        assert code == 2
        assert f"{side} contains results of 2 machines (m1, m2)" in printed
    rows = [each | {"machine": "m1"} for each in json.loads(every)]
    (tmp_path / "twice.json").write_text(json.dumps(rows))
    code, printed = kbench_compare("twice.json", "trial@machine=m1")
    assert code == 2
    assert "A contains rff + ridge on iris twice" in printed


def test_a_metric_of_a_file_is_text(stores, tmp_path):
    stores("mlflow.db", cell())
    printed = CliRunner().invoke(app, ["results", "trial", "--format", "json"]).stdout
    rows = json.loads(printed.replace('"accuracy"', '"[/b]x"'))
    (tmp_path / "nasty.json").write_text(json.dumps(rows))
    code, printed = kbench_compare("nasty.json", "nasty.json")
    assert code == 0
    assert "[/b]x A" in printed


def test_why_times_are_not_judged_is_a_line_per_reason(stores):
    busy = [
        cell(name, key=name, name=name, tags={"contention": f"{i} slots on 1 physical cores"})
        for i, name in enumerate(("iris", "wine"), 2)
    ]
    stores("a.db", *busy)
    stores("b.db", *busy)
    _, printed = kbench_compare("trial@a.db", "trial@b.db")
    assert [line for line in printed.splitlines() if line.startswith("  ?")] == [
        "  ? 2 cells: the machine was loaded"
    ]


def test_versions_times_and_machines(stores):
    old = cell(key="old", accuracies=WORSE, tags={"version": "0.0.9"}, end_ms=1_600_000_000_000)
    elsewhere = replace(cell(accuracies=WORSE), machine="m2")
    stores("mlflow.db", cell(), elsewhere, superseding=[old])
    assert kbench_compare("trial@machine=m1", "trial@version=0.0.9,machine=m1")[0] == 1
    assert kbench_compare("trial@until=2021-01-01,machine=m1", "trial@machine=m1")[0] == 0
    assert kbench_compare("trial@machine=m1", "trial@machine=m2")[0] == 1
    code, printed = kbench_compare("trial@version=7,machine=m1", "trial@machine=m1")
    assert code == 2
    assert "matches no run; versions: 0.0.9, 0.1.0" in printed


def test_what_is_refused_is_one_message(stores, tmp_path):
    stores("mlflow.db", cell())
    other = cell(tags={"split_hash": json.dumps({str(i): "other" for i in range(5)})})
    stores("b.db", other)
    (tmp_path / "bare.json").write_text('[{"dataset": "iris"}]')
    (tmp_path / "broken.json").write_text("{")
    for arguments, problem in [
        (("trial", "trial@b.db"), "1 of 1 common cells have different splits (iris)"),
        (
            ("trial", "trial", "--fail-on", "speed"),
            "--fail-on must be one of 'metric', 'time', 'missing', or none alone, got 'speed'",
        ),
        (("trial", "trial", "--fail-on", "none,time"), "or none alone, got 'none'"),
        (
            ("trial", "trial", "--time-factor", "0.5"),
            "--time-factor must be a finite number >= 1, got 0.5",
        ),
        (("trial", "trial@here"), "'here' is neither a store"),
        (("trial", "trial@until=soon"), "until must be a date or a time"),
        (("trial", "trial@version=,b.db"), "version has no value"),
        (("trial", "trial@machine=all"), "machine must be the id of a single machine, got 'all'"),
        (("trial", "@b.db"), "the name of a suite comes first"),
        (("bare.json", "trial"), "row 0: feature_map is missing or not a string"),
        (("broken.json", "trial"), "broken.json is not JSON"),
        (("none.json", "trial"), "cannot read none.json"),
        (("trial", "trial", "--dataset", "wine"), "matches none of trial: iris"),
        (("trial", "unheard-of"), "has no runs of 'unheard-of'"),
    ]:
        code, printed = kbench_compare(*arguments)
        assert code == 2, (arguments, printed)
        assert problem in printed


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b"", "a.json is not JSON"),
        ("a.json", b"\xff\xfe[", "a.json is not JSON"),
        ("a.json", b"PAR1\x00\x01", "a.json is not JSON"),
        ("a.json", b"[" * 100_000, "a.json is not JSON"),
        ("a.json", b"null", "has no results"),
        ("a.json", b"[]", "has no results"),
        ("a.json", b'{"dataset": []}', "has no results"),
        ("a.json", b"[[1]]", "row 0: not an object"),
        ("a.csv", b"dataset,accuracy\n", "a.csv is a file, and those of results are .json"),
        ("a.parquet", b"PAR1\x00", "a.parquet is a file, and those of results are .json"),
    ],
)
def test_a_file_that_holds_no_results_is_one_message(stores, tmp_path, name, content, problem):
    stores("mlflow.db", cell())
    (tmp_path / name).write_bytes(content)
    code, printed = kbench_compare(name, "trial")
    assert code == 2
    assert problem in printed
    assert len(printed) < 500


HUGE = "x" * 1_000_000
ODD = [
    ({"dataset": 7}, "dataset is missing or not a string"),
    ({"dataset": HUGE}, "dataset has 1000000 characters"),
    ({"learner": "\x1b[2Jridge"}, "learner contains control characters"),
    ({"learner": "\ud800"}, "learner contains control characters"),
    ({"better": "[/b]"}, "better must be higher or lower"),
    ({"machine_speed_s": "fast"}, "machine_speed_s contains values other than numbers"),
    ({"machine_speed_s": "nan"}, "machine_speed_s contains values other than numbers"),
    ({"n_test": "30"}, "n_test must be a number of rows"),
    ({"n_test": True}, "n_test must be a number of rows"),
    ({"n_train": -1}, "n_train must be a number of rows"),
    ({"n_train": float("nan")}, "n_train must be a number of rows"),
    ({"split_hash": ["a"]}, "split_hash is missing"),
    ({"split_hash": {"0": ["a"]}}, "split_hash must contain strings only"),
    ({"protocol": {"threads": ["1"]}}, "protocol must contain strings only"),
    ({"protocol": {"n_folds": 5}}, "protocol must contain strings only"),
    ({"values_by_split": None}, "values_by_split is missing"),
    (
        {"values_by_split": {"accuracy": [0.9]}},
        "values_by_split.accuracy must contain finite numbers",
    ),
    ({"values_by_split": {"accuracy": {"0": None}}}, "values_by_split.accuracy"),
    ({"values_by_split": {"accuracy": {"0": float("nan")}}}, "values_by_split.accuracy"),
    ({"values_by_split": {"fit_time_s": {"0": float("inf")}}}, "values_by_split.fit_time_s"),
    ({"values_by_split": {"accuracy": {"0": 10**400}}}, "values_by_split.accuracy"),
]


@pytest.fixture(scope="module")
def printed_row(migrated_store, tmp_path_factory):
    """A row as `kbench results` prints it."""
    path = shutil.copy(migrated_store, tmp_path_factory.mktemp("printed"))
    store = Store(f"sqlite:///{path}")
    store.log(store.experiment("trial"), cell())
    words = ["results", "trial", "--format", "json", "--store", store.uri]
    (row,) = json.loads(CliRunner().invoke(app, words).stdout)
    return row


@pytest.mark.parametrize(("changes", "problem"), ODD)
def test_a_row_of_a_file_that_cannot_be_compared_is_one_message(
    printed_row, tmp_path, monkeypatch, changes, problem
):
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text(json.dumps([printed_row | changes]))
    Path("good.json").write_text(json.dumps([printed_row]))
    for sides in (("a.json", "good.json"), ("good.json", "a.json")):
        code, printed = kbench_compare(*sides)
        assert code == 2
        assert f": {problem}" in printed
        if {"dataset", "learner"} & changes.keys():
            assert printed.startswith("a.json, row 0")
        else:
            assert printed.startswith(f"a.json, row 0 (rff + ridge on iris): {problem}")
        assert len(printed) < 500


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        ({"accuracy_by_split": '{"0": "high"}'}, "values_by_split.accuracy"),
        ({"accuracy_by_split": '{"0": NaN}'}, "values_by_split.accuracy"),
        ({"fit_time_s_by_split": '{"0": 1e999}'}, "values_by_split.fit_time_s"),
        ({"split_hash": '{"0": [1]}'}, "split_hash must contain strings only"),
        ({"machine_speed_s": "soon"}, "machine_speed_s contains values other than numbers"),
        ({"metric": "\x1b[2J"}, "metric contains control characters"),
    ],
)
def test_a_run_that_somebody_has_edited_is_one_message(stores, tags, problem):
    stores("mlflow.db", cell(tags=tags))
    code, printed = kbench_compare("trial", "trial")
    assert code == 2
    assert f"trial, row 0 (rff + ridge on iris): {problem}" in printed


def test_tags_that_nothing_is_computed_with_may_be_anything(stores):
    tags = {"n_splits": "many", "search_curves": "[" * 4000, "loss_by_split": "[1"}
    tags |= {"better": "sideways", "notes": "[/bold]", "at_boundary": "{"}
    stores("mlflow.db", cell(tags=tags))
    assert kbench_compare("trial", "trial")[0] == 0
    assert CliRunner().invoke(app, ["results", "trial", "--format", "json"]).exit_code == 0


def test_rows_of_one_file_compare_one_thing(stores, tmp_path):
    stores("mlflow.db", cell(), cell("wine"))
    printed = CliRunner().invoke(app, ["results", "trial", "--format", "json"]).stdout
    rows = json.loads(printed)
    rows[1]["metric"] = "log_loss"
    (tmp_path / "a.json").write_text(json.dumps(rows))
    code, printed = kbench_compare("a.json", "trial")
    assert code == 2
    assert "accuracy (higher is better) and log_loss (higher is better)" in printed


def test_names_are_text(stores):
    nasty = "[bold]=1+1[/bold] | x"
    stores("mlflow.db", cell(nasty))
    assert nasty in kbench_compare("trial", "trial")[1]
    assert "'" + nasty not in kbench_compare("trial", "trial", "--format", "csv")[1]
    formula = "=1+1"
    stores("c.db", cell(formula))
    assert "\n'=1+1," in kbench_compare("trial@c.db", "trial@c.db", "--format", "csv")[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uci", ("uci", {})),
        ("uci@http://h:5000", ("uci", {"store": "http://h:5000"})),
        ("uci@machine=m,version=1", ("uci", {"machine": "m", "version": "1"})),
        ("u.toml@store=mysql://a@b/c?x=1,2", ("u.toml", {"store": "mysql://a@b/c?x=1,2"})),
    ],
)
def test_sides(text, expected):
    assert _parse_side(text) == expected


def test_a_side_that_is_no_side():
    with pytest.raises(SuiteError, match="neither a store"):
        _parse_side("uci@versoin=1")


def test_a_report_is_kept_in_mlflow_unless_told_otherwise(stores, tmp_path):
    import mlflow

    path = stores("mlflow.db", cell(), cell("wine"))
    page = ("report", "trial", "-o", "page.html")
    assert "run report" not in CliRunner().invoke(app, [*page, "--no-log"]).stdout
    for _ in range(2):
        assert "run report" in CliRunner().invoke(app, page).stdout
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}")
    experiment = client.get_experiment_by_name("trial")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`kbench.kind` = 'report'")
    assert run.data.tags["kbench.machine"] == "m1"
    kept = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/report.html")
    assert kept == (tmp_path / "page.html").read_text(encoding="utf-8")
    names = {each.path for each in client.list_artifacts(run.info.run_id, "tables")}
    assert {"tables/scores.csv", "tables/scores.tex", "tables/cells.csv"} <= names
    assert len(Store(f"sqlite:///{path}").read("trial")) == 2

"""`kbench report` and `kbench plot`, from the runs of a store to files."""

import dataclasses
import re

import pytest
from typer.testing import CliRunner

from kbench.cli.app import app
from kbench.errors import KbenchError
from kbench.registry.installed import Plugin
from kbench.registry.registry import build
from kbench_mlflow.tracking.store import Store
from kbench_reporting.page import page
from tests.support.report_rows import content, grid
from tests.support.tracking_runs import as_stored

STORE = ["--store", "http://nowhere.invalid"]


def runs(n_datasets=3, n_methods=3):
    """Return what a store would hold of made-up rows."""
    import json

    return [
        as_stored(
            key=" ".join(row.labels),
            machine="m1",
            name=" ".join(row.labels),
            status="ok",
            n_splits_done=row.n_splits_done,
            params={name: row.value(name) for name in ("dataset", "feature_map", "learner")},
            tags={
                "kbench.n_splits": str(row.n_splits),
                "kbench.accuracy_by_split": json.dumps(row.by_split("accuracy")),
                "kbench.split_hash": json.dumps(row.split_hash),
                "kbench.version": "0.1.0",
            },
            metrics=row.metrics,
            start_ms=1_700_000_000_000,
            end_ms=1_700_000_000_001,
        )
        for row in grid(n_datasets, n_methods)
    ]


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.setattr(
        Store, "read", lambda self, name, superseded=False: runs() if name == "trial" else []
    )
    monkeypatch.setattr(Store, "tags", lambda self, name: {})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_report_writes_one_page_named_after_the_suite(store):
    done = call("report", "trial", *STORE)
    assert done.exit_code == 0
    assert "9 cells" in done.stdout
    text = (store / "trial.html").read_text(encoding="utf-8")
    for run in runs():
        assert f'data-v="{run.metrics["accuracy"]}"' in text


def test_report_of_what_is_not_there_is_an_error(store):
    for arguments, message in (
        (["report", "nothing"], "has no runs of 'nothing'"),
        (["report", "uci-smal"], "has no runs of 'uci-smal'; did you mean 'uci-small'?"),
        (["report", "trial", "--exclude-method", "rff"], "--exclude-method 'rff'"),
        (["report", "trial", "--machine", "all"], "several machines"),
        (["report", "trial", "-o", "no/such/folder.html"], "cannot write"),
        (["report", "trial", "--table", "scors"], "no table 'scors'; did you mean 'scores'"),
        (
            ["report", "trial", "--table", "scores", "--format", "html"],
            "markdown or json for one table",
        ),
        (["plot", "trial", "ranks", "-o", "picture.gif"], ".pdf, .png or .svg"),
        (["plot", "trial", "rank", "-o", "picture.svg"], "did you mean 'ranks'"),
    ):
        with pytest.raises(KbenchError, match=message):
            call(*arguments, *STORE)
    assert not list(store.iterdir())


@pytest.mark.slow
def test_each_table_can_be_printed_in_each_form(store):
    from kbench.report.tables import table_names

    names = list(table_names())
    listed = call("report", "trial", "--list-tables")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == names
    best = max(run.metrics["accuracy"] for run in runs())
    for form, words in (
        ("latex", "\\toprule"),
        ("csv", "dataset,"),
        ("markdown", "| dataset |"),
        ("json", '"dataset": "data-0"'),
    ):
        for name in names:
            done = call("report", "trial", "--table", name, "--format", form, *STORE)
            assert done.exit_code == 0
        done = call("report", "trial", "--format", form, *STORE)  # scores is the default
        assert words in done.stdout
        shown = f"{best:.4f}" if form in ("latex", "markdown") else str(best)
        assert shown in done.stdout
    assert not list(store.iterdir())
    call("report", "trial", "--table", "pairs", "--format", "csv", "-o", "pairs.csv", *STORE)
    lines = (store / "pairs.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(
        "first,second,difference,low,high,median,median_low,median_high,won,"
    )
    assert len(lines) == 4


def test_a_table_is_as_on_the_page(store):
    import csv
    import io

    call("report", "trial", *STORE)
    page_text = (store / "trial.html").read_text(encoding="utf-8")
    for name in ("scores", "methods", "ranks", "pairs"):
        done = call("report", "trial", "--table", name, "--format", "csv", *STORE)
        for line in csv.DictReader(io.StringIO(done.stdout)):
            for column, value in line.items():
                hidden = column.endswith("(sd)") or column == "predict_time_s"
                if not hidden and "." in value and value.replace(".", "").isdigit():
                    assert f'data-v="{value}"' in page_text, (name, column, value)


@pytest.mark.parametrize("kind", ["metric-vs-fit-time", "ranks", "nbcs-two-polytopes"])
def test_plot_writes_a_picture(store, kind):
    done = call("plot", "trial", kind, "-o", "picture.png", *STORE)
    assert done.exit_code == 0
    assert (store / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_results_give_the_same_picture(store):
    for name in ("one.svg", "two.svg"):
        call("plot", "trial", "ranks", "-o", name, *STORE)
    assert (store / "one.svg").read_bytes() == (store / "two.svg").read_bytes()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ content.__class__.__init__.__globals__ }}", "SecurityError: access to attribute"),
        ("{{ content.rows.clear() }}", "SecurityError: "),
        ("{% if %}", "TemplateSyntaxError: "),
        ("{{ missing.attribute }}", "UndefinedError: "),
    ],
)
def test_a_section_that_fails_or_reaches_for_code_is_left_out(plugin_of, tmp_path, template, why):
    section = tmp_path / "bad.html.j2"
    section.write_text(f"<h2>Bad</h2>{template}", encoding="utf-8")
    registry = build([plugin_of(kbench_dashboards=[section])])
    results = content(grid(2, 2))
    text = page(results, registry)
    assert f"the section bad.html.j2 cannot be shown: {why}" in text
    assert "<h2>Bad</h2>" not in text
    assert len(results.rows) == 4


def test_sections_of_plugins_are_on_the_page(tmp_path):
    import kbench
    import kbench_dashboards

    class Mine:
        @kbench.hookimpl
        def kbench_dashboards(self):
            section = tmp_path / "mine.html.j2"
            section.write_text("<h2>Mine</h2>{{ content.suite }}{{ '<b>' }}", encoding="utf-8")
            return [section]

    registry = build(
        [
            Plugin("dashboards", "kbench-core", "1", lambda: kbench_dashboards),
            Plugin("mine", "mine", "1", Mine),
        ]
    )
    assert not any(plugin.reason for plugin in registry.plugins)
    text = page(content(grid(2, 2)), registry)
    assert "<section><h2>Mine</h2>trial&lt;b&gt;</section>" in text
    assert "What the columns mean" in text


def test_a_table_is_laid_out_for_a_paper(store):
    arguments = ("report", "trial", "--table", "scores", "--format", "latex")
    layout = ("--transpose", "--digits", "2", "--caption", "50 % of trial", "--label", "tab:t")
    lines = call(*arguments, *layout, *STORE).stdout.splitlines()
    assert lines[2] == r"\caption{50 \% of trial}"
    assert any(line.startswith("method & data-0 & ") for line in lines)
    for wrong, message in (
        (("--method", "rff"), "--method is for one table"),
        (("--table", "scores", "--label", "tab:t"), "for --format latex"),
        (("--table", "scores", "--digits", "-1"), "--digits must be an integer"),
        (("--table", "pairs", "--transpose"), "columns of several kinds"),
        (("--table", "scores", "--dataset", "data-9"), "did you mean 'data-"),
    ):
        with pytest.raises(KbenchError, match=message):
            call("report", "trial", *wrong, *STORE)


def test_results_within_a_time_are_the_best_of_each_dataset_first(store):
    import csv
    import io

    def chosen(*options):
        done = call("results", "trial", *STORE, "--format", "csv", *options)
        assert done.exit_code == 0
        return list(csv.DictReader(io.StringIO(done.stdout)))

    every = chosen()
    times = sorted(float(row["fit_time_s"]) for row in every)
    limit = times[len(times) // 2]
    some = chosen("--max-fit-time", str(limit))
    assert 0 < len(some) < len(every)
    assert sorted(float(row["fit_time_s"]) for row in some) == [t for t in times if t <= limit]
    for dataset in dict.fromkeys(row["dataset"] for row in some):
        scores = [float(row["accuracy"]) for row in some if row["dataset"] == dataset]
        assert scores == sorted(scores, reverse=True)
    name = every[-1]["dataset"]
    assert {row["dataset"] for row in chosen("--dataset", name)} == {name}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-fit-time", "0"], "--max-fit-time must be a finite number > 0"),
        (["--max-fit-time", "1e-9"], "no method fits within 1e-09 s"),
        (["--dataset", "nothing"], "--dataset: 'nothing' is not among the results"),
        (["--dataset", "*", "--leaderboard"], "--dataset selects cells; leave out --leaderboard"),
        (
            ["--max-fit-time", "1", "--highlight", "rff"],
            "--max-fit-time selects cells; leave out --highlight",
        ),
    ],
)
def test_wrong_filters_of_results_are_refused(store, options, message):
    with pytest.raises(KbenchError, match=re.escape(message)):
        call("results", "trial", *STORE, *options)


@pytest.mark.parametrize("status", ["unavailable", "error", "timed_out"])
def test_a_figure_of_a_plugin_is_not_drawn_without_results(status, store, monkeypatch):
    """Some such figures are the same for all results, and would say that there are some."""
    tags = {"kbench.status": status, "kbench.n_splits_done": "0"}
    failed = [dataclasses.replace(run, tags={**run.tags, **tags}) for run in runs()]
    monkeypatch.setattr(Store, "read", lambda self, name, superseded=False: failed)
    with pytest.raises(KbenchError, match="nothing to draw: no cell of trial has results"):
        call("plot", "trial", "nbcs-two-polytopes", "-o", "x.svg", *STORE)
    assert not list(store.iterdir())

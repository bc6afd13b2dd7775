import csv
import dataclasses
import io
import json
import math
from dataclasses import replace

import pytest

from kbench.records import ACCURACY, Metric, Result
from kbench.report import Column, Table, latex_text, tables
from kbench.report import write as write_table
from kbench.report.content import ReportData
from kbench.results import stats
from kbench.results.row_builders import means
from kbench.results.rows import COLUMNS, Row, columns, ranks
from kbench.results.stats import on_dataset
from kbench_mlflow.reading import metric_of
from kbench_reporting.page import splits_by_cell
from kbench_reporting.tables import failures, skipped
from tests.support.report_rows import changed
from tests.support.tracking_runs import as_stored

ERROR = Metric("expected_error", "lower")


def write(rows, form):
    return write_table(tables.cells(rows, ACCURACY), form)


def row(dataset="iris", feature_map="rff", learner="ridge", accuracy=0.9, **fields):
    made = Row(dataset, feature_map, learner, "ok", n_splits_done=5, n_splits=5)
    metrics = {"accuracy_sd": 0.01, "fit_time_s": 0.1, "predict_time_s": 0.01, "converged": 1.0}
    return changed(made, accuracy=accuracy, **metrics | fields)


def results(*metrics):
    return [Result(f"t{i}", "c", i, "ok", each) for i, each in enumerate(metrics)]


def test_means_are_over_the_splits_that_have_the_metric():
    done = results({"accuracy": 0.8}, {"accuracy": 1.0, "x": 3.0})
    found = means(done)
    assert found["accuracy"] == pytest.approx(0.9)
    assert found["accuracy_sd"] == pytest.approx(0.1414, abs=1e-4)
    assert found["x"] == 3.0
    assert "accuracy_sd" not in means(done[:1])


def test_what_is_not_finite_on_a_split_has_no_mean():
    done = results(*({"accuracy": 0.5, "bound": value} for value in (math.inf, math.nan, 2.0)))
    # that of one split of three would be 2
    assert "bound" not in means(done)
    assert means(done)["accuracy"] == 0.5


def test_ranks_are_within_a_dataset_and_ties_share_theirs():
    rows = [
        row(accuracy=0.8),
        row(accuracy=0.9, feature_map="a"),
        row(accuracy=0.9, feature_map="b"),
        row("wine", accuracy=0.1),
    ]
    assert ranks(rows) == [3.0, 1.5, 1.5, 1.0]


@pytest.mark.parametrize("change", [{"status": "error"}, {"n_splits_done": 4}])
def test_a_cell_that_is_not_complete_has_no_rank(change):
    assert ranks([row(accuracy=0.8), row(accuracy=0.9, feature_map="a", **change)]) == [1.0, None]


def test_methods_are_compared_on_the_datasets_that_all_of_them_finished():
    rows = [
        row("iris", "a", accuracy=0.9),
        row("iris", "b", accuracy=0.8),
        row("wine", "a", accuracy=0.1),
        row("wine", "b", accuracy=0.9, status="timed_out"),
    ]
    scores = stats.scores(rows)
    assert scores.datasets == ("iris",)
    assert [(e.method[0], e.rank, e.mean) for e in stats.standings(scores, rows)] == [
        ("a", 1.0, 0.9),
        ("b", 2.0, 0.8),
    ]


def test_related_datasets_count_once_also_in_the_terminal():
    rows = [
        row(dataset, name, accuracy=accuracy, dataset_family=group)
        for dataset, group, accuracies in (
            ("iris", "iris", (0.9, 0.8)),
            ("iris-setosa", "iris", (0.9, 0.8)),
            ("wine", "wine", (0.1, 0.9)),
        )
        for name, accuracy in zip("ab", accuracies, strict=True)
    ]
    found = {e.method[0]: e for e in stats.standings(stats.scores(rows), rows)}
    assert (found["a"].rank, found["b"].rank) == (1.5, 1.5)
    assert found["a"].mean == pytest.approx(0.5)


def test_lower_is_better_of_an_error():
    rows = [
        row("iris", name, accuracy=0.5, expected_error=error, expected_error_sd=0.01)
        for name, error in (("a", 0.2), ("b", 0.1), ("c", None))
    ]
    assert ranks(rows, ERROR) == [2.0, 1.0, None]
    scores = stats.scores(rows, ERROR)
    assert [(e.method[0], e.mean) for e in stats.standings(scores, rows)] == [
        ("b", 0.1),
        ("a", 0.2),
    ]
    text = write_table(tables.cells(rows, ERROR), "latex")
    assert r"\textbf{0.1000} $\pm$ 0.0100" in text
    assert "left out: 1 of 3 rows" in text
    assert "no expected\\_error" in write_table(tables.cells(rows, ERROR), "markdown")
    assert columns(ERROR)[6:9] == ("expected_error", "expected_error_sd", "accuracy")


def test_runs_say_what_their_suite_compares():
    silent = as_stored("k", "m", "n", "ok", 5, params={}, tags={}, metrics={})
    tags = {"kbench.metric": "expected_error", "kbench.better": "lower"}
    told = dataclasses.replace(silent, tags={**silent.tags, **tags})
    assert metric_of([silent, told, told]) == ERROR
    assert metric_of([silent]) == ACCURACY


def test_a_rotation_of_a_method_is_not_compared_with_it():
    rows = [
        row(d, m, accuracy=a, equivalence=e)
        for d in ("iris", "wine")
        for m, a, e in (("nystroem", 0.9, "x"), ("f2", 0.9, "x"), ("rff", 0.8, ""))
    ]
    scores = stats.scores(rows)
    assert [method[0] for method in scores.methods] == ["nystroem", "rff"]
    assert scores.same == ((("f2", "ridge"), ("nystroem", "ridge")),)
    # on one dataset it stands for something else
    rows[4] = changed(rows[4], equivalence="y")
    assert stats.scores(rows).same == ()


@pytest.mark.parametrize("turned", [False, True])
def test_the_rotation_that_finished_most_datasets_is_kept(turned):
    maps = [("f2", ["iris"]), ("nystroem", ["iris", "wine"]), ("rff", ["iris", "wine"])]
    rows = [
        row(d, m, equivalence="" if m == "rff" else "x")
        for m, finished in (reversed(maps) if turned else maps)
        for d in finished
    ]
    scores = stats.scores(rows)
    assert scores.same == ((("f2", "ridge"), ("nystroem", "ridge")),)
    assert scores.datasets == ("iris", "wine")
    assert scores.left_out == ()


def test_a_rotation_that_was_kept_out_by_hand_keeps_nobody_out():
    rows = [row("iris", m, equivalence="x") for m in ("nystroem", "f2")]
    scores = stats.scores(rows, without=[("nystroem", "ridge")])
    assert scores.methods == (("f2", "ridge"),)


def test_splits_of_unknown_sizes_are_corrected_as_folds_are():
    splits = [
        {
            "values_by_split": {"accuracy": dict(zip("012", values, strict=True))},
            "split_hash": {"0": "x", "1": "y", "2": "z"},
        }
        for values in ((0.9, 0.8, 0.7), (0.8, 0.8, 0.8))
    ]
    rows = [row("iris", m, **each) for m, each in zip("ab", splits, strict=True)]
    assert on_dataset(*rows) == stats.corrected_t([0.1, 0.0, -0.1], 1 / 2)
    assert [each[3] for each in splits_by_cell(ReportData("trial", rows))["cells"]] == [0.5, 0.5]


def test_methods_without_a_common_dataset_are_not_compared():
    rows = [row("iris", "a"), row("wine", "b")]
    assert stats.standings(stats.scores(rows), rows) == []


NASTY = ['<script>alert("x")</script>', "=1+1", "a&b_c%$#{}~^\\", "q" * 200, "🐍 | pipe", 'a"b,c']


@pytest.mark.parametrize("name", NASTY)
def test_names_come_out_as_text(name):
    rows = [row(dataset=name)]
    assert json.loads(write(rows, "json"))[0]["dataset"] == name
    (_, read) = csv.reader(io.StringIO(write(rows, "csv")))
    assert read[0].removeprefix("'") == name
    assert not read[0].startswith("=")
    line = write(rows, "markdown").splitlines()[2]
    assert line.replace("\\|", "").count("|") == len(COLUMNS) + 1  # a spread stands in its column
    assert "<script>" not in line.replace("\\<", "")
    latex = write(rows, "latex")
    body = latex_text(name)
    for sign in "&%$#_":
        assert body.count(sign) == body.count("\\" + sign)
    assert body in latex


def test_marks_spreads_and_notes_are_in_the_forms_for_people():
    made = [Column("method"), Column("x", "x < 1", str, True, sd="x_sd"), Column("x_sd")]
    rows = [
        {"method": "[a]", "x": 1.5, "x_sd": 0.5},
        {"method": "-b", "x": float("nan"), "x_sd": None},
        {"method": "c", "x": None, "x_sd": None},
    ]
    table = Table("t", "T", made, rows, {(0, "x"): "best"}, {(0, "x"): "1 of 2", (2, "x"): "gone"})
    assert write_table(table, "markdown").splitlines()[2] == (
        "| \\[a\\] | **1.5** ± 0.5 (1 of 2) |"
    )
    assert "{}[a] & \\textbf{1.5} $\\pm$ 0.5 (1 of 2)" in write_table(table, "latex")
    assert write_table(table, "csv").splitlines()[2] == "'-b,nan,"
    assert json.loads(write_table(table, "json"))[1] == {"method": "-b", "x": None, "x_sd": None}
    assert write_table(table, "markdown").splitlines()[4] == "| c | gone |"


def test_json_is_one_array_with_the_columns_in_order():
    found = json.loads(write([row(), row("wine")], "json"))
    assert [list(each) for each in found] == [[*COLUMNS, "family"]] * 2


def test_the_table_of_cells_has_the_default_candidate_where_there_was_a_search():
    searched = replace(row(), metrics={**row().metrics, "default_accuracy": 0.5})
    head, first, second = write([searched, row("wine")], "csv").splitlines()
    assert head.split(",")[-2:] == ["family", "default_accuracy"]
    assert first.split(",")[-1] == "0.5"
    assert second.split(",")[-1] == ""


def test_latex_marks_the_best_of_each_dataset_and_says_what_is_partial():
    rows = [
        row(accuracy=0.9),
        row(feature_map="a", accuracy=0.8),
        row("wine", accuracy=0.99, n_splits_done=2),
        row("wine", "a", accuracy=0.7),
    ]
    text = write(rows, "latex")
    assert r"\textbf{0.9000} $\pm$ 0.0100" in text
    assert r"\textbf{0.7000}" in text
    assert "0.9900 $\\pm$ 0.0100 (2 of 5 splits)" in text
    assert text.count(r"\midrule") == 2


def test_a_failed_cell_is_in_every_form():
    rows = [row(status="crashed", accuracy=None, accuracy_sd=None, n_splits_done=0)]
    for form in ("csv", "json", "latex", "markdown"):
        assert "crashed" in write(rows, form)


def test_cells_that_were_not_measured_are_no_failures():
    rows = [
        row(),
        dataclasses.replace(row(), status="skipped", error="needs 41 GiB, the limit is 4 GiB"),
        dataclasses.replace(row(), status="not_run"),
        dataclasses.replace(row(), status="out_of_memory", error="limit of 4096 MiB"),
    ]
    content = ReportData("suite", rows)
    assert [r["status"] for r in failures(content).rows] == ["out_of_memory"]
    made = skipped(content).rows
    assert [(r["status"], r["why"]) for r in made] == [
        ("skipped", "needs 41 GiB, the limit is 4 GiB"),
        ("not_run", "the run ended first"),
    ]

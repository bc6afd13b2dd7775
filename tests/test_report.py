import csv
import io
import json

import pytest

from kbench.report import latex_text, write
from kbench.results import COLUMNS, means, method_summary, ranks


def row(dataset="iris", feature_map="rff", learner="ridge", accuracy=0.9, **fields):
    made = dict.fromkeys(COLUMNS)
    made |= {
        "dataset": dataset,
        "feature_map": feature_map,
        "learner": learner,
        "status": "ok",
        "n_splits_done": 5,
        "n_splits": 5,
        "accuracy": accuracy,
        "accuracy_sd": 0.01,
        "fit_time_s": 0.1,
        "predict_time_s": 0.01,
        "converged": True,
    }
    return made | fields


def test_means_are_over_the_splits_that_have_the_measure():
    lines = [{"measures": {"accuracy": a, **more}} for a, more in ((0.8, {}), (1.0, {"x": 3.0}))]
    found = means(lines)
    assert found["accuracy"] == pytest.approx(0.9)
    assert found["accuracy_sd"] == pytest.approx(0.1414, abs=1e-4)
    assert found["x"] == 3.0
    assert "accuracy_sd" not in means(lines[:1])


def test_what_is_not_finite_is_in_no_mean():
    lines = [{"measures": {"accuracy": 0.5, "bound": value}} for value in (float("inf"), 2.0)]
    assert means(lines)["bound"] == 2.0


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
        row("wine", "b", accuracy=0.9, status="timeout"),
    ]
    summary, datasets = method_summary(rows)
    assert datasets == ["iris"]
    assert [(each["feature_map"], each["rank"], each["accuracy"]) for each in summary] == [
        ("a", 1.0, 0.9),
        ("b", 2.0, 0.8),
    ]


def test_methods_without_a_common_dataset_are_not_compared():
    assert method_summary([row("iris", "a"), row("wine", "b")]) == ([], [])


NASTY = ['<script>alert("x")</script>', "=1+1", "a&b_c%$#{}~^\\", "q" * 200, "🐍 | pipe", 'a"b,c']


@pytest.mark.parametrize("name", NASTY)
def test_names_come_out_as_text(name):
    rows = [row(dataset=name)]
    assert json.loads(write(rows, "json"))[0]["dataset"] == name
    (_, read) = csv.reader(io.StringIO(write(rows, "csv")))
    assert read[0].removeprefix("'") == name
    assert not read[0].startswith("=")
    line = write(rows, "markdown").splitlines()[2]
    assert line.replace("\\|", "").count("|") == len(COLUMNS) + 1
    assert "<script>" not in line.replace("\\<", "")
    latex = write(rows, "latex")
    body = latex_text(name)
    for sign in "&%$#_":
        assert body.count(sign) == body.count("\\" + sign)
    assert body in latex


def test_json_is_one_array_with_the_columns_in_order():
    found = json.loads(write([row(), row("wine")], "json"))
    assert [list(each) for each in found] == [list(COLUMNS)] * 2


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
    rows = [row(status="crash", accuracy=None, accuracy_sd=None, n_splits_done=0)]
    for form in ("csv", "json", "latex", "markdown"):
        assert "crash" in write(rows, form)

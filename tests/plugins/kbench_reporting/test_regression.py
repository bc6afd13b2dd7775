"""Reports of regression suites: direction, units, and methods without the metric."""

import csv
import dataclasses
import io
import json
import re
from xml.etree import ElementTree

import pytest

from kbench.errors import SuiteError
from kbench.evaluation.definitions import METRICS
from kbench.records import Metric
from kbench.registry.registry import Registry
from kbench.report import charts as axes
from kbench.report import write
from kbench.report.tables import cells
from kbench.report.text import write_cell as written
from kbench.results.rows import Row, columns, ranks
from kbench_reporting import charts, pictures, tables
from kbench_reporting.findings import entries
from kbench_reporting.page import list_curves, page, splits_by_cell
from tests.support.report_rows import changed, content, regression_row

STANDARDIZED = METRICS["rmse_standardized"]
NLPD = METRICS["nlpd_standardized"]
SIZES = {"big": 1e6, "one": 1.0, "tiny": 1e-9}


@pytest.fixture
def rows():
    """A good slow method and a bad fast one, on datasets in different units."""
    return [
        regression_row(dataset, name, errors, sd, fit_time_s=time)
        for dataset, sd in SIZES.items()
        for name, errors, time in (
            ("good", (0.20, 0.21, 0.22), 1.0),
            ("bad", (0.50, 0.56, 0.58), 0.1),
        )
    ]


def report(rows, metric=STANDARDIZED, **more):
    return content(rows, metric=metric, **more)


def test_the_columns_of_a_regression_table_have_no_accuracy(rows):
    names = columns(STANDARDIZED, "regression")
    assert names[6:10] == ("rmse_standardized", "rmse_standardized_sd", "rmse", "rmse_sd")
    assert not any(name.startswith("accuracy") for name in names)
    written = rows[0].to_json(STANDARDIZED)
    assert tuple(written)[: len(names)] == names
    assert written["task"] == "regression"
    assert written["by_split"] == rows[0].values_by_split["rmse"]
    table = cells(rows, STANDARDIZED)
    assert tuple(column.name for column in table.columns) == (*names, "family")
    assert "accuracy" not in page(report(rows), Registry()).partition("<script>")[0]


def test_errors_in_units_are_shown_by_dataset_and_never_averaged(rows):
    shown = report(rows)
    table = tables.scores_default_metric(shown)
    assert [row["good + ridge"] for row in table.rows] == pytest.approx([2.1e5, 0.21, 2.1e-10])
    markdown = write(table, "markdown")
    assert "| big | 210000 ± 10000 | 546667 ± 41633 |" in markdown
    assert "2.100e-10 ± 1.000e-11" in markdown
    assert [(each.method[0], each.mean) for each in shown.standings] == [
        ("good", pytest.approx(0.21)),
        ("bad", pytest.approx(0.5466667)),
    ]
    assert not tables.scores_default_metric(report(rows, METRICS["rmse"])).rows


@pytest.mark.parametrize("name", ["rmse", "mae", "nlpd", "crps", "interval_score_90"])
def test_a_metric_in_units_is_not_compared_over_datasets(rows, name):
    metric = METRICS[name]
    assert metric.in_units
    rows = [changed(row, **{name: row.metrics["rmse"]}) for row in rows]
    shown = report(rows, metric)
    assert shown.standings == []
    assert shown.friedman is None
    html = page(shown, Registry())
    assert "units of each dataset’s target, so methods are not compared over datasets" in html
    with pytest.raises(SuiteError, match=rf"nothing to draw: {name} is in the units"):
        pictures.picture("ranks", shown, Registry(), "svg")
    # within a dataset they are ranked and marked
    assert ranks(rows, metric) == [1.0, 2.0] * 3
    assert tables.scores(shown).marks[0, "good + ridge"] == "best"
    one = [row for row in rows if row.dataset == "tiny"]
    assert [each.method[0] for each in report(one, metric).standings] == ["good", "bad"]


def test_small_units_hide_no_difference():
    """Nine digits of the scores decide what is equal, not nine decimals."""
    rows = [
        regression_row("tiny", name, errors, 1e-12)
        for name, errors in (("good", (0.2, 0.21, 0.22)), ("bad", (0.50, 0.56, 0.58)))
    ]
    (_, line), *_ = entries(report(rows, METRICS["rmse"]))
    assert [entry.mark for entry in line] == ["best", ""]


def test_better_values_stand_higher():
    values, looks = [0.5, 0.2, 0.4], [["undecided"] * 3, [axes.Style()] * 3]
    svg = charts.scatter(
        ["a", "b", "c"], [1.0, 2.0, 3.0], values, STANDARDIZED, "time", str, *looks
    )
    root = ElementTree.fromstring(svg)
    points = {
        group.find("{*}text").text: float(group.find("{*}rect").get("y"))
        for group in root.iter("{http://www.w3.org/2000/svg}g")
    }
    assert points["2"] < points["3"] < points["1"]  # y grows downwards
    assert "rmse standardized (lower is better)" in svg
    higher = axes.make_metric_axis([0.2, 0.9], Metric("r2"))
    assert higher.share(0.9) > higher.share(0.2)
    assert higher.label == "r2"


@pytest.mark.parametrize(
    ("values", "is_log"), [((0.01, 0.2), True), ((0.1, 0.2), False), ((-1.0, 2.0), False)]
)
def test_errors_of_very_different_size_have_a_logarithmic_axis(values, is_log):
    axis = axes.make_metric_axis(values, STANDARDIZED)
    assert axis.log is is_log
    assert 0 < axis.share(max(values)) < axis.share(min(values)) < 1


@pytest.mark.parametrize("values", [(1e-8, 3e-8), (12345.0, 54321.0), (0.0, 0.0)])
def test_an_axis_tells_values_of_any_size_apart(values):
    axis = axes.linear(values, "error")
    assert len({text for _, text in axis.marks}) == len(axis.marks)
    assert abs(axis.share(values[1]) - axis.share(values[0])) > 0.5 or values[0] == values[1]


def test_the_axis_of_a_picture_for_a_paper_is_turned(rows):
    drawn = pictures._against(report(rows), charts.COSTS[0])
    (panel,) = drawn.axes
    assert panel.yaxis_inverted()
    assert panel.get_ylabel() == "rmse standardized (lower is better)"
    for kind in ("metric-vs-fit-time",):
        assert pictures.picture(kind, report(rows), Registry(), "svg").startswith(b"<?xml")


def test_a_method_without_a_predictive_distribution_is_shown_without_a_rank(rows):
    values = {"good": 0.1, "bad": 0.9}
    rows = [changed(row, nlpd_standardized=values[row.feature_map]) for row in rows]
    rows += [regression_row(dataset, "plain", (0.3, 0.4, 0.5), sd) for dataset, sd in SIZES.items()]
    shown = report(rows, NLPD)
    assert [each.method[0] for each in shown.standings] == ["good", "bad"]
    assert len(shown.scores.datasets) == 3
    table = tables.scores(shown)
    assert table.notes[0, "plain + ridge"] == "no predictive distribution"
    html = page(shown, Registry())
    assert "(no predictive distribution): plain + ridge." in html
    assert html.count("no predictive distribution</td>") == 3


def test_the_page_says_which_direction_is_better(rows):
    html = page(report(rows), Registry())
    assert "<h2>RMSE standardized</h2>" in html
    assert "lower is better" in html
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.S).group(1))
    assert (data["sign"], data["any_size"], data["in_units"]) == (-1, True, False)
    data = splits_by_cell(report(rows, METRICS["rmse"]))
    (tiny,) = (cell for cell in data["cells"] if cell[:2] == (2, 0))
    assert tiny[2] == pytest.approx(2.1e-10)
    assert [*tiny[4].values()] == pytest.approx([2.0e-10, 2.1e-10, 2.2e-10])


def test_search_curves_are_those_of_the_metric_that_was_searched(rows):
    by_default, by_loss = (
        changed(row, protocol={"search_metric": name}, search={"learner.alpha": [[1, 2, 0, 3, 0]]})
        for row, name in zip(rows, ("null", "nlpd"), strict=False)
    )
    assert by_default.searched == METRICS["rmse"]
    assert by_loss.searched == METRICS["nlpd"]
    assert Row("iris", "rff", "ridge", "ok", 1, 1).searched.name == "accuracy"
    shown = report([by_default, by_loss])
    assert [row["metric"] for row in tables.search_curves(shown).rows] == ["rmse", "nlpd"]
    (_, curves), *_ = list_curves(shown)["methods"]
    assert curves["learner.alpha"][0][2:] == ["rmse", "lower", True]
    table = tables.search_curves(dataclasses.replace(shown, rows=[by_default]))
    assert "validation rmse" in [column.heading for column in table.columns]


def test_data_for_programs_keep_all_digits(rows):
    lines = csv.DictReader(io.StringIO(write(cells(rows, STANDARDIZED), "csv")))
    assert float(next(lines)["rmse"]) == rows[0].metrics["rmse"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.4, "0.4"), (123456.7, "123457"), (0.00001234, "1.234e-05")]
)
def test_a_metric_of_a_plugin_is_readable_whatever_its_size(value, text):
    assert written("my_loss", value) == text

"""What a report says of fronts and places, and what it does not."""

import csv
import io
import json

import numpy as np
import pytest

from kbench.errors import SuiteError
from kbench.records import Metric
from kbench.registry.registry import Registry
from kbench.report import write
from kbench.report.content import ReportData
from kbench.report.tables import table_named
from kbench.results import stats
from kbench_reporting import findings, pictures
from kbench_reporting.page import page
from tests.support.report_rows import changed, content, grid, row


def clear(n_datasets=8, n_splits=5, seed=0):
    """Rows of a cheap method, a good one with a slower twin, and a dominated one."""
    rng, rows = np.random.default_rng(seed), []
    for d in range(n_datasets):
        base = rng.normal(0, 0.03)
        for name, accuracy, seconds in (
            ("cheap", 0.7, 0.01), ("good", 0.9, 0.1), ("bad", 0.6, 1.0), ("twin", 0.9, 0.15),
        ):  # fmt: skip
            rows.append(
                row(
                    f"data-{d}",
                    name,
                    accuracies=accuracy + base + rng.normal(0, 0.01, n_splits),
                    fit_time_s=float(seconds * rng.lognormal(0, 0.1)),
                )
            )
    return rows


def test_statuses_are_in_the_table_its_csv_and_json_and_the_chart():
    made = content(clear())
    table = table_named("methods", made)
    expected = {"cheap": "frontier", "good": "frontier", "bad": "dominated", "twin": "undecided"}
    assert {each["feature_map"]: each["front"] for each in table.rows} == expected
    for form, read in (
        ("csv", lambda text: list(csv.DictReader(io.StringIO(text)))),
        ("json", json.loads),
    ):
        rows = read(write(table, form))
        assert {each["feature_map"]: each["front"] for each in rows} == expected
        assert all(0 <= float(each["front_share"]) <= 1 for each in rows)
        bad = next(each for each in rows if each["feature_map"] == "bad")
        assert bad["dominated_by"] != ""
        assert bad["verdict"] == "worse"
        assert bad["worse_than"] != ""
    text = page(made, Registry())
    for status, n in (("frontier", 2), ("undecided", 1), ("dominated", 1)):
        # as accuracy, and as error
        assert text.count(f'class="point {status} c') == 2 * n
    assert text.count('class="half"') == 2
    assert "2 of 4 methods are significantly on the Pareto front, 1 are" in text


def test_points_of_the_picture_are_filled_by_status():
    drawn = pictures._against(content(clear()), pictures._COSTS["metric-vs-fit-time"])
    filled = [line.get_fillstyle() for line in drawn.axes[0].lines if line.get_marker() == "o"]
    assert sorted(filled) == ["full", "full", "left", "none"]


def test_the_best_group_is_at_the_top_and_filled_in_the_rank_diagram():
    text = page(content(clear()), Registry())
    assert "Best group (5 % level, 8 independent datasets): twin + ridge and good + ridge." in text
    assert "Cheapest in it: good + ridge, 1" in text
    assert "Outside it: 2;" in text
    assert "bad + ridge (by " in text
    assert "Not decided" in text
    assert (text.count('class="dot"'), text.count('class="dot empty"')) == (2, 2)
    sure = content([each for each in clear() if each.feature_map != "twin"])
    assert "Not decided" not in page(sure, Registry())
    assert findings.stability_sentences(sure) == [
        "good + ridge is significantly better than every other method.",
        "good + ridge stays first if any one dataset is left out.",
    ]


def test_a_dataset_without_which_another_is_first_is_named():
    rows = []
    for dataset, a, b in (("x", 0.9, 0.8), ("y", 0.9, 0.8), ("z", 0.7, 0.8)):
        rows += [row(dataset, "a", accuracies=[a, a - 0.01]), row(dataset, "b", accuracies=[b, b])]
    rows += [row("w", "a", accuracies=[0.5, 0.5]), row("w", "b", accuracies=[0.5, 0.5])]
    (sentence,) = (
        each for each in findings.stability_sentences(content(rows)) if "left out" in each
    )
    assert sentence == "a + ridge stays first if any one dataset is left out."
    rows = [each for each in rows if each.dataset != "y"]
    (sentence,) = (
        each for each in findings.stability_sentences(content(rows)) if "left out" in each
    )
    assert sentence == "Another method is first if a dataset is left out: without x b + ridge."


def said(rows, **more):
    made = content(rows) if not more else ReportData("s", rows, **more)
    page(made, Registry())
    return made


def test_the_splits_of_one_dataset_have_their_own_times():
    rng = np.random.default_rng(0)
    rows = []
    for name, accuracy, seconds in (("a", 0.9, 1.0), ("b", 0.8, 2.0)):
        values = accuracy + rng.normal(0, 0.01, 10)
        times = seconds * rng.lognormal(0, 0.05, 10)
        each = {"accuracy": values, "fit_time_s": times}
        by_split = {n: {str(i): float(v) for i, v in enumerate(vs)} for n, vs in each.items()}
        rows.append(
            row("iris", name, accuracies=values, values_by_split=by_split, fit_time_s=seconds)
        )
    made = said(rows)
    assert [place.status for place in findings.places(made, "fit_time_s")] == [
        "frontier",
        "dominated",
    ]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (clear(1, 1), "all methods share one split of one dataset"),
        ([row("iris", "a"), row("wine", "a")], "no dataset was finished by at least two methods"),
        ([row("iris", "a"), row("wine", "b")], "no dataset was finished by at least two methods"),
        (
            [row(d, m, fit_time_s=None) for d in ("iris", "wine") for m in "ab"],
            "some method has no cost",
        ),
        (
            [row(d, m, dataset_family="g") for d in ("iris", "wine") for m in "ab"],
            "all datasets belong to one family",
        ),
    ],
)
def test_a_front_without_statuses_says_why(rows, words):
    made = said(rows)
    front = made.certainty.front("fit_time_s")
    assert front.reason == words
    assert findings.front_sentence(front, "fit time").endswith(f"fit time: {words}.")
    assert all(each["front"] is None for each in table_named("methods", made).rows)


def test_datasets_that_some_method_lacks_are_left_out():
    rows = clear()
    made = said([each for each in rows if each.labels[:2] != ("data-0", "bad")])
    assert len(made.certainty.stability.without) == 7


def far():
    """Rows of four methods, one of them far worse."""
    accuracies = {"a": 0.9, "b": 0.91, "c": 0.93, "worst": 0.4}
    return [
        row(d, m, accuracies=[a, a + 0.001 * i, a], fit_time_s=0.1 * (1 + i))
        for d in ("x", "y")
        for i, (m, a) in enumerate(accuracies.items())
    ]


def test_a_method_far_below_the_others_does_not_spoil_the_axis():
    text = page(content(far()), Registry())
    (chart,) = (each for each in text.split("<figure>") if "Accuracy against fit time<" in each)
    plain, _, error = chart.partition('class="scroll error"')
    for picture in (plain, error):
        assert picture.count('class="below"') == 1
        assert "worst + ridge: accuracy 0.4010" in picture
        assert "(below the axis)" in picture
    marks = [
        float(each.partition("<")[0]) for each in plain.split('class="tick" text-anchor="end">')[1:]
    ]
    assert min(marks) > 0.85
    assert "1 - accuracy (lower is better)" in error


def test_pictures_clip_the_same_methods():
    made = content(far())
    for as_error, low in ((False, 0.88), (True, 0.12)):
        drawn = pictures._against(made, pictures._COSTS["metric-vs-fit-time"], as_error)
        bottom, top = drawn.axes[0].get_ylim()
        assert bottom == pytest.approx(low, abs=0.02)
        assert (bottom > top) == as_error
        legend = [each.get_text() for each in drawn.legends[0].get_texts()]
        assert [each for each in legend if "0.4010, below the axis" in each]


def test_errors_of_a_metric_that_is_no_share_are_not_drawn():
    made = ReportData("s", grid(2, 2), metric=Metric("log_loss", "lower"))
    assert 'id="as-error"' not in page(made, Registry())
    rows = [changed(each, log_loss=0.1) for each in grid(2, 2)]
    made = ReportData("s", rows, metric=Metric("log_loss", "lower"))
    with pytest.raises(SuiteError, match="1 - log_loss is not an error; draw metric-vs-fit-time"):
        pictures.picture("error-vs-fit-time", made, Registry(), "svg")


def test_a_page_computes_the_front_of_each_cost_once(monkeypatch):
    computed = []
    front = stats.front
    monkeypatch.setattr(stats, "front", lambda *given, **more: (
        computed.append(given), front(*given, **more)
    )[1])  # fmt: skip
    made = content(clear())
    page(made, Registry())
    n_costs = len({claims_cost.tobytes() for _, claims_cost, *_ in computed})
    assert 0 < len(computed) == n_costs

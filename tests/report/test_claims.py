"""What a report says of fronts, places, variance and searches, and what it does not."""

import csv
import io
import json

import numpy as np
import pytest

from kbench.errors import SuiteError
from kbench.records import Measure
from kbench.registry.registry import Registry
from kbench.report import claims, figures, write
from kbench.report.content import ReportData
from kbench.report.page import page
from kbench.report.tables import TABLES
from kbench.results import stats
from tests.support.report_rows import changed, content, grid, regression_row, row, searched


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
    table = TABLES["methods"][1](made)
    expected = {"cheap": "frontier", "good": "frontier", "bad": "dominated", "twin": "undecided"}
    assert {each["feature_map"]: each["front"] for each in table.rows} == expected
    for form, read in (
        ("csv", lambda text: list(csv.DictReader(io.StringIO(text)))),
        ("json", json.loads),
    ):
        rows = read(write(table, form))
        assert {each["feature_map"]: each["front"] for each in rows} == expected
        assert all(0 <= float(each["p_front"]) <= 1 for each in rows)
        bad = next(each for each in rows if each["feature_map"] == "bad")
        assert bad["dominated_by"] != ""
        assert (int(bad["place_low"]), int(bad["place_high"])) == (4, 4)
    text = page(made, Registry())
    for status, n in (("frontier", 2), ("undecided", 1), ("dominated", 1)):
        # as accuracy, and as error
        assert text.count(f'class="point {status} c') == 2 * n
    assert text.count('class="half"') == 2
    assert "2 of 4 methods are certainly on the front, 1 certainly are not, and 1" in text


def test_points_of_the_picture_are_filled_by_status():
    drawn = figures._against(content(clear()), figures._COSTS["measure-time"])
    filled = [line.get_fillstyle() for line in drawn.axes[0].lines if line.get_marker() == "o"]
    assert sorted(filled) == ["full", "full", "left", "none"]


def test_a_first_place_among_equals_is_not_stable():
    text = page(content(clear()), Registry())
    assert "The order of this diagram is not stable." in text
    assert "The first place is not certain: with" in text
    sure = content([each for each in clear() if each.feature_map != "twin"])
    for made, n in ((content(clear()), 1), (sure, 0)):
        words = figures.picture("ranks", made, Registry(), "svg").decode()
        assert words.count("The first place is not certain.") == n
    assert "is not stable" not in page(sure, Registry())
    assert claims.stability_sentences(sure) == [
        "good + ridge is certainly first by mean rank.",
        "It is first in > 99 % of the draws of the mean ranks.",
        "It stays first whichever dataset is left out.",
        "Of the 3 places, 3 are certain.",
    ]


def test_a_dataset_without_which_another_is_first_is_named():
    rows = []
    for dataset, a, b in (("x", 0.9, 0.8), ("y", 0.9, 0.8), ("z", 0.7, 0.8)):
        rows += [row(dataset, "a", accuracies=[a, a - 0.01]), row(dataset, "b", accuracies=[b, b])]
    rows += [row("w", "a", accuracies=[0.5, 0.5]), row("w", "b", accuracies=[0.5, 0.5])]
    (sentence,) = (each for each in claims.stability_sentences(content(rows)) if "left out" in each)
    assert sentence == "It stays first whichever dataset is left out."
    rows = [each for each in rows if each.dataset != "y"]
    (sentence,) = (each for each in claims.stability_sentences(content(rows)) if "left out" in each)
    assert sentence == "Another method is first if one is left out: without x b + ridge."


def test_splits_that_a_difference_needs_stand_beside_those_that_there_are():
    a, b = np.array([0.9, 0.92, 0.91, 0.9]), np.array([0.88, 0.915, 0.895, 0.89])
    # .0125 over a spread of .0065 is significant from five splits on
    made = content([row("iris", "a", accuracies=a, n_train=80.0, n_test=16.0),
                    row("iris", "b", accuracies=b, n_train=80.0, n_test=16.0),
                    row("wine", "a", accuracies=[0.8, 0.9, 0.7], n_test=25.0),
                    row("wine", "b", accuracies=[0.9, 0.7, 0.79], n_test=25.0)])  # fmt: skip
    iris, wine = TABLES["variance"][1](made).rows
    assert (iris["first"], iris["n_splits"]) == ("a + ridge", 4)
    assert iris["needed"] == 5
    assert (wine["needed"], wine["reason"]) == (None, "not reachable by splits")
    words = " ".join(claims.variance_sentences(made))
    assert "A difference of 0.0125 between a + ridge and b + ridge needs 5 splits on iris." in words
    assert "is not reachable by splits on wine." in words
    assert "The seed of a map cannot be told apart from the rest with one seed a split." in words


def test_a_search_that_gains_less_than_its_optimism_looks_overfitted():
    rows = searched(grid(3, 2))
    assert "gained more" in claims.optimism_sentences(content(rows))[0]
    rows = [
        *searched([row("iris", "a")]),
        *searched([row("iris", "b")], inner=0.82, default=0.81, optimism=0.03),
    ]
    assert claims.optimism_sentences(content(rows)) == [
        "The search looks overfitted of b + ridge: what it gained on the inner folds is not more "
        "than the optimism of its best score."
    ]
    assert [each["verdict"] for each in TABLES["optimism"][1](content(rows)).rows] == [
        "",
        "looks overfitted",
    ]


def test_warnings_name_the_methods_that_are_worse_or_slower_than_what_they_replace():
    rows = [
        row("iris", "identity", "majority", [0.80, 0.81, 0.80], family="baseline"),
        row("iris", "identity", "ridge", [0.90, 0.91, 0.90], family="inputs"),
        row("iris", "identity", "kernel-svm", [0.95, 0.96, 0.95], family="kernel", fit_time_s=0.1),
        row("iris", "rff", "ridge", [0.70, 0.72, 0.70], family="Fourier", fit_time_s=0.2),
        row("iris", "cheap", "ridge", [0.94, 0.96, 0.95], family="Fourier", at_edge="learner.C"),
        row("iris", "tree", "ridge", [0.96, 0.97, 0.98], converged=False, contention="load 9"),
    ]
    assert claims.warnings(content(rows))[:-1] == [
        "Worse than identity + majority (number of datasets): rff + ridge (1).",
        "Worse than identity + ridge (number of datasets): rff + ridge (1).",
        "Slower than the kernel machine, and not better: identity + kernel-svm "
        "(number of datasets): rff + ridge (1).",
        "Chosen at the edge of its grid (number of datasets): cheap + ridge (1).",
        "A fit did not converge (number of datasets): tree + ridge (1).",
        "The machine was busy (number of datasets): tree + ridge (1).",
    ]
    text = page(content(rows), Registry())
    assert "Before you quote a method" in text


# -- what cannot be said


def said(rows, **more):
    made = content(rows) if not more else ReportData("s", rows, **more)
    page(made, Registry())
    return made


def test_one_dataset_is_judged_by_its_splits():
    made = said([each for each in clear(1, 10) if each.feature_map != "twin"])
    assert claims.stability_sentences(made) == [
        "One dataset says nothing of how the order would be on others."
    ]
    words = " ".join(claims.variance_sentences(made))
    assert "Of the variance between splits" in words
    assert "One dataset says nothing of the variance between datasets." in words
    assert made.claims.components.datasets is None
    assert not made.claims.front("n_components").reason


def of_seeds(spreads, n_datasets=6, n_splits=20, n_seeds=5):
    """Return rows of methods whose maps have seeds of some spread; 0 means no seed."""
    rng, rows = np.random.default_rng(0), []
    for d in range(n_datasets):
        for name, spread in spreads.items():
            own = 0.7 + rng.normal(0, 0.02, (n_splits, 1))
            scores = own + rng.normal(0, spread, (n_splits, n_seeds))
            has_seed = spread > 0
            by_seed = {str(i): list(values) for i, values in enumerate(scores)}
            rows.append(
                row(
                    f"data-{d}",
                    name,
                    accuracies=scores.mean(axis=1),
                    n_map_seeds=n_seeds if has_seed else 1,
                    values_by_seed={"accuracy": by_seed} if has_seed else {},
                )
            )
    return rows


def test_the_seed_of_the_map_is_a_source_of_variance():
    made = content(of_seeds({"rff": 0.03, "identity": 0.0}))
    found = made.claims.components
    assert found.seeds == pytest.approx(0.03**2 / 2, rel=0.1)
    assert found.residual == pytest.approx(0.02**2, rel=0.2)
    assert found.seeds_by_method == pytest.approx([0.03**2, 0.0], rel=0.1)
    words = " ".join(claims.variance_sentences(made))
    assert "from seed of the map" in words
    assert "the scores are means over 5 seeds on each split" in words
    assert "cannot be told apart" not in words
    sources = {each["source"]: each["sd"] for each in TABLES["components"][1](made).rows}
    assert sources["seed of the map of rff + ridge"] == pytest.approx(0.03, rel=0.05)
    assert "seed of the map of identity + ridge" not in sources


@pytest.mark.parametrize(
    "change",
    [{"values_by_seed": {}}, {"n_map_seeds": None, "values_by_seed": {}}],
    ids=["left out of the store", "one seed"],
)
def test_a_seed_of_which_a_row_says_nothing_is_not_told_apart(change):
    first, *rest = of_seeds({"rff": 0.03, "identity": 0.0})
    made = content([changed(first, **change), *rest])
    assert made.claims.components.seeds is None
    assert "cannot be told apart" in " ".join(claims.variance_sentences(made))


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
    assert [place.status for place in claims.places(made, "fit_time_s")] == [
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
            [row(d, m, group="g") for d in ("iris", "wine") for m in "ab"],
            "all datasets belong to one group",
        ),
    ],
)
def test_a_front_without_statuses_says_why(rows, words):
    made = said(rows)
    front = made.claims.front("fit_time_s")
    assert front.reason == words
    assert claims.front_sentence(made, front, "fit time") == (
        f"The front against fit time has no statuses: {words}."
    )
    assert all(each["front"] is None for each in TABLES["methods"][1](made).rows)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (clear(3, 1), "All methods share at most one split of a dataset"),
        ([row("iris", "a"), row("wine", "a")], "One method says nothing"),
        ([row("iris", "a"), row("wine", "b")], "No dataset was finished by all methods"),
    ],
)
def test_variances_that_cannot_be_estimated_say_why(rows, words):
    assert claims.variance_sentences(said(rows))[0].startswith(words)


def test_equal_scores_everywhere_decide_nothing():
    rows = [row(d, m, accuracies=[0.5] * 4) for d in ("x", "y", "z") for m in "abc"]
    made = said(rows)
    assert {place.status for place in claims.places(made, "fit_time_s")} == {"undecided"}
    assert all(each.reason.startswith("all differences are equal") for each in made.claims.contests)
    assert not claims.is_stable(made)


def test_units_of_targets_are_not_averaged():
    rows = [
        regression_row(d, m, [1.0, 1.1, 1.3], sd) for d, sd in (("x", 1), ("y", 9)) for m in "ab"
    ]
    made = said(rows, measure=Measure("rmse", "lower", in_units=True, task="regression"))
    assert "different units" in made.claims.front("fit_time_s").reason
    assert "different units" in claims.variance_sentences(made)[0]
    assert len(made.claims.contests) == 2


def test_datasets_that_some_method_lacks_are_left_out():
    rows = clear()
    made = said([each for each in rows if each.labels[:2] != ("data-0", "bad")])
    assert len(made.claims.stability.without) == 7


def test_inner_scores_by_seconds_end_with_the_score_on_the_test_parts():
    made = said(searched([row(d, m) for d in ("x", "y") for m in "ab"]))
    first, second, *_ = TABLES["seconds"][1](made).rows
    assert (first["seconds"], first["inner"], first["outer"]) == (0.1, 0.8, None)
    assert (second["seconds"], second["inner"], second["outer"]) == (1.0, 0.85, pytest.approx(0.9))
    assert second["total_s"] == pytest.approx(1.01)
    text = page(made, Registry())
    assert "Inner accuracy against seconds of search" in text
    assert "Inner scores are optimistic" in text
    assert "against seconds of search" not in page(content(grid(2, 2)), Registry())


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
        drawn = figures._against(made, figures._COSTS["measure-time"], as_error)
        bottom, top = drawn.axes[0].get_ylim()
        assert bottom == pytest.approx(low, abs=0.02)
        assert (bottom > top) == as_error
        legend = [each.get_text() for each in drawn.legends[0].get_texts()]
        assert [each for each in legend if "0.4010, below the axis" in each]


def test_errors_of_a_measure_that_is_no_share_are_not_drawn():
    made = ReportData("s", grid(2, 2), measure=Measure("log_loss", "lower"))
    assert 'id="as-error"' not in page(made, Registry())
    rows = [changed(each, log_loss=0.1) for each in grid(2, 2)]
    made = ReportData("s", rows, measure=Measure("log_loss", "lower"))
    with pytest.raises(SuiteError, match="1 - log_loss is not an error; draw measure-time"):
        figures.picture("error-time", made, Registry(), "svg")


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

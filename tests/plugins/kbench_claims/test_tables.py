"""What a report says of variance, searches and warnings, and what it does not."""

import numpy as np
import pytest

from kbench.records import Metric
from kbench.registry.registry import Registry
from kbench.report.content import ReportData
from kbench.report.tables import table_named
from kbench_claims import tables as claims
from kbench_claims.claims import NOT_REACHED, get_claims, mean_curve
from kbench_reporting import findings
from kbench_reporting.page import page
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


def test_splits_that_a_difference_needs_stand_beside_those_that_there_are():
    a, b = np.array([0.9, 0.92, 0.91, 0.9]), np.array([0.88, 0.915, 0.895, 0.89])
    # .0125 over a spread of .0065 is significant from five splits on
    made = content([row("iris", "a", accuracies=a, n_train=80.0, n_test=16.0),
                    row("iris", "b", accuracies=b, n_train=80.0, n_test=16.0),
                    row("wine", "a", accuracies=[0.8, 0.9, 0.7], n_test=25.0),
                    row("wine", "b", accuracies=[0.9, 0.7, 0.79], n_test=25.0)])  # fmt: skip
    iris, wine = table_named("variance", made).rows
    assert (iris["first"], iris["n_splits"]) == ("a + ridge", 4)
    assert iris["needed"] == 5
    assert (wine["needed"], wine["reason"]) == (None, NOT_REACHED)
    words = " ".join(claims.variance_sentences(made))
    assert "On iris, the difference of 0.0125 between a + ridge and b + ridge needs 5" in words
    assert "On wine, the difference between a + ridge and b + ridge is too small" in words
    assert "With one seed of the map per split" in words


def test_a_search_that_gains_less_than_its_optimism_looks_overfitted():
    rows = searched(grid(3, 2))
    assert "improved its validation score" in claims.optimism_sentences(content(rows))[0]
    rows = [
        *searched([row("iris", "a")]),
        *searched([row("iris", "b")], inner=0.82, default=0.81, optimism=0.03),
    ]
    assert "overfitted: the search of b + ridge," in claims.optimism_sentences(content(rows))[0]
    assert [each["verdict"] for each in table_named("optimism", content(rows)).rows] == [
        "",
        "probably overfitted",
    ]


def test_warnings_name_the_methods_that_are_worse_or_slower_than_what_they_replace():
    rows = [
        row("iris", "identity", "dummy-majority", [0.80, 0.81, 0.80], family="baseline"),
        row("iris", "identity", "ridge", [0.90, 0.91, 0.90], family="inputs"),
        row("iris", "identity", "kernel-svm", [0.95, 0.96, 0.95], family="kernel", fit_time_s=0.1),
        row("iris", "rff", "ridge", [0.70, 0.72, 0.70], family="fourier", fit_time_s=0.2),
        row(
            "iris", "cheap", "ridge", [0.94, 0.96, 0.95], family="fourier", at_boundary="learner.C"
        ),
        row("iris", "tree", "ridge", [0.96, 0.97, 0.98], converged=False, contention="load 9"),
    ]
    assert claims.warnings(content(rows))[:-1] == [
        "Worse than identity + dummy-majority (number of datasets): rff + ridge (1).",
        "Worse than identity + ridge (number of datasets): rff + ridge (1).",
        "Slower than, and no better than, identity + kernel-svm (number of datasets): "
        "rff + ridge (1).",
        "Best at the boundary of its grid (number of datasets): cheap + ridge (1).",
        "A fit did not converge (number of datasets): tree + ridge (1).",
        "The machine was loaded (number of datasets): tree + ridge (1).",
    ]
    text = page(content(rows), Registry())
    assert "Warnings by method" in text


# -- what cannot be said


def said(rows, **more):
    made = content(rows) if not more else ReportData("s", rows, **more)
    page(made, Registry())
    return made


def test_one_dataset_is_judged_by_its_splits():
    made = said([each for each in clear(1, 10) if each.feature_map != "twin"])
    assert findings.stability_sentences(made) == [
        "One dataset does not show how methods rank on other datasets."
    ]
    words = " ".join(claims.variance_sentences(made))
    assert "variance between splits" in words
    assert "One dataset does not show the variance between datasets." in words
    assert get_claims(made).components.datasets is None
    assert not made.certainty.front("n_components").reason


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
    found = get_claims(made).components
    assert found.seeds == pytest.approx(0.03**2 / 2, rel=0.1)
    assert found.residual == pytest.approx(0.02**2, rel=0.2)
    assert found.seeds_by_method == pytest.approx([0.03**2, 0.0], rel=0.1)
    words = " ".join(claims.variance_sentences(made))
    assert "seed of the map (" in words
    assert "the scores are means over 5 seeds on each split" in words
    assert "With one seed" not in words
    sources = {each["source"]: each["sd"] for each in table_named("variance-components", made).rows}
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
    assert get_claims(made).components.seeds is None
    assert "With one seed" in " ".join(claims.variance_sentences(made))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (clear(3, 1), "All methods share at most one split of a dataset"),
        ([row("iris", "a"), row("wine", "a")], "One method does not show"),
        ([row("iris", "a"), row("wine", "b")], "No dataset was finished by all methods"),
    ],
)
def test_variances_that_cannot_be_estimated_say_why(rows, words):
    assert claims.variance_sentences(said(rows))[0].startswith(words)


def test_equal_scores_everywhere_decide_nothing():
    rows = [row(d, m, accuracies=[0.5] * 4) for d in ("x", "y", "z") for m in "abc"]
    made = said(rows)
    assert {place.status for place in findings.places(made, "fit_time_s")} == {"undecided"}
    assert all(
        each.reason.startswith("all differences are equal") for each in get_claims(made).contests
    )
    assert made.certainty.stability.best_group == (0, 1, 2)


def test_units_of_targets_are_not_averaged():
    rows = [
        regression_row(d, m, [1.0, 1.1, 1.3], sd) for d, sd in (("x", 1), ("y", 9)) for m in "ab"
    ]
    made = said(rows, metric=Metric("rmse", "lower", in_units=True, task="regression"))
    assert "different units" in made.certainty.front("fit_time_s").reason
    assert "different units" in claims.variance_sentences(made)[0]
    assert len(get_claims(made).contests) == 2


def test_inner_scores_by_seconds_end_with_the_score_on_the_test_parts():
    made = said(searched([row(d, m) for d in ("x", "y") for m in "ab"]))
    first, second, *_ = table_named("search-time", made).rows
    assert (first["seconds"], first["inner"], first["outer"]) == (0.1, 0.8, None)
    assert (second["seconds"], second["inner"], second["outer"]) == (1.0, 0.85, pytest.approx(0.9))
    assert second["total_s"] == pytest.approx(1.01)
    text = page(made, Registry())
    assert "Validation accuracy against search time" in text
    assert "Validation scores are optimistic" in text
    assert "against search time" not in page(content(grid(2, 2)), Registry())


def test_the_coverage_error_of_a_perfect_model_stands_beside_that_of_few_rows():
    rng = np.random.default_rng(0)
    for n in (1, 7, 15, 40):
        drawn = np.abs((rng.random((20_000, n)) < 0.9).mean(axis=1) - 0.9).mean()
        assert claims.coverage_by_chance(n) == pytest.approx(drawn, rel=0.03)
    rows = [
        changed(regression_row(name, "rff", (0.5, 0.6)), coverage_error_90=0.06, n_test=n)
        for name, n in (("large", 1000.0), ("small", 15.0))
    ]
    (said,) = (each for each in claims.warnings(content(rows)) if "coverage_error_90" in each)
    assert said.endswith("on the test rows of one split: 0.064 on small and 0.008 on large.")


def test_curves_of_datasets_are_averaged_from_where_all_have_begun():
    assert mean_curve([[[1.0, 0.5], [9.0, 0.9]], [[3.0, 0.7]]]) == [(3.0, 0.6), (9.0, 0.8)]

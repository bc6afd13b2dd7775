"""Fronts, places and optimism: by hand, by definition and by simulation.

`tests/benchmarks/bench_claims.py` has the coverage of all of them.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kbench.results import stats


def drawn(gains, logs, n, seed=0, spread=0.01):
    """Accuracies and costs of methods on `n` datasets, with known means."""
    rng = np.random.default_rng(seed)
    g = np.array(gains) + rng.normal(0, 0.1, (n, 1)) + rng.normal(0, spread, (n, len(gains)))
    c = np.array(logs) + rng.normal(0, 0.5, (n, 1)) + rng.normal(0, 0.1, (n, len(gains)))
    return g, 10**c


def statuses(*arguments, **keywords):
    return [place.status for place in stats.front(*arguments, **keywords).places]


# -- fronts


def test_shares_of_draws_are_those_of_the_definition():
    from kbench.results.stats.fronts import _estimate_shares

    # few values, so that gains and costs are often equal
    gains, logs = np.random.default_rng(0).integers(0, 4, (2, 50, 6)).astype(float)
    better, cheaper = (x[:, None, :] - x[:, :, None] for x in (gains, -logs))
    is_dominated = ((better >= 0) & (cheaper >= 0) & (better + cheaper > 0)).any(axis=2)
    assert _estimate_shares(gains, logs).tolist() == (~is_dominated).mean(axis=0).tolist()


def test_a_report_tests_the_gains_once_for_all_fronts(monkeypatch):
    from kbench.results.leaderboard import Certainty
    from kbench.results.stats import ranking
    from tests.support.report_rows import grid

    rows, tests = grid(6, 4), []
    plain = ranking.flip_p
    monkeypatch.setattr(ranking, "flip_p", lambda d: tests.append(d) or plain(d))
    scores = stats.scores(rows)
    certainty = Certainty(rows, scores, stats.standings(scores, rows))
    assert certainty.stability is not None
    assert not certainty.front("fit_time_s").reason
    assert not certainty.front("predict_time_s").reason
    # the gains, and each cost, against each method
    assert len(tests) == 3 * 4


@pytest.mark.parametrize("n", [7, 15, 30])
def test_clear_methods_are_decided_and_the_dominating_one_is_named(n):
    found = stats.front(*drawn([0.9, 0.7, 0.6, 0.65], [1.0, 0.0, -1.0, 0.5], n))
    assert [place.status for place in found.places] == [
        "frontier", "frontier", "frontier", "dominated",
    ]  # fmt: skip
    assert [place.by for place in found.places] == [None, None, None, 1]
    assert found.places[0].probability > 0.99 > 0.01 > found.places[3].probability


def test_a_method_behind_by_less_than_the_noise_is_undecided():
    gains, costs = drawn([0.9, 0.9], [0.0, 1.0], 10, seed=2)
    found = stats.front(gains, costs)
    assert [place.status for place in found.places] == ["frontier", "undecided"]
    assert 0.05 < found.places[1].probability < 0.95


def test_dominated_is_the_intersection_union_test():
    gains, costs = drawn([0.80, 0.79], [0.0, 0.05], 8, seed=3)
    d, c = gains[:, 0] - gains[:, 1], np.log10(costs[:, 1]) - np.log10(costs[:, 0])
    flips = np.array(list(itertools.product((1, -1), repeat=8)))
    p = max(np.mean(flips @ x >= x.sum() - 1e-9) for x in (d, c))
    # of two claims at once
    for alpha, status in ((2 * p * 1.01, "dominated"), (2 * p * 0.99, "undecided")):
        assert statuses(gains, costs, alpha=alpha)[1] == status


def test_splits_of_a_dataset_have_the_variance_of_nadeau_and_bengio():
    gains, costs = drawn([0.80, 0.79], [0.0, 1.0], 10, seed=1)
    error = (gains[:, 0] - gains[:, 1]).std(ddof=1) * math.sqrt(1 / 10 + 0.25)
    p = reference.t.sf((gains[:, 0] - gains[:, 1]).mean() / error, 9)
    assert statuses(gains, costs, ratio=0.25, alpha=p * 1.01)[1] == "dominated"
    assert statuses(gains, costs, ratio=0.25, alpha=p * 0.99)[1] == "undecided"
    assert statuses(gains, costs, ratio=0.01, alpha=p * 0.99)[1] == "dominated"


def test_splits_are_never_resampled():
    # 30 splits of which resampling would give means between those of the splits only
    gains = drawn([0.8, 0.8], [0.0, 0.0], 30)[0]
    means = stats.mean_draws(gains[:, :1] - gains[:, 1:], ratio=0.25)
    sd = (gains[:, 0] - gains[:, 1]).std(ddof=1)
    expected = sd * math.sqrt((1 / 30 + 0.25) * 29 / 27)
    assert means.std() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("n", [6, 40])
def test_draws_of_means_keep_the_covariance_of_columns(n):
    values = np.random.default_rng(0).normal(size=(n, 2)) @ [[1.0, 0.9], [0.0, 0.3]]
    means = stats.mean_draws(values, n_draws=40_000)
    assert means.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.02)
    assert np.corrcoef(means.T)[0, 1] == pytest.approx(np.corrcoef(values.T)[0, 1], abs=0.02)


def test_the_number_of_components_needs_no_test():
    gains = drawn([0.9, 0.8, 0.8], [0, 0, 0], 6)[0]
    widths = np.tile([100.0, 300.0, 100.0], (6, 1))
    assert statuses(gains, widths) == ["frontier", "dominated", "undecided"]


def test_equal_scores_decide_nothing():
    rng = np.random.default_rng(0)
    gains, costs = np.full((6, 3), 0.5), rng.lognormal(size=(6, 3))
    found = stats.front(gains, costs)
    assert {place.status for place in found.places} == {"undecided"}
    assert found.hypervolume == 0.0
    assert statuses(gains, np.ones((6, 3))) == ["undecided"] * 3
    assert all(p.probability == 1.0 for p in stats.front(gains, np.ones((6, 3))).places)


def test_a_front_says_why_nothing_can_be_said():
    one = np.ones((1, 2))
    assert "at least two groups" in stats.front(one, one).reason
    assert "two methods" in stats.front(np.ones((5, 1)), np.ones((5, 1))).reason
    for cost in (np.nan, 0.0):
        found = stats.front(np.ones((5, 2)), np.array([[1.0, cost]] * 5))
        assert found.reason == "some method has no cost"
        assert {place.status for place in found.places} == {"undecided"}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_hypervolume_counts_the_dominated_squares(points):
    gains, logs = np.array(points, dtype=float).T
    squares = {
        (x, y)
        for gain, log in points
        for x in range(log, 6)
        for y in range(gain)
    }  # fmt: skip
    assert stats.hypervolume(gains, logs, (0.0, 6.0))[0] == len(squares)


# -- stability


@pytest.mark.parametrize("n", [12, 25])
def test_clear_methods_are_told_apart_and_ties_are_not(n):
    rng = np.random.default_rng(0)
    values = np.array([3.0, 1.0, 1.0, -1.0]) + rng.normal(0, 0.3, (n, 4))
    shown = (stats.worse_p(values) <= 0.05).sum(axis=1)
    assert shown.tolist() == [0, 1, 1, 3]


def test_no_equal_method_is_worse():
    assert (stats.worse_p(np.full((6, 3), 0.5)) == 1).all()


def test_a_first_place_that_one_dataset_decides_is_not_stable():
    gains = np.array([[3, 2, 1], [1, 3, 2], [3, 2, 1], [2, 3, 1.0]])
    gains[1] = [1, 2, 3]
    found = stats.stability(gains)
    assert found.leader == 0
    # without a dataset that the leader won, the second has the better mean rank
    assert found.changes == [0, 2]
    assert found.without[0] == (1,)


def test_a_leader_of_all_datasets_is_stable():
    rng = np.random.default_rng(0)
    found = stats.stability(np.array([3.0, 1.0, 1.0]) + rng.normal(0, 0.2, (9, 3)))
    assert (found.changes, found.best_group) == ([], (0,))


# -- optimism


def test_optimism_is_near_the_truth_for_equal_candidates():
    rng, estimates, actual = np.random.default_rng(0), [], []
    for _ in range(500):
        folds = rng.normal(0, 1, (20, 3))
        estimates.append(stats.optimism(folds))
        actual.append(folds.mean(axis=1).max())
    assert np.mean(estimates) == pytest.approx(np.mean(actual), rel=0.1)


def test_one_candidate_has_no_optimism():
    assert stats.optimism(np.array([[0.8, 0.9, 0.7]])) == pytest.approx(0.0)
    # equal candidates are averaged: the first is not preferred
    assert stats.optimism(np.array([[0.8, 0.9]] * 3)) == pytest.approx(0.0)


def test_optimism_needs_two_folds():
    with pytest.raises(ValueError, match="at least 2 folds"):
        stats.optimism(np.array([[0.8], [0.9]]))

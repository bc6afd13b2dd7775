"""What may be claimed of places: tied methods, few datasets, missing cells."""

import itertools
import math
import warnings

import numpy as np
import pytest

from kbench.results import stats
from kbench.results.one_vs_all import against
from kbench.results.stats.ranking import ALL_SIGNS
from kbench.results.stats.resampling import mean_interval, mean_intervals, median_interval
from tests.support.report_rows import row

NAN = math.nan


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_two_tied_methods_have_no_certain_place_on_few_datasets(n):
    # the difference of the ranks is the same on each dataset, which is no certainty
    gains = np.array([[0.9, 0.8]] * n)
    assert stats.rank_sets(gains) == [(1, 2), (1, 2)]
    assert not stats.stability(gains).is_stable


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3), (7, 5), (10, 28)])
def test_nothing_is_shown_on_fewer_groups_than_the_rivals_need(n, k):
    gains = np.tile(np.arange(k, dtype=float), (n, 1))
    assert set(stats.rank_sets(gains)) == {(1, k)}
    assert not stats.stability(gains).is_tested
    gains = np.tile(np.arange(k, dtype=float), (n + 1, 1))
    assert stats.rank_sets(gains) == [(k - i, k - i) for i in range(k)]
    assert stats.stability(gains).is_tested


@pytest.mark.parametrize("n", [7, 9, ALL_SIGNS + 4])
@pytest.mark.parametrize("kind", ["normal", "exponential", "lognormal"])
def test_a_tied_method_loses_or_gains_a_place_in_few_suites(n, kind):
    rng, k, replicates = np.random.default_rng(0), 3, 300
    wrong = 0
    for _ in range(replicates):
        gains = getattr(rng, kind)(size=(n, k)) + rng.normal(size=(n, 1))
        wrong += stats.rank_sets(gains)[0] != (1, k)
    # 5 % and two standard errors
    assert wrong / replicates < 0.05 + 2 * math.sqrt(0.05 * 0.95 / replicates)


def naive_places(gains, alpha=0.05):
    """Return the first method's set by trying every sign in turn, and every set of claims."""
    n, k = gains.shape
    claims = []
    for j in range(1, k):
        for sign in (1, -1):
            d = sign * (gains[:, 0] - gains[:, j])
            ranks = [
                np.mean([np.sum(np.abs(d) <= abs(x)), np.sum(np.abs(d) < abs(x)) + 1]) for x in d
            ]
            signed = np.sign(d) * ranks
            claims.append(signed / np.sqrt(np.sum(signed**2)))
    signed = np.array(claims)
    flips = np.array(list(itertools.product((1, -1), repeat=n)))
    drawn = flips @ signed.T
    left, shown = set(range(len(claims))), set()
    while left:
        best = max(left, key=lambda c: signed[c].sum())
        largest = drawn[:, sorted(left)].max(axis=1)
        if np.mean(largest >= signed[best].sum() - 1e-9) > alpha:
            break
        shown.add(best)
        left.remove(best)
    return 1 + sum(c % 2 for c in shown), k - sum(c % 2 == 0 for c in shown)


@pytest.mark.parametrize("seed", range(12))
def test_places_are_those_of_a_naive_enumeration(seed):
    rng = np.random.default_rng(seed)
    gains = rng.normal([0.0, 1.0, -1.5, 0.5], 1.0, (8, 4))
    if seed % 2:
        gains = gains.round(0) + 1e-3 * rng.normal(size=gains.shape).round(0)  # ties and zeros
    assert stats.rank_sets(gains)[0] == naive_places(gains)


def test_a_third_method_does_not_change_what_is_shown_of_two():
    rng = np.random.default_rng(0)
    two = rng.normal([1.5, 0.0], 1.0, (20, 2))
    third = two[:, 1] + rng.uniform(0, 5, 20)
    # ranks of three methods would put the third one between the two on many datasets
    first, second = stats.rank_sets(two)
    assert (first, second) == ((1, 1), (2, 2))
    p = stats.wilcoxon_holm(two)[0, 1]
    assert stats.signed_rank(two[:, 0] - two[:, 1]).p == p
    places = stats.rank_sets(np.column_stack([two, third]))
    assert places[1][0] >= 2


def test_missing_cells_count_against_a_claim():
    gains = np.tile([0.9, 0.8], (9, 1))
    assert stats.rank_sets(gains) == [(1, 1), (2, 2)]
    for column in (0, 1):
        lacking = np.vstack([gains, gains])
        lacking[:5, column] = NAN
        assert stats.rank_sets(lacking) == [(1, 2), (1, 2)]
        assert stats.wilcoxon_holm(lacking)[0, 1] > 0.05
    # one of many does not undo what is clear
    lacking = np.vstack([gains, gains])
    lacking[0, 0] = NAN
    assert stats.rank_sets(lacking) == [(1, 1), (2, 2)]


def test_a_tied_method_that_fails_where_it_is_worst_does_not_lead():
    rng, led = np.random.default_rng(0), 0
    for _ in range(100):
        gains = rng.normal(size=(20, 2))
        lost = np.argsort(gains[:, 0] - gains[:, 1])[:7]
        full = np.delete(gains, lost, axis=0)
        gains[lost, 0] = NAN
        led += stats.stability(full, tried=gains).is_stable
    assert led == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_the_signed_rank_test_counts_missing_differences_as_the_largest(sign):
    d = sign * np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.05])
    worst = stats.signed_rank([*d, -sign * 99.0])
    found = stats.signed_rank([*d, NAN])
    assert (found.p, found.plus, found.minus) == (worst.p, worst.plus, worst.minus)
    # neither sign can be claimed
    assert stats.signed_rank([0.1, NAN, NAN]).p == 1.0


def test_scores_know_which_cells_are_missing():
    rows = [
        *[row(name, m, accuracies=(0.9,)) for name in ("iris", "wine", "zoo") for m in "ab"],
        row("zip", "a", accuracies=(0.8,), dataset_family="g"),
        row("zap", "a", accuracies=(0.6,), dataset_family="g"),
        row("zap", "b", accuracies=(0.7,), dataset_family="g"),
        row("zip", "b", status="timed_out", n_splits_done=0, dataset_family="g"),
        # nobody could have it
        *[row("gone", m, status="unavailable", n_splits_done=0) for m in "ab"],
    ]
    found = stats.scores(rows)
    assert found.datasets == ("iris", "wine", "zoo", "zap")
    assert found.tried_datasets == ("iris", "wine", "zoo", "zip", "zap")
    assert found.missing == {("b", "ridge"): ("zip",)}
    assert found.tried == pytest.approx(np.array([[0.9] * 2] * 3 + [[0.7, NAN]]), nan_ok=True)
    assert found.values[-1] == pytest.approx([0.6, 0.7])
    assert found.average_tried(rows, "n_splits").shape == found.tried.shape


def test_a_front_counts_missing_cells_against_claims():
    rng = np.random.default_rng(0)
    gains = np.array([0.9, 0.8]) + rng.normal(0, 0.01, (8, 2))
    costs = np.array([1.0, 2.0]) * rng.lognormal(0, 0.1, (8, 2))
    statuses = [place.status for place in stats.front(gains, costs).places]
    assert statuses == ["frontier", "dominated"]
    gains[:3, 0] = costs[:3, 0] = NAN
    found = stats.front(gains, costs)
    assert [place.status for place in found.places] == ["undecided", "undecided"]
    complete = stats.front(gains[3:], costs[3:])
    assert found.hypervolume == complete.hypervolume
    assert complete.places[0].status == "frontier"


def test_a_group_of_which_nobody_has_all_datasets_counts_against_claims():
    rng = np.random.default_rng(0)
    gains = np.array([0.9, 0.8]) + rng.normal(0, 0.01, (8, 2))
    costs = np.array([1.0, 2.0]) * rng.lognormal(0, 0.1, (8, 2))
    gains[:3] = costs[:3] = NAN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = stats.front(gains, costs)
        assert [place.status for place in found.places] == ["undecided", "undecided"]
        assert stats.rank_sets(gains) == [(1, 2), (1, 2)]
        more = (np.vstack([each[2:], each[3:], each[3:]]) for each in (gains, costs))
        places = stats.front(*more).places
    # one of sixteen does not undo what is clear
    assert [place.status for place in places] == ["frontier", "dominated"]


def test_a_method_in_focus_does_not_win_by_cells_that_it_lacks():
    rows = [
        row(f"data-{i}", m, accuracies=a)
        for i in range(9)
        for m, a in (("mine", (0.9,) * 3), ("rff", (0.8,) * 3))
    ]
    (found,) = against(rows, ("mine", "ridge"))
    assert (found.verdict, found.p) == ("better", 2**-8)
    rows += [row(f"lost-{i}", "rff", accuracies=(0.7,) * 3) for i in range(4)]
    (found,) = against(rows, ("mine", "ridge"))
    assert found.verdict == "not distinguishable"
    assert found.difference == pytest.approx(0.1)


# -- intervals


@pytest.mark.parametrize(
    ("kind", "n", "at_least"),
    [
        ("exponential", 5, 0.93),
        ("exponential", 10, 0.93),
        ("lognormal", 5, 0.89),
        ("normal", 5, 0.95),
    ],
)
def test_intervals_of_means_cover_skewed_values(kind, n, at_least):
    rng = np.random.default_rng(0)
    mean = {"exponential": 1.0, "lognormal": math.exp(0.5), "normal": 0.0}[kind]
    low, high = mean_intervals(getattr(rng, kind)(size=(n, 2000)), n_draws=2000)
    assert np.mean((low <= mean) & (mean <= high)) >= at_least


def test_the_interval_of_a_mean_holds_students_interval():
    values = np.random.default_rng(0).gamma(1.0, size=(12, 30))
    low, high = mean_intervals(values)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(12)
    assert (low <= mean - 2.2009 * error).all()
    assert (high >= mean + 2.2009 * error).all()
    # values of a long upper tail: the mean may be further above than below
    assert np.median((high - mean) / (mean - low)) > 1.2


@pytest.mark.parametrize("n", [6, 9, 20, 41])
def test_the_interval_of_a_median_covers_exactly(n):
    from scipy.stats import binom

    median, low, high = median_interval(np.arange(n))
    assert (median, low + high) == ((n - 1) / 2, n - 1)
    # as many values below the median as a binomial with probability 1/2
    covered = 1 - 2 * binom.cdf(low, n, 0.5)
    wider = 1 - 2 * binom.cdf(low + 1, n, 0.5)
    assert covered >= 0.95 > wider


def test_few_values_have_no_interval_of_the_median():
    median, low, high = median_interval([0.1, 0.2, 0.3, 0.4, 0.9])
    assert median == 0.3
    assert math.isnan(low)
    assert math.isnan(high)
    assert mean_interval([0.1, 0.2, 0.3, 0.4, 0.9])[0] < 0.1

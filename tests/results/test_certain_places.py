"""What may be claimed of methods: tied ones, few datasets, missing cells."""

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


@pytest.mark.parametrize(("n", "is_shown"), [(2, False), (4, False), (5, True), (8, True)])
def test_no_method_is_excluded_on_fewer_than_five_groups(n, is_shown):
    # the difference is the same on each dataset, which is no certainty
    found = stats.stability(np.array([[0.9, 0.8]] * n))
    assert found.best_group == ((0,) if is_shown else (0, 1))
    assert found.is_tested == is_shown


@pytest.mark.parametrize("n", [5, 8, ALL_SIGNS, ALL_SIGNS + 4])
@pytest.mark.parametrize("kind", ["normal", "exponential", "lognormal"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_method_as_good_as_all_is_in_the_best_group(n, kind, sign):
    rng, replicates, excluded = np.random.default_rng(0), 500, 0
    for _ in range(replicates):
        gains = sign * getattr(rng, kind)(size=(n, 8)) * rng.lognormal(size=(n, 1))
        excluded += stats.flip_p(gains[:, 1:] - gains[:, :1])[1].min() <= 0.05
    # 5 % and three standard errors
    assert excluded / replicates < 0.05 + 3 * math.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.parametrize("n", [6, 11])
def test_the_best_group_excludes_methods_that_are_behind_by_more_than_the_noise(n):
    rng, means = np.random.default_rng(0), np.repeat([0.98, 0.97, 0.90, 0.40], (10, 10, 7, 1))
    gains = means + rng.normal(0, 0.02, (n, 28)) + rng.normal(0, 0.1, (n, 1))
    group = stats.stability(gains).best_group
    assert 27 not in group
    assert len(set(range(20, 27)) - set(group)) >= (3 if n == 6 else 6)
    assert group[0] < 10


def naive_worse(gains, alpha=0.05):
    """Return the methods that the first one is worse than, by trying every sign in turn."""
    n, k = gains.shape
    signed = []
    for j in range(1, k):
        d = gains[:, j] - gains[:, 0]
        signed.append(d / np.sqrt(np.sum(d**2)))
    signed = np.array(signed)
    drawn = np.array(list(itertools.product((1, -1), repeat=n))) @ signed.T
    left, shown = set(range(k - 1)), set()
    while left:
        best = max(left, key=lambda c: signed[c].sum())
        largest = drawn[:, sorted(left)].max(axis=1)
        if np.mean(largest >= signed[best].sum() - 1e-9) > alpha:
            break
        shown.add(best + 1)
        left.remove(best)
    return shown


@pytest.mark.parametrize("seed", range(8))
def test_what_is_shown_is_that_of_a_naive_enumeration(seed):
    rng = np.random.default_rng(seed)
    gains = rng.normal([0.0, 1.0, -1.5, 0.5], 1.0, (8, 4))
    if seed % 2:
        gains = gains.round(0) + 1e-3 * rng.normal(size=gains.shape).round(0)  # ties and zeros
    assert set(np.flatnonzero(stats.worse_p(gains)[0] <= 0.05)) == naive_worse(gains)


def test_a_third_method_does_not_change_the_test_of_two():
    rng = np.random.default_rng(0)
    two = rng.normal([1.5, 0.0], 1.0, (20, 2))
    p = stats.worse_p(two)[1, 0]
    assert p <= 0.05
    third = two[:, 0] - rng.uniform(0, 5, 20)
    # of several claims, the clearest has a larger p at most
    assert stats.worse_p(np.column_stack([two, third]))[1, 0] >= p
    assert stats.flip_p(two[:, :1] - two[:, 1:])[0] == p


def test_missing_cells_count_against_a_claim():
    gains = np.tile([0.9, 0.8], (18, 1))
    assert stats.stability(gains).best_group == (0,)
    for column in (0, 1):
        lacking = gains.copy()
        lacking[:6, column] = NAN
        assert stats.worse_p(lacking).min() > 0.05
    # one of many does not undo what is clear
    lacking = gains.copy()
    lacking[0, 0] = NAN
    assert stats.worse_p(lacking)[1, 0] <= 0.05


def test_a_tied_method_that_fails_where_it_is_worst_does_not_lead():
    rng, led = np.random.default_rng(0), 0
    for _ in range(100):
        gains = rng.normal(size=(20, 2))
        lost = np.argsort(gains[:, 0] - gains[:, 1])[:7]
        full = np.delete(gains, lost, axis=0)
        gains[lost, 0] = NAN
        led += stats.stability(full, tried=gains).best_group == (0,)
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
    gains = np.array([0.9, 0.8]) + rng.normal(0, 0.01, (9, 2))
    costs = np.array([1.0, 2.0]) * rng.lognormal(0, 0.1, (9, 2))
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
    gains = np.array([0.9, 0.8]) + rng.normal(0, 0.01, (9, 2))
    costs = np.array([1.0, 2.0]) * rng.lognormal(0, 0.1, (9, 2))
    gains[:3] = costs[:3] = NAN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = stats.front(gains, costs)
        assert [place.status for place in found.places] == ["undecided", "undecided"]
        assert stats.worse_p(gains).min() > 0.05
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
    assert (found.verdict, found.p) == ("better", 2**-9)
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


@pytest.mark.parametrize("values", [[0.0] * 4 + [2.3], [0.0] * 10 + [0.3, 1.2], [0.1] * 7 + [0.7]])
def test_resamples_of_equal_values_do_not_decide_an_interval(values):
    low, high = mean_interval(values)
    assert low <= np.mean(values) <= high
    assert high - low < 50 * np.ptp(values)

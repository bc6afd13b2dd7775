"""Checked against Demsar (2006), against the packages where they are there, and by counting."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kbench.records import Metric
from kbench.results import stats
from kbench.results.rows import Row
from tests.support.report_rows import changed

# Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7
# (2006), Table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 datasets. On the last but
# one it prints ranks 2 and 3 beside two equal figures, so that they differ in a later digit.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
DRAWN = np.random.default_rng(3).normal(size=(12, 5)) + np.linspace(0, 1.5, 5)


def test_mean_ranks_of_demsar():
    printed = [3.143, 2.000, 2.893, 1.964]
    assert stats.ranks(DEMSAR).mean(axis=0) == pytest.approx(printed, abs=6e-4)


def test_friedman_and_iman_davenport_of_demsar():
    found = stats.friedman(DEMSAR, correct_ties=False)
    assert found.chi2 == pytest.approx(9.28, abs=0.01)
    assert pytest.approx((3.69,), abs=0.01) == (found.F,)
    # critical value of F(3, 39) at 0.05 is 2.85: rejected
    assert found.F_p < 0.05


def test_signed_ranks_of_demsar():
    found = stats.signed_rank(DEMSAR[:, 1] - DEMSAR[:, 0])
    assert (found.plus, found.minus) == (93.0, 12.0)
    assert found.p < 0.05


def test_friedman_is_scipys():
    for values in (DEMSAR, DRAWN):
        expected = reference.friedmanchisquare(*values.T)
        found = stats.friedman(values)
        assert (found.chi2, found.p) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("pair", list(itertools.combinations(range(5), 2)))
def test_signed_rank_without_ties_is_scipys_exact_test(pair):
    d = DRAWN[:, pair[0]] - DRAWN[:, pair[1]]
    found, expected = stats.signed_rank(d), reference.wilcoxon(d, method="exact")
    assert found.p == pytest.approx(expected.pvalue)
    assert min(found.plus, found.minus) == expected.statistic


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_signed_rank_with_ties_counts_all_signs(differences):
    d = np.array(differences, dtype=float)
    r = reference.rankdata(np.abs(d))[d != 0]
    found = stats.signed_rank(d)
    assert found.plus + found.minus == pytest.approx(len(d) * (len(d) + 1) / 2)
    observed = abs(r @ np.sign(d[d != 0]))
    extreme = [
        abs(r @ np.array(signs)) >= observed - 1e-9
        for signs in itertools.product((-1, 1), repeat=len(r))
    ]
    assert found.p == pytest.approx(np.mean(extreme))


def test_signed_rank_is_continuous_where_it_stops_being_exact():
    d = np.random.default_rng(0).normal(0.2, 1, size=100)
    exact = stats.signed_rank(d).p
    more = stats.signed_rank(np.concatenate([d, [1e-6]])).p
    assert exact == pytest.approx(more, rel=0.1)


def test_no_p_is_above_one():
    assert stats.signed_rank([1.0, -1.0]).p == 1.0
    assert stats.signed_rank([0.0, 0.0]).p == 1.0
    assert stats.signed_rank([]).p == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_rule_rejects(p):
    order = np.argsort(p, kind="stable")
    rejected = set()
    for step, i in enumerate(order):
        if p[i] * (len(p) - step) > 0.05:
            break
        rejected.add(int(i))
    assert set(np.flatnonzero(stats.holm(p) <= 0.05)) == rejected


def test_holm_is_that_of_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    adjusted = posthocs.posthoc_wilcoxon(list(DRAWN.T), p_adjust="holm").to_numpy()
    a, b = np.triu_indices(DRAWN.shape[1], 1)
    p = [stats.signed_rank(DRAWN[:, i] - DRAWN[:, j]).p for i, j in zip(a, b, strict=True)]
    assert stats.holm(p) == pytest.approx(adjusted[a, b], abs=1e-9)


def test_bayesian_signed_rank_is_that_of_baycomp():
    baycomp = pytest.importorskip("baycomp")
    x, y = DEMSAR[:, 1], DEMSAR[:, 0]
    for rope in (0.0, 0.005, 0.02):
        left, same, right = (
            baycomp.SignedRankTest(y, x, rope, nsamples=20_000, random_state=1).probs()
            if rope
            else _two(baycomp, y, x)
        )
        found = stats.bayesian_signed_rank(x - y, rope, n_samples=40_000)
        assert (found.worse, found.same, found.better) == pytest.approx(
            (left, same, right), abs=0.015
        )


def _two(baycomp, y, x):
    sample = baycomp.SignedRankTest(y, x, 0, nsamples=20_000, random_state=1)
    left, right = sample.probs(with_rope=False)
    return left, 0.0, right


@given(st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=12))
def test_bayesian_signed_rank_is_antisymmetric_and_sums_to_one(differences):
    d = np.array(differences)
    one = stats.bayesian_signed_rank(d, n_samples=500)
    other = stats.bayesian_signed_rank(-d, n_samples=500)
    assert one.worse + one.same + one.better == pytest.approx(1)
    assert one.better == pytest.approx(other.worse, abs=1e-9)
    assert one == stats.bayesian_signed_rank(d, n_samples=500)


@pytest.mark.parametrize("prior", [0.5, 2.0])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_bayesian_signed_rank_of_equal_differences_is_exact(k, prior):
    # the weight of the pseudo-difference 0 has a beta distribution; of pairs with it, the
    # sums are d, of the others 2 d; both are compared with 2 * rope
    weight = reference.beta(prior, k)
    rope, half = 0.01, math.sqrt(0.5)
    for d, p in ((0.03, weight.cdf(half)), (0.015, weight.cdf(1 - half)), (0.005, 0.0)):
        found = stats.bayesian_signed_rank([d] * k, rope, prior, n_samples=20_000)
        assert (found.better, found.same) == pytest.approx((p, 1 - p), abs=0.015)
        assert found.worse == 0.0


def test_bayesian_signed_rank_knows_what_is_practically_the_same():
    assert stats.bayesian_signed_rank(np.full(10, 0.001)).same > 0.99
    assert stats.bayesian_signed_rank(np.full(10, 0.05)).better > 0.99
    assert stats.bayesian_signed_rank(np.full(10, -0.05)).worse > 0.99


def test_corrected_t_without_overlap_is_the_paired_t_test():
    d = DRAWN[:, 0] - DRAWN[:, 1]
    expected = reference.ttest_1samp(d, 0.0)
    found = stats.corrected_t(d, test_to_train=0.0)
    interval = expected.confidence_interval()
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_corrected_t_by_its_formula():
    d = np.array([0.02, 0.01, 0.03, 0.02, 0.025])
    t = d.mean() / math.sqrt(d.var(ddof=1) * (1 / 5 + 1 / 4))
    assert stats.corrected_t(d, 1 / 4).p == pytest.approx(2 * reference.t.sf(t, 4))


def test_corrected_t_of_equal_and_of_constant_differences():
    """No p of 0 and no interval of width zero: two splits of 1/30 each are no proof."""
    for value in (0.0, 0.1, 1 / 30):
        found = stats.corrected_t([value, value], 0.25)
        assert found.difference == pytest.approx(value)
        assert (found.low, found.high, found.p) == (None, None, None)
    thirds = np.subtract([0.3, 0.8], [0.2, 0.7])
    assert np.ptp(thirds) > 0, "equal but for their rounding"
    assert stats.corrected_t(thirds, 0.25).p is None
    for n, k in itertools.product(range(3, 60), (3, 5, 10)):
        # floats whose mean is often another float
        found = stats.corrected_t([-1 / n] * k, 0.25)
        assert (found.low, found.high, found.p, found.is_zero) == (None, None, None, False)
    assert stats.corrected_t([1e-12, 0.0, 1e-12], 0.25).is_zero
    assert stats.corrected_t([0.1, 0.1, 0.1001], 0.25).p < 0.05
    with pytest.raises(ValueError, match="at least 2 splits"):
        stats.corrected_t([0.1], 0.25)


def test_the_ratio_of_parts_is_never_that_of_the_uncorrected_test():
    bare = Row("iris", "rff", "ridge", "ok", 5, 5)
    assert stats.holdout_ratio(changed(bare, n_test=30.0, n_train=120.0)) == 0.25
    folds = changed(bare, split_hash={str(i): "x" for i in range(5)})
    for unknown in ({}, {"n_test": 30.0}, {"n_train": 120.0}, {"n_test": 30.0, "n_train": 0.0}):
        assert stats.holdout_ratio(changed(folds, **unknown)) == 0.25
        assert stats.holdout_ratio(changed(bare, **unknown)) == 1.0


def test_corrected_t_keeps_its_level_where_splits_share_training_rows():
    rng = np.random.default_rng(0)
    plain, corrected = 0, 0
    for _ in range(400):
        # differences of repeated 70/30 holdouts, correlated by the share of the test part
        shared = rng.normal() * math.sqrt(0.3)
        d = shared + rng.normal(size=10) * math.sqrt(0.7)
        plain += reference.ttest_1samp(d, 0).pvalue < 0.05
        corrected += stats.corrected_t(d, 3 / 7).p < 0.05
    assert plain > 2 * 400 * 0.05
    assert corrected < 1.6 * 400 * 0.05


def test_wins_ties_losses_against_the_signs():
    found = stats.wins_ties_losses(DEMSAR)
    assert found.sum(axis=2) == pytest.approx(len(DEMSAR))
    assert np.array_equal(found[..., 0], found[..., 2].T)
    # Demsar, Table 2: C4.5+m wins 10, ties 2, loses 2 against C4.5
    assert list(found[1, 0]) == [10, 2, 2]


def test_the_interval_of_fewer_than_five_groups_is_scipys_t_interval():
    x = (DEMSAR[:, 1] - DEMSAR[:, 0])[:4]
    for level in (0.5, 0.95):
        expected = reference.ttest_1samp(x, 0).confidence_interval(level)
        assert stats.mean_interval(x, level) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_many_groups_is_the_bootstrap_t_interval():
    x = np.random.default_rng(1).gamma(1.0, size=25)
    rng, n, drawn = np.random.default_rng(2), len(x), []
    for _ in range(8_000):
        sample = rng.choice(x, n)
        drawn.append((sample.mean() - x.mean()) / (sample.std(ddof=1) / math.sqrt(n)))
    low, high = np.quantile(drawn, [0.025, 0.975])
    error = x.std(ddof=1) / math.sqrt(n)
    student = reference.t.ppf(0.975, n - 1)
    expected = x.mean() - max(high, student) * error, x.mean() - min(low, -student) * error
    assert stats.mean_interval(x) == pytest.approx(expected, abs=0.03)
    # of a skewed distribution the longer side is that of large values
    assert expected[1] - x.mean() > 1.2 * (x.mean() - expected[0])


def test_one_group_has_no_interval_and_equal_values_have_no_width():
    assert np.isnan(stats.mean_interval([0.3])).all()
    assert stats.mean_interval([0.3] * 30) == pytest.approx((0.3, 0.3))


def test_differences_of_rounding_are_ties():
    assert stats.signed_rank([0.1, -0.1 - 4e-13]).plus == 1.5
    assert stats.signed_rank([0.1, -0.1 - 4e-12]).plus == 1.0
    assert stats.ranks(np.array([[0.1, 0.1 + 4e-13]])).tolist() == [[1.5, 1.5]]
    assert stats.ranks(np.array([[0.1, 0.1 + 4e-12]])).tolist() == [[2.0, 1.0]]


def test_lower_may_be_better():
    rows = [row("iris", m, None, log_loss=loss) for m, loss in (("a", 0.4), ("b", 0.3))]
    rows = [changed(each, fit_time_s=1.0, predict_time_s=1.0) for each in rows]
    found = stats.scores(rows, Metric("log_loss", "lower"))
    assert found.gains.argmax() == 1
    assert [(e.method[0], e.rank, e.mean) for e in stats.standings(found, rows)] == [
        ("b", 1.0, 0.3),
        ("a", 2.0, 0.4),
    ]


def row(dataset, feature_map, accuracy, **more):
    made = Row(dataset, feature_map, "ridge", "ok", n_splits_done=5, n_splits=5)
    return changed(made, accuracy=accuracy, **more)


def test_datasets_of_a_group_count_once():
    rows = [
        row(dataset, m, a, dataset_family=group)
        for dataset, group, pair in (
            ("iris", "iris", (0.9, 0.8)),
            ("iris-setosa", "iris", (0.7, 1.0)),
            ("wine", "wine", (0.6, 0.5)),
        )
        for m, a in zip("ab", pair, strict=True)
    ]
    found = stats.scores(rows)
    assert found.groups == ("iris", "wine")
    assert found.values == pytest.approx(np.array([[0.8, 0.9], [0.6, 0.5]]))
    assert found.datasets == ("iris", "iris-setosa", "wine")


def test_only_datasets_that_all_methods_finished_are_compared():
    rows = [
        row("iris", "a", 0.9),
        row("iris", "b", 0.8),
        row("wine", "a", 0.9),
        row("wine", "b", None, status="timed_out", n_splits_done=0),
        row("wdbc", "a", 0.9),
        row("wdbc", "b", 0.9, n_splits_done=4),
        row("zoo", "a", None, status="unavailable", n_splits_done=0),
    ]
    found = stats.scores(rows)
    assert (found.datasets, found.left_out) == (("iris",), ("wine", "wdbc"))
    alone = stats.scores(rows, without=[("b", "ridge")])
    assert alone.methods == (("a", "ridge"),)
    assert alone.datasets == ("iris", "wine", "wdbc")


def test_of_rotations_the_one_that_finished_most_datasets_is_compared():
    a, b, c, d = (
        [row(dataset, m, 0.9, equivalence=key) for dataset in datasets]
        for m, key, datasets in (
            ("a", "one", ("iris",)),
            ("b", "one", ("iris", "wine")),
            ("c", "two", ("iris", "wine")),
            ("d", "", ("iris", "wine")),
        )
    )
    found = stats.scores([*a, *b, *c, *d])
    assert [feature_map for feature_map, _ in found.methods] == ["b", "c", "d"]
    assert found.same == ((("a", "ridge"), ("b", "ridge")),)
    assert found.datasets == ("iris", "wine")
    # of several that finished as many, the first
    (first, kept), *others = stats.scores([*b, *a, row("wine", "a", 0.5, equivalence="one")]).same
    assert (first[0], kept[0], others) == ("a", "b", [])
    # maps without a name of their span are rotations of nothing
    assert stats.scores([*d, row("iris", "e", 0.9)]).same == ()


def test_nothing_to_compare():
    found = stats.scores([row("iris", "a", None, status="error", n_splits_done=0)])
    assert found.values.shape == (0, 0)


@pytest.mark.parametrize(
    ("values", "message"), [([0.1, 0.2], r"got \(2,\)"), ([[0.1, np.inf]], "must be finite")]
)
@pytest.mark.parametrize(
    "function", [stats.ranks, stats.friedman, stats.worse_p, stats.wins_ties_losses]
)
def test_what_is_no_score_is_refused(function, values, message):
    with pytest.raises(ValueError, match=message):
        function(np.array(values))


def test_friedman_needs_two_datasets_and_three_methods():
    for shape in ((1, 3), (2, 2), (1, 2)):
        with pytest.raises(ValueError, match="at least 2 datasets and 3 methods"):
            stats.friedman(np.ones(shape))
    assert stats.friedman(np.ones((2, 3))).chi2 == 0.0


def test_standings_of_two_methods_on_two_datasets():
    rows = [
        row("iris", "a", 0.9, fit_time_s=1.0, predict_time_s=0.1, n_components=2.0, n_test=10.0),
        row("iris", "b", 0.8, fit_time_s=2.0, predict_time_s=0.2, n_components=4.0, n_test=10.0),
        row("wine", "a", 0.5, fit_time_s=4.0, predict_time_s=0.4, n_components=6.0, n_test=20.0),
        row("wine", "b", 0.7, fit_time_s=0.5, predict_time_s=0.2, n_components=6.0, n_test=20.0),
        row("zoo", "a", 0.1, fit_time_s=9.0),
    ]
    first, second = stats.standings(stats.scores(rows), rows)
    # equal ranks: the faster one is first
    assert [(each.place, each.name, each.rank) for each in (first, second)] == [
        (1, "b + ridge", 1.5),
        (2, "a + ridge", 1.5),
    ]
    assert (first.mean, second.mean) == pytest.approx((0.75, 0.7))
    # no accuracy is above 1
    assert stats.mean_interval([0.8, 0.7])[1] > 1
    assert (first.low, first.high) == (stats.mean_interval([0.8, 0.7])[0], 1.0)
    assert (first.fit_time_s, second.fit_time_s) == pytest.approx((1.0, 2.0))
    assert (first.predict_time_s, second.predict_time_s) == pytest.approx((0.2, 0.2))
    row_times = (first.predict_time_per_row_s, second.predict_time_per_row_s)
    assert row_times == pytest.approx((math.sqrt(2e-4),) * 2)
    assert (first.n_components, second.n_components) == (5.0, 4.0)
    assert (first.wins, second.wins) == (1, 1)


def test_standings_are_in_the_order_of_mean_ranks():
    accuracies = {"iris": (0.9, 0.8, 0.7), "wine": (0.5, 0.7, 0.6)}
    rows = [
        row(dataset, m, a, fit_time_s=1.0, predict_time_s=1.0)
        for dataset, values in accuracies.items()
        for m, a in zip("abc", values, strict=True)
    ]
    found = stats.standings(stats.scores(rows), rows)
    assert [(each.method[0], each.rank) for each in found] == [("b", 1.5), ("a", 2.0), ("c", 2.5)]
    assert [each.wins for each in found] == [1, 1, 0]


def test_there_are_no_standings_without_two_methods_and_a_dataset():
    for rows in ([row("iris", "a", 0.9)], [row("iris", "a", 0.9), row("wine", "b", 0.9)]):
        assert stats.standings(stats.scores(rows), rows) == []


@pytest.mark.parametrize(
    ("row", "p"), [([3.0, 2.0, 1.0], 1 / 36), ([2.0, 2.0, 1.0], 1 / 9), ([1.0, 1.0, 1.0], 1.0)]
)
def test_equal_ranks_on_all_datasets_have_the_p_of_permutations(row, p):
    found = stats.friedman(np.array([row] * 3))
    assert found.F_p == pytest.approx(p)

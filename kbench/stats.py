"""Comparing methods over datasets: ranks, tests, intervals. Arrays in, plain records out.

Scores are arrays of shape (n_datasets, n_methods), higher is better, one number
per dataset and method: the mean over its splits. More splits make that number
better; they never make more datasets. `scores` builds the array from results
rows and averages the datasets of a group first.

scipy does the arithmetic of ranks and distributions. The few statistics that
it lacks are written out here, because the packages that have them bring
plotting libraries along; they are checked against those packages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kbench.results import Row, is_complete

Array = NDArray[np.float64]
Method = tuple[str, str]

_EXACT_UP_TO = 100
"""Differences up to which the signed-rank test is exact."""


@dataclass(frozen=True)
class Scores:
    """One number per group of datasets and method.

    Parameters
    ----------
    methods : tuple of (str, str)
        Feature map and learner of each column.
    groups : tuple of str
        Name of each row: datasets of one group count once.
    values : ndarray, shape (n_groups, n_methods)
        Means over the datasets of the group.
    datasets : tuple of str
        The datasets behind the rows: those that all methods finished.
    left_out : tuple of str
        Datasets that some method did not finish.
    """

    methods: tuple[Method, ...]
    groups: tuple[str, ...]
    values: Array
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]


def scores(
    rows: Sequence[Row], measure: str = "accuracy", without: Iterable[Method] = ()
) -> Scores:
    """Collect what may be compared: datasets that all methods finished, once per group.

    Parameters
    ----------
    rows : sequence of dict
        Results rows; a row's ``group`` is its dataset's name where it has none.
    measure : str, default "accuracy"
        Which column to take.
    without : iterable of (feature map, learner)
        Methods to leave out: one of two that are the same up to a rotation.

    Returns
    -------
    Scores
        Methods that finished nothing at all are not compared.
    """
    barred = set(without)
    found = {
        (row["dataset"], row["feature_map"], row["learner"]): row[measure]
        for row in rows
        if is_complete(row)
        and row.get(measure) is not None
        and (row["feature_map"], row["learner"]) not in barred
    }
    methods = tuple(dict.fromkeys(key[1:] for key in found))
    names = tuple(dict.fromkeys(row["dataset"] for row in rows))
    datasets = tuple(
        name for name in names if methods and all((name, *m) in found for m in methods)
    )
    group_of = {row["dataset"]: row.get("group") or row["dataset"] for row in rows}
    groups = tuple(dict.fromkeys(group_of[name] for name in datasets))
    values = np.empty((len(groups), len(methods)))
    for i, group in enumerate(groups):
        members = [name for name in datasets if group_of[name] == group]
        values[i] = np.mean([[found[(name, *m)] for m in methods] for name in members], axis=0)
    tried = {key[0] for key in found}
    left_out = tuple(name for name in names if name in tried and name not in datasets)
    return Scores(methods, groups, values, datasets, left_out)


# ---------------------------------------------------------------------------
# All methods at once
# ---------------------------------------------------------------------------


def ranks(values: Array) -> Array:
    """Rank the methods within each dataset, 1 for the best; ties share the mean rank.

    Parameters
    ----------
    values : ndarray, shape (n_datasets, n_methods)
        Scores, higher is better.

    Returns
    -------
    ndarray, shape (n_datasets, n_methods)

    Examples
    --------
    >>> ranks(np.array([[0.9, 0.8, 0.9]]))
    array([[1.5, 3. , 1.5]])
    """
    from scipy.stats import rankdata

    # rounding first: sums in another order must not break ties
    return np.asarray(rankdata(-np.round(_scores(values), 12), axis=1), dtype=float)


@dataclass(frozen=True)
class Friedman:
    """Friedman's test and its refinement by Iman and Davenport.

    Parameters
    ----------
    chi2, p : float
        Friedman's statistic, with n_methods - 1 degrees of freedom.
    F, F_p : float
        Iman and Davenport's statistic, less conservative, with
        n_methods - 1 and (n_methods - 1)(n_datasets - 1) degrees of freedom.
    """

    chi2: float
    p: float
    F: float
    F_p: float


def friedman(values: Array, correct_ties: bool = True) -> Friedman:
    """Test whether all methods perform alike.

    Parameters
    ----------
    values : ndarray, shape (n_datasets, n_methods)
        Scores of at least two datasets and three methods.
    correct_ties : bool, default True
        Divide by the correction for ties (Conover 1999), as scipy does;
        Demsar (2006) prints the figures without it.

    Returns
    -------
    Friedman

    Raises
    ------
    ValueError
        Too few datasets or methods.

    References
    ----------
    J. Demsar, "Statistical comparisons of classifiers over multiple data sets",
    JMLR 7 (2006), section 3.2.2.

    Examples
    --------
    >>> found = friedman(np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.8, 0.7, 0.6]]))
    >>> round(found.chi2, 6), round(found.p, 3)
    (6.0, 0.05)
    """
    from scipy.stats import chi2, f

    values = _scores(values)
    n, k = values.shape
    if n < 2 or k < 3:
        raise ValueError(f"values has shape {values.shape}; at least 2 datasets and 3 methods")
    placed = ranks(values)
    statistic = 12 * n / (k * (k + 1)) * (np.sum(placed.mean(axis=0) ** 2) - k * (k + 1) ** 2 / 4)
    if correct_ties:
        ties = 0.0
        for row in placed:
            counts = np.unique(row, return_counts=True)[1].astype(float)
            ties += float(np.sum(counts**3 - counts))
        correction = 1 - ties / (n * k * (k**2 - 1))
        statistic = statistic / correction if correction else 0.0
    statistic = max(float(statistic), 0.0)
    rest = n * (k - 1) - statistic
    F = (n - 1) * statistic / rest if rest > 1e-9 else math.inf
    return Friedman(
        statistic,
        float(chi2.sf(statistic, k - 1)),
        F,
        float(f.sf(F, k - 1, (k - 1) * (n - 1))),
    )


def nemenyi_difference(n_datasets: int, n_methods: int, alpha: float = 0.05) -> float:
    """Return the critical difference of mean ranks of Nemenyi's test.

    Parameters
    ----------
    n_datasets, n_methods : int
    alpha : float, default 0.05

    Returns
    -------
    float
        q_alpha sqrt(k (k + 1) / (6 n)), Demsar (2006), section 3.2.2.

    Examples
    --------
    >>> round(nemenyi_difference(14, 4), 2), round(nemenyi_difference(14, 4, 0.1), 2)
    (1.25, 1.12)
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - alpha, n_methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi(values: Array) -> Array:
    """Return the p value of Nemenyi's test for each pair of methods.

    Mean ranks of two methods depend on which others are compared; prefer
    `wilcoxon_holm`.

    Parameters
    ----------
    values : ndarray, shape (n_datasets, n_methods)

    Returns
    -------
    ndarray, shape (n_methods, n_methods)
        Symmetric, ones on the diagonal.

    Examples
    --------
    >>> nemenyi(np.array([[0.9, 0.8], [0.9, 0.7]])).round(2)
    array([[1.  , 0.16], [0.16, 1.  ]])
    """
    from scipy.stats import studentized_range

    values = _scores(values)
    n, k = values.shape
    mean = ranks(values).mean(axis=0)
    q = np.abs(mean[:, None] - mean) / math.sqrt(k * (k + 1) / (6 * n)) * math.sqrt(2)
    p = np.ones((k, k))
    upper = np.triu_indices(k, 1)
    p[upper] = np.clip(studentized_range.sf(q[upper], k, np.inf), 0.0, 1.0)
    return np.minimum(p, p.T)


# ---------------------------------------------------------------------------
# Pairs of methods
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired differences.

    Parameters
    ----------
    plus, minus : float
        Sums of the ranks of positive and of negative differences; those of
        zeros are shared evenly.
    p : float
        Two-sided.
    """

    plus: float
    minus: float
    p: float


def signed_rank(differences: Sequence[float] | Array) -> SignedRank:
    """Test whether paired differences are symmetric about zero.

    Zeros are ranked with the others and their ranks shared (Demsar 2006,
    section 3.1.3). Up to 100 differences p is exact also with ties and zeros:
    all signs of the nonzero differences are equally likely. Beyond, normal.

    Parameters
    ----------
    differences : array-like, shape (n,)

    Returns
    -------
    SignedRank

    Examples
    --------
    >>> signed_rank([0.1, 0.2, 0.3, -0.05])
    SignedRank(plus=9.0, minus=1.0, p=0.25)
    """
    from scipy.stats import norm, rankdata

    d = np.round(np.asarray(differences, dtype=float), 12)
    r = rankdata(np.abs(d)) if len(d) else np.empty(0)
    shared = float(r[d == 0].sum()) / 2
    plus, minus = float(r[d > 0].sum()) + shared, float(r[d < 0].sum()) + shared
    r = r[d != 0]
    if not len(r):
        return SignedRank(plus, minus, 1.0)
    lower = min(plus, minus) - shared
    if len(r) <= _EXACT_UP_TO:
        # doubled, ranks are whole even where they are shared
        share = _null_distribution(tuple(sorted(np.rint(2 * r).astype(int).tolist())))
        p = 2 * float(share[: round(2 * lower) + 1].sum())
    else:
        z = (lower - r.sum() / 2 + 0.5) / math.sqrt(float(np.sum(r**2)) / 4)
        p = 2 * float(norm.cdf(z))
    return SignedRank(plus, minus, min(p, 1.0))


@lru_cache(maxsize=256)
def _null_distribution(doubled: tuple[int, ...]) -> Array:
    """Return how probable each sum of ranks is where all signs are equally likely.

    Without ties the ranks, and thus this, are the same for all pairs of methods.
    """
    share = np.zeros(sum(doubled) + 1)
    share[0] = 1.0
    for step in doubled:
        share[step:] = (share[step:] + share[:-step]) / 2
        share[:step] /= 2
    return share


def smallest_p(n_datasets: int) -> float:
    """Return the smallest p that the signed-rank test can reach, 2 / 2^n.

    Ten methods make 45 pairs; after Holm's correction the best of them reaches
    0.05 on eleven datasets or more.

    Examples
    --------
    >>> smallest_p(5), [smallest_p(n) * 45 < 0.05 for n in (10, 11)]
    (0.0625, [False, True])
    """
    return min(1.0, 2.0 ** (1 - n_datasets))


def holm(p: Sequence[float] | Array) -> Array:
    """Adjust p values for their number, by Holm's step-down method.

    Parameters
    ----------
    p : array-like, shape (n,)

    Returns
    -------
    ndarray, shape (n,)
        Compare with alpha directly.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(
        np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)) if len(p) else p, 1.0
    )
    return adjusted


def wilcoxon_holm(values: Array) -> Array:
    """Test every pair of methods by signed ranks, adjusted by Holm's method.

    Parameters
    ----------
    values : ndarray, shape (n_datasets, n_methods)

    Returns
    -------
    ndarray, shape (n_methods, n_methods)
        Adjusted p values; symmetric, ones on the diagonal.

    References
    ----------
    A. Benavoli, G. Corani, F. Mangili, "Should we really use post-hoc tests
    based on mean-ranks?", JMLR 17 (2016).

    Examples
    --------
    >>> wilcoxon_holm(np.array([[0.9, 0.8], [0.8, 0.6], [0.7, 0.4]]))
    array([[1.  , 0.25], [0.25, 1.  ]])
    """
    values = _scores(values)
    k = values.shape[1]
    a, b = np.triu_indices(k, 1)
    adjusted = np.ones((k, k))
    adjusted[a, b] = holm(
        [signed_rank(values[:, i] - values[:, j]).p for i, j in zip(a, b, strict=True)]
    )
    return np.minimum(adjusted, adjusted.T)


def cliques(mean_ranks: Sequence[float] | Array, p: Array, alpha: float = 0.05) -> list[list[int]]:
    """Find the groups of methods that a critical-difference diagram joins by bars.

    Parameters
    ----------
    mean_ranks : array-like, shape (n_methods,)
    p : ndarray, shape (n_methods, n_methods)
        Adjusted p values.
    alpha : float, default 0.05

    Returns
    -------
    list of list of int
        Longest runs of methods, neighbours in mean rank, in which no pair
        differs; the best first. What a bar joins is thus always true, though
        two methods that it does not join need not differ: see `p`.

    Examples
    --------
    >>> p = np.array([[1, 0.5, 0.01], [0.5, 1, 0.2], [0.01, 0.2, 1]])
    >>> cliques([1.2, 1.9, 2.9], p)
    [[0, 1], [1, 2]]
    """
    order = [int(i) for i in np.argsort(mean_ranks, kind="stable")]
    found: list[list[int]] = []
    end = 0
    for start in range(len(order)):
        reach = start + 1
        while reach < len(order) and all(p[order[reach], j] > alpha for j in order[start:reach]):
            reach += 1
        if reach - start > 1 and reach > end:
            found.append(order[start:reach])
            end = reach
    return found


@dataclass(frozen=True)
class Posterior:
    """What is probable of the difference of two methods on a further dataset.

    Parameters
    ----------
    worse, same, better : float
        Probabilities that the first is practically worse, the same, better;
        they sum to 1.
    """

    worse: float
    same: float
    better: float


def bayesian_signed_rank(
    differences: Sequence[float] | Array,
    rope: float = 0.01,
    prior: float = 0.5,
    n_samples: int = 50_000,
    seed: int = 0,
) -> Posterior:
    """Compare two methods by the Bayesian signed-rank test.

    Parameters
    ----------
    differences : array-like, shape (n_datasets,)
        Scores of the first method less those of the second.
    rope : float, default 0.01
        Half-width of the region of practical equivalence, in units of the score.
    prior : float, default 0.5
        Weight of a pseudo-difference of 0; a real one weighs 1.
    n_samples : int, default 50,000
        Draws of the posterior; the error of a probability is below 0.5 / sqrt(n_samples).
    seed : int, default 0

    Returns
    -------
    Posterior

    References
    ----------
    A. Benavoli, G. Corani, J. Demsar, M. Zaffalon, "Time for a change: a tutorial
    for comparing multiple classifiers through Bayesian analysis", JMLR 18 (2017),
    section 4.2.

    Examples
    --------
    >>> found = bayesian_signed_rank([0.05, 0.03, 0.04, 0.06, 0.05, 0.02])
    >>> found.better > 0.95
    True
    """
    z = np.concatenate([[0.0], np.asarray(differences, dtype=float)])
    sums = z[:, None] + z
    # what lies on an edge counts half on either side
    left, right = (np.heaviside(each - 2 * rope, 0.5) for each in (-sums, sums))
    counts = np.zeros(3)
    # about 32 MB of weights at a time
    for done in range(0, n_samples, chunk := max(1, 4_000_000 // len(z))):
        w = _weights(len(z), prior, min(chunk, n_samples - done), seed + done)
        worse, better = (np.einsum("si,si->s", w @ side, w) for side in (left, right))
        mass = np.stack([worse, 1 - worse - better, better])
        counts += np.bincount(mass.argmax(axis=0), minlength=3)
    worse, same, better = counts / counts.sum()
    return Posterior(float(worse), float(same), float(better))


@lru_cache(maxsize=2)
def _weights(n: int, prior: float, n_samples: int, seed: int) -> Array:
    """Draw the weights of the differences; the same for all pairs of methods."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.array([prior] + [1.0] * (n - 1)), size=n_samples)


@dataclass(frozen=True)
class CorrectedT:
    """Corrected resampled t-test of two methods on one dataset.

    Parameters
    ----------
    difference : float
        Mean over the splits.
    low, high : float
        Interval for it of level 1 - alpha.
    p : float
        Two-sided.
    """

    difference: float
    low: float
    high: float
    p: float


def corrected_t(
    differences: Sequence[float] | Array, test_to_train: float, alpha: float = 0.05
) -> CorrectedT:
    """Compare two methods on one dataset over splits that share training rows.

    Parameters
    ----------
    differences : array-like, shape (n_splits,)
        Scores of the first method less those of the second on the same splits,
        at least two.
    test_to_train : float
        Test rows over training rows: 1 / (k - 1) for k folds.
    alpha : float, default 0.05

    Returns
    -------
    CorrectedT

    Raises
    ------
    ValueError
        Fewer than two splits.

    References
    ----------
    C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine
    Learning 52 (2003), section 3: the variance is multiplied by
    1/n + n_test/n_train instead of 1/n.

    Examples
    --------
    >>> found = corrected_t([0.02, 0.01, 0.03, 0.02, 0.02], test_to_train=0.25)
    >>> round(found.difference, 3), round(found.p, 3)
    (0.02, 0.014)
    """
    from scipy.special import stdtr, stdtrit

    d = np.round(np.asarray(differences, dtype=float), 12)
    n = len(d)
    if n < 2:
        raise ValueError(f"differences has {n} values; at least 2 splits are compared")
    mean = float(d.mean())
    error = float(d.std(ddof=1)) * math.sqrt(1 / n + test_to_train)
    if error == 0:
        return CorrectedT(mean, mean, mean, 1.0 if mean == 0 else 0.0)
    wide = error * float(stdtrit(n - 1, 1 - alpha / 2))
    p = 2 * float(stdtr(n - 1, -abs(mean) / error))
    return CorrectedT(mean, mean - wide, mean + wide, p)


def wins_ties_losses(values: Array, tie: float = 0.0) -> NDArray[np.int64]:
    """Count for each pair of methods the datasets won, tied and lost.

    Parameters
    ----------
    values : ndarray, shape (n_datasets, n_methods)
    tie : float, default 0.0
        Differences up to this are ties.

    Returns
    -------
    ndarray of int, shape (n_methods, n_methods, 3)
        ``[i, j]`` holds wins, ties and losses of i against j.

    Examples
    --------
    >>> wins_ties_losses(np.array([[0.9, 0.8], [0.7, 0.7], [0.9, 0.5]]))[0, 1]
    array([2, 1, 0])
    """
    values = _scores(values)
    k = values.shape[1]
    found = np.zeros((k, k, 3), dtype=np.int64)
    for i in range(k):
        d = np.round(values[:, [i]] - values, 12)
        found[i] = np.stack(
            [(d > tie).sum(axis=0), (np.abs(d) <= tie).sum(axis=0), (d < -tie).sum(axis=0)], axis=1
        )
    return found


def bootstrap_interval(
    values: Sequence[float] | Array,
    level: float = 0.95,
    n_samples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a percentile bootstrap interval for the mean over datasets.

    Parameters
    ----------
    values : array-like, shape (n_datasets,)
        Scores, or differences of scores.
    level : float, default 0.95
    n_samples : int, default 10,000
        Resamples.
    seed : int, default 0

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> bootstrap_interval([0.5, 0.5, 0.5])
    (0.5, 0.5)
    """
    x = np.asarray(values, dtype=float)
    drawn = _resamples(len(x), n_samples, seed)
    low, high = np.quantile(drawn @ x, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@lru_cache(maxsize=2)
def _resamples(n: int, n_samples: int, seed: int) -> Array:
    """Return the share of each value in each resample; the same for all methods."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, np.full(n, 1 / n), size=n_samples) / n


def pareto_front(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Find the points than which no other is at once cheaper and better.

    Parameters
    ----------
    cost, gain : sequence of float, shape (n,)

    Returns
    -------
    list of int
        Places of the points on the front, the cheapest first.

    Examples
    --------
    >>> pareto_front([1, 2, 3, 4], [0.8, 0.7, 0.9, 0.9])
    [0, 2]
    """
    front: list[int] = []
    for i in sorted(range(len(cost)), key=lambda i: (cost[i], -gain[i])):
        if not front or gain[i] > gain[front[-1]]:
            front.append(i)
    return front


def _scores(values: Array) -> Array:
    values = np.asarray(values, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"values has {values.ndim} dimensions; (n_datasets, n_methods) is needed")
    if not np.isfinite(values).all():
        raise ValueError("values has numbers that are not finite; compare complete datasets only")
    return values

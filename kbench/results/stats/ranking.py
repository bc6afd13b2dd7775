"""All methods at once: ranks, Friedman's test, cliques, and whether other datasets would agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kbench.results.rows import rank_with_ties
from kbench.results.stats.pairs import Array, smallest_p, validate_scores
from kbench.results.stats.resampling import mean_draws


def ranks(values: Array) -> Array:
    """Rank the methods within each dataset, 1 for the best; ties share the mean rank.

    Values and ranks have the shape (n_datasets, n_methods).

    >>> ranks(np.array([[0.9, 0.8, 0.9]]))
    array([[1.5, 3. , 1.5]])
    """
    # rounding first: sums in another order must not break ties
    return np.array([rank_with_ties(row) for row in -np.round(validate_scores(values), 12)])


@dataclass(frozen=True)
class Friedman:
    """Friedman's test and its refinement by Iman and Davenport."""

    chi2: float
    p: float
    """`chi2` and `p` are Friedman's, with n_methods - 1 degrees of freedom."""
    F: float
    F_p: float
    """`F` and `F_p` are Iman and Davenport's, less conservative, with n_methods - 1 and
    (n_methods - 1)(n_datasets - 1) degrees of freedom.
    """


def friedman(values: Array, correct_ties: bool = True) -> Friedman:
    """Test whether all methods perform equally, on at least two datasets and three methods.

    With `correct_ties` the statistic is divided by the correction for ties
    (Conover 1999), as scipy does; Demsar (2006) prints the values without it.

    References
    ----------
    J. Demsar, "Statistical comparisons of classifiers over multiple data sets",
    JMLR 7 (2006), section 3.2.2.

    Examples
    --------
    >>> test = friedman(np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.8, 0.7, 0.6]]))
    >>> round(test.chi2, 6), round(test.p, 3)
    (6.0, 0.05)
    """
    from scipy.stats import chi2, f

    values = validate_scores(values)
    n, k = values.shape
    if n < 2 or k < 3:
        raise ValueError(f"values must have at least 2 datasets and 3 methods, got {values.shape}")
    placed = ranks(values)
    statistic = 12 * n / (k * (k + 1)) * (np.sum(placed.mean(axis=0) ** 2) - k * (k + 1) ** 2 / 4)
    counts = [np.unique(row, return_counts=True)[1].astype(float) for row in placed]
    if correct_ties:
        ties = float(sum(np.sum(each**3 - each) for each in counts))
        correction = 1 - ties / (n * k * (k**2 - 1))
        statistic = statistic / correction if correction else 0.0
    statistic = max(float(statistic), 0.0)
    rest = n * (k - 1) - statistic
    F = (n - 1) * statistic / rest if rest > 1e-9 else math.inf
    # where all datasets have the same ranks, F is no longer a number; the p of permutations is
    orders = math.factorial(k) / math.prod(math.factorial(int(c)) for c in counts[0])
    return Friedman(
        statistic,
        float(chi2.sf(statistic, k - 1)),
        F,
        float(f.sf(F, k - 1, (k - 1) * (n - 1))) if rest > 1e-9 else orders ** (1.0 - n),
    )


def cliques(mean_ranks: Sequence[float] | Array, p: Array, alpha: float = 0.05) -> list[list[int]]:
    """Find the groups of methods that a critical-difference diagram joins by bars.

    They are the longest runs of methods, neighbours in mean rank, in which no
    pair differs by its adjusted p; the best first. What a bar joins is thus
    always true, though two methods that it does not join need not differ.

    >>> p = np.array([[1, 0.5, 0.01], [0.5, 1, 0.2], [0.01, 0.2, 1]])
    >>> cliques([1.2, 1.9, 2.9], p)
    [[0, 1], [1, 2]]
    """
    order = [int(i) for i in np.argsort(mean_ranks, kind="stable")]
    groups: list[list[int]] = []
    end = 0
    for start in range(len(order)):
        reach = start + 1
        while reach < len(order) and all(p[order[reach], j] > alpha for j in order[start:reach]):
            reach += 1
        if reach - start > 1 and reach > end:
            groups.append(order[start:reach])
            end = reach
    return groups


ALL_SIGNS = 11
"""Groups of datasets up to which all signs are tried; of more groups, two thousand draws."""


@dataclass(frozen=True)
class Stability:
    """How certain the order by mean ranks is."""

    places: tuple[tuple[int, int], ...]
    """For each method the first and last place of its confidence set."""
    first: tuple[float, ...]
    """For each method the share of draws of the mean ranks in which it is the first."""
    without: tuple[tuple[int, ...], ...]
    """For each group of datasets the methods that are first without it."""
    leader: int
    """The method that is first now, of several the first one."""
    is_tested: bool = True
    """Whether there are enough groups of datasets for a test to show anything."""

    @property
    def changes(self) -> list[int]:
        """Groups of datasets without which another method is first."""
        return [i for i, firsts in enumerate(self.without) if self.leader not in firsts]

    @property
    def contenders(self) -> list[int]:
        """Methods whose confidence set has the first place."""
        return [i for i, (low, _) in enumerate(self.places) if low == 1]

    @property
    def is_stable(self) -> bool:
        """Whether the first place is certain: one contender, whatever dataset is left out."""
        return self.contenders == [self.leader] and not self.changes


def stability(gains: Array, alpha: float = 0.05, tried: Array | None = None) -> Stability:
    """Judge the order of methods by their mean ranks over groups of datasets.

    Parameters
    ----------
    gains : ndarray, shape (n_groups, n_methods)
        Larger is better; at least two groups and two methods.
    alpha : float, default 0.05
    tried : ndarray, shape (n_tried, n_methods), optional
        Gains on all groups that some method finished, NaN for missing cells, which count
        against each claim; by default `gains`.

    Examples
    --------
    >>> found = stability(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [1.0, 2.0, 0.0]]))
    >>> found.leader, found.changes, found.contenders, found.is_tested
    (0, [], [0, 1, 2], False)
    """
    placed = ranks(gains)
    n, k = placed.shape
    if n < 2 or k < 2:
        raise ValueError(f"gains must have at least 2 groups and 2 methods, got {gains.shape}")
    total = placed.sum(axis=0)
    drawn = np.round(mean_draws(placed), 9)
    is_first = drawn == drawn.min(axis=1, keepdims=True)
    first = (is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0)
    without = []
    for row in placed:
        rest = np.round(total - row, 9)
        without.append(tuple(int(i) for i in np.flatnonzero(rest == rest.min())))
    tried = gains if tried is None else tried
    return Stability(
        tuple(rank_sets(tried, alpha)),
        tuple(map(float, first)),
        tuple(without),
        int(np.round(total, 9).argmin()),
        smallest_p(len(tried)) * (k - 1) <= alpha,
    )


def rank_sets(gains: Array, alpha: float = 0.05) -> list[tuple[int, int]]:
    """Return the confidence set of the place of each method, (first, last) place.

    A method is behind as many others as are significantly better, and before as many as are
    significantly worse, of all comparisons with it at once: each set holds at the level
    1 - `alpha` by itself. Two methods are compared by the signed ranks of their differences,
    which no third method changes. Under the null hypothesis the differences from the method
    to those that are as good are symmetric about zero, all at once: the signs of all
    differences on a group of datasets may be flipped together. The test compares the largest
    statistic with those of all such flips, and is exact. Nothing is shown on so few groups
    that Holm's method could show nothing.

    A missing cell counts as worse than all others in a claim for its method, and as better
    than all others in a claim against it.

    Parameters
    ----------
    gains : ndarray, shape (n_groups, n_methods)
        Larger is better; NaN if a cell is missing.
    alpha : float, default 0.05

    References
    ----------
    M. Mogstad, J. P. Romano, A. M. Shaikh, D. Wilhelm, "Inference for ranks with applications
    to mobility across neighbourhoods and academic achievement across countries", Review of
    Economic Studies 91 (2024), section 3. J. P. Romano, M. Wolf, "Exact and approximate
    stepdown methods for multiple hypothesis testing", JASA 100 (2005), section 3.

    Examples
    --------
    >>> gains = np.array([[3.0, 1.0, 1.2], [3.0, 1.1, 1.0]] * 4)
    >>> rank_sets(gains), rank_sets(gains[:4])
    ([(1, 1), (2, 3), (2, 3)], [(1, 3), (1, 3), (1, 3)])
    """
    gains = validate_scores(gains, allow_nan=True)
    n, k = gains.shape
    if smallest_p(n) * (k - 1) > alpha:
        return [(1, k)] * k
    sets = []
    for i in range(k):
        d = gains[:, [i]] - np.delete(gains, i, axis=1)
        better, worse = np.split(_adjust(np.column_stack([d, -d])) <= alpha, 2)
        sets.append((1 + int(worse.sum()), k - int(better.sum())))
    return sets


def _adjust(d: Array) -> Array:
    """Return the adjusted p of the claims that each column is larger than zero.

    Shape (n_groups, n_claims); NaN counts as less than all others.
    """
    d = np.asarray(np.round(np.where(np.isnan(d), -np.inf, d), 12))
    signed = np.sign(d) * np.array([rank_with_ties(column) for column in np.abs(d).T]).T
    size = np.sqrt((signed**2).sum(axis=0))
    signed = np.divide(signed, size, out=np.zeros_like(signed), where=size > 0)
    order = np.argsort(-signed.sum(axis=0), kind="stable")
    flipped = _signs(len(d)) @ signed[:, order]
    # the largest statistic of a claim and of those that are less clear
    largest = np.maximum.accumulate(flipped[:, ::-1], axis=1)[:, ::-1]
    p = np.empty(d.shape[1])
    p[order] = np.maximum.accumulate((largest >= flipped[0] - 1e-9).mean(axis=0))
    return p


@lru_cache(maxsize=2)
def _signs(n: int, n_draws: int = 2_000, seed: int = 0) -> Array:
    """Return signs for each group, shape (n_flips, n), first those of the data."""
    drawn = np.random.default_rng(seed).integers(0, 2, (n_draws, n))
    bits = np.arange(2**n)[:, None] >> np.arange(n) & 1 if n <= ALL_SIGNS else drawn
    bits[0] = 0
    return np.asarray(1.0 - 2.0 * bits, dtype=float)

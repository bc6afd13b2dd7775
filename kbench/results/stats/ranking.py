"""All methods at once: ranks, Friedman's test, the best group, and the stability of the order."""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from kbench.results.rows import rank_with_ties
from kbench.results.stats.pairs import EQUAL, Array, validate_scores


def ranks(values: Array) -> Array:
    """Rank the methods within each dataset, 1 for the best; ties share the mean rank.

    Values and ranks have the shape (n_datasets, n_methods).

    >>> ranks(np.array([[0.9, 0.8, 0.9]]))
    array([[1.5, 3. , 1.5]])
    """
    # rounding first: sums in another order must not break ties
    return np.array([rank_with_ties(row) for row in -np.round(validate_scores(values), 12)])


ALPHA = 0.05  # level of the tests whose verdicts are shown


@dataclass(frozen=True)
class Friedman:
    """Friedman's test, `chi2` and `p`, and its refinement by Iman and Davenport, `F` and `F_p`.

    The first has n_methods - 1 degrees of freedom; the second, which is less conservative, has
    n_methods - 1 and (n_methods - 1)(n_datasets - 1).
    """

    chi2: float
    p: float
    F: float
    F_p: float


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


# Groups of datasets up to which all signs are tried; of more groups, two thousand draws.
ALL_SIGNS = 11


@dataclass(frozen=True)
class Stability:
    """Which methods may be the best, and how certain the order by mean ranks is.

    `p` is `worse_p` of all methods; no other method is shown to be better than one of `best_group`.
    `without` has for each group of datasets the methods that are first without it. `leader` is the
    method that is first now, of several the first one. `is_tested` says whether there are enough
    groups of datasets for a test to show anything.
    """

    p: Array = field(repr=False, compare=False)
    best_group: tuple[int, ...]
    without: tuple[tuple[int, ...], ...]
    leader: int
    is_tested: bool = True

    @property
    def changes(self) -> list[int]:
        """Groups of datasets without which another method is first."""
        return [i for i, firsts in enumerate(self.without) if self.leader not in firsts]


def stability(
    gains: Array, alpha: float = ALPHA, tried: Array | None = None, p: Array | None = None
) -> Stability:
    """Find the best group of methods, and judge their order by mean ranks.

    No method is significantly better than one of the *best group* (`worse_p`). A method that is
    as good as every other one is in it with a probability of at least 1 - `alpha`.

    Parameters
    ----------
    gains : ndarray, shape (n_groups, n_methods)
        Larger is better; at least two groups and two methods.
    alpha : float, default 0.05
    tried : ndarray, shape (n_tried, n_methods), optional
        Gains on all groups that some method finished, NaN for missing cells, which count
        against each claim; by default `gains`.
    p : ndarray, shape (n_methods, n_methods), optional
        `worse_p` of `tried`, if already computed.

    Examples
    --------
    >>> found = stability(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [1.0, 2.0, 0.0]]))
    >>> found.leader, found.changes, found.best_group, found.is_tested
    (0, [], (0, 1, 2), False)
    """
    placed = ranks(gains)
    n, k = placed.shape
    if n < 2 or k < 2:
        raise ValueError(f"gains must have at least 2 groups and 2 methods, got {gains.shape}")
    total = placed.sum(axis=0)
    without = []
    for row in placed:
        rest = np.round(total - row, 9)
        without.append(tuple(int(i) for i in np.flatnonzero(rest == rest.min())))
    tried = gains if tried is None else tried
    p = worse_p(tried) if p is None else p
    return Stability(
        p,
        tuple(int(i) for i in np.flatnonzero(p.min(axis=1) > alpha)),
        tuple(without),
        int(np.round(total, 9).argmin()),
        0.5 ** len(tried) <= alpha,
    )


def worse_p(gains: Array) -> Array:
    """Return for ``[i, j]`` the p of the claim that method i is worse than j; 1 for i = j.

    It is adjusted for the comparisons of i with all others, so that the level holds for each
    method by itself. The statistic is the mean difference over the root mean square of the
    differences. Under the null hypothesis the differences of the method from those that are not
    better are symmetric about zero, all at once: their signs on a group of datasets may be
    flipped together. The largest statistic is compared with those of all such flips. The test is
    exact; its p is at least 1/2^n on n groups.

    Parameters
    ----------
    gains : ndarray, shape (n_groups, n_methods)
        Larger is better; NaN if a cell is missing.

    References
    ----------
    J. C. Hsu, "Constrained simultaneous confidence intervals for multiple comparisons with the
    best", Annals of Statistics 12 (1984). J. P. Romano, M. Wolf, "Exact and approximate stepdown
    methods for multiple hypothesis testing", JASA 100 (2005), section 3. M. Mogstad et al.,
    "Inference for ranks", Review of Economic Studies 91 (2024), section 3.

    Examples
    --------
    >>> gains = np.array([[3.0, 1.0, 1.2], [3.0, 1.1, 1.0]] * 3)
    >>> worse_p(gains).round(3)[:, 0], worse_p(gains[:4]).round(3)[:, 0]
    (array([1.   , 0.016, 0.016]), array([1.   , 0.062, 0.062]))
    """
    return better_p(validate_scores(gains, allow_nan=True))[1].T


def better_p(values: Array, given: bool = False) -> tuple[Array, Array]:
    """Return the p of ``[i, j]``, alone and adjusted: the mean of column i is not above that of j.

    Adjusted are the claims of all others against j, as in `worse_p`. Equal differences of `given`
    numbers, such as a number of components, need no test: their sign decides.
    """
    k = values.shape[1]
    alone, adjusted = np.ones((2, k, k))
    for j in range(k if len(values) else 0):
        d = values - values[:, [j]]
        clear = np.zeros(k, dtype=bool)
        if given:
            clear = (np.ptp(d, axis=0) <= EQUAL) & (d[0] > EQUAL)
            alone[clear, j] = adjusted[clear, j] = 0.0
        tested = ~clear & (np.arange(k) != j)
        if tested.any():
            alone[tested, j], adjusted[tested, j] = flip_p(d[:, tested])
    return alone, adjusted


def flip_p(d: Array) -> tuple[Array, Array]:
    """Return the p of the claims that the mean of each column is above zero: alone, adjusted.

    Shape (n_groups, n_claims); NaN counts as the largest difference of its column, below zero.
    """
    d = np.asarray(np.round(d, 12))
    known = np.where(np.isnan(d), 0.0, d)
    largest = np.abs(known).max(axis=0)
    d = np.where(np.isnan(d), -np.where(largest > 0, largest, 1.0), known)
    size = np.sqrt((d**2).sum(axis=0))
    d = np.divide(d, size, out=np.zeros_like(d), where=size > 0)
    order = np.argsort(-d.sum(axis=0), kind="stable")
    # a row for each claim: maxima of whole rows are faster than those along rows
    flipped = d[:, order].T @ _signs(len(d)).T
    clear = flipped[:, :1] - 1e-9
    alone, p = np.empty((2, len(order)))
    alone[order] = np.count_nonzero(flipped >= clear, axis=1)
    # the largest statistic of a claim and of those that are less clear
    for i in reversed(range(len(order) - 1)):
        np.maximum(flipped[i], flipped[i + 1], out=flipped[i])
    p[order] = np.maximum.accumulate(np.count_nonzero(flipped >= clear, axis=1))
    return alone / flipped.shape[1], p / flipped.shape[1]


@lru_cache(maxsize=2)
def _signs(n: int, n_draws: int = 2_000, seed: int = 0) -> Array:
    """Return signs for each group, shape (n_flips, n), first those of the data."""
    drawn = np.random.default_rng(seed).integers(0, 2, (n_draws, n))
    bits = np.arange(2**n)[:, None] >> np.arange(n) & 1 if n <= ALL_SIGNS else drawn
    bits[0] = 0
    return np.asarray(1.0 - 2.0 * bits, dtype=float)

"""Whether an order of methods would survive other datasets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kbench.results.order import tied_ranks
from kbench.results.stats.arrays import Array, checked
from kbench.results.stats.pairs import smallest_p
from kbench.results.stats.ranking import ranks
from kbench.results.stats.resampling import mean_draws

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
        Larger is better; NaN where a cell is missing.
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
    gains = checked(gains, allow_nan=True)
    n, k = gains.shape
    if smallest_p(n) * (k - 1) > alpha:
        return [(1, k)] * k
    sets = []
    for i in range(k):
        d = gains[:, [i]] - np.delete(gains, i, axis=1)
        better, worse = np.split(_adjusted(np.column_stack([d, -d])) <= alpha, 2)
        sets.append((1 + int(worse.sum()), k - int(better.sum())))
    return sets


def _adjusted(d: Array) -> Array:
    """Return the adjusted p of the claims that each column is larger than zero.

    Shape (n_groups, n_claims); NaN counts as less than all others.
    """
    d = np.asarray(np.round(np.where(np.isnan(d), -np.inf, d), 12))
    signed = np.sign(d) * np.array([tied_ranks(column) for column in np.abs(d).T]).T
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

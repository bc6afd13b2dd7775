"""Whether an order of methods would survive other datasets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbench.results.stats.arrays import Array, checked
from kbench.results.stats.on_splits import EQUAL
from kbench.results.stats.ranking import ranks
from kbench.results.stats.resampling import FEW, mean_draws, shares, studentised


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
        return len(self.contenders) == 1 and not self.changes


def stability(gains: Array, alpha: float = 0.05) -> Stability:
    """Judge the order of methods by their mean ranks over groups of datasets.

    Parameters
    ----------
    gains : ndarray, shape (n_groups, n_methods)
        Larger is better; at least two groups and two methods.
    alpha : float, default 0.05

    Examples
    --------
    >>> found = stability(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [1.0, 2.0, 0.0]]))
    >>> found.leader, found.changes, found.contenders
    (0, [], [0, 1, 2])
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
    return Stability(
        tuple(rank_sets(-placed, alpha)),
        tuple(map(float, first)),
        tuple(without),
        int(np.round(total, 9).argmin()),
    )


def rank_sets(values: Array, alpha: float = 0.05) -> list[tuple[int, int]]:
    """Return the confidence set of the place of each column's mean, (first, last) place.

    A method is behind as many others as are significantly better, and before as many as are
    significantly worse, of all comparisons with it at once: each set holds at the level
    1 - `alpha` by itself. A bootstrap of the ranks themselves would fail near ties.

    Critical values are those of Holm's method for paired t-tests below 20 groups, and those of
    the resampled largest t statistic from 20 on.

    Parameters
    ----------
    values : ndarray, shape (n_groups, n_methods)
        Larger is better.
    alpha : float, default 0.05

    References
    ----------
    M. Mogstad, J. P. Romano, A. M. Shaikh, D. Wilhelm, "Inference for ranks with applications
    to mobility across neighbourhoods and academic achievement across countries", Review of
    Economic Studies 91 (2024), section 3.

    Examples
    --------
    >>> rank_sets(np.array([[3.0, 1.1, 1.0], [3.1, 1.0, 1.1], [3.0, 0.9, 1.0], [3.1, 1.0, 0.9]]))
    [(1, 1), (2, 3), (2, 3)]
    """
    values = checked(values)
    n, k = values.shape
    sets = []
    for i in range(k):
        d = values[:, [i]] - np.delete(values, i, axis=1)
        mean, error = d.mean(axis=0), d.std(axis=0, ddof=1) / np.sqrt(n)
        varies = np.ptp(d, axis=0) > EQUAL
        t = np.divide(mean, error, out=np.zeros(k - 1), where=varies)
        # a difference that is the same everywhere has no test; of ranks, it is no chance
        t[~varies & (np.abs(mean) > EQUAL)] = np.inf
        shown = _shown(t, d - mean, alpha)
        worse, better = (shown & (mean > 0)).sum(), (shown & (mean < 0)).sum()
        sets.append((1 + int(better), k - int(worse)))
    return sets


def _shown(t: Array, centred: Array, alpha: float) -> Array:
    """Return which two-sided tests reject, all together at the level alpha."""
    from scipy.special import stdtr

    from kbench.results.stats.pairs import holm

    n, size = len(centred), np.where(np.isinf(t), np.inf, np.abs(t))
    if n < FEW:
        finite = np.where(np.isinf(size), 0.0, size)
        p = np.where(np.isinf(size), 0.0, 2 * stdtr(n - 1, -finite))
        return np.asarray(holm(p) <= alpha)
    with np.errstate(all="ignore"):
        drawn = np.abs(studentised(centred, shares(n)))
    shown = np.zeros(len(t), dtype=bool)
    while not shown.all():
        # those that are shown already are not compared again (Romano and Wolf 2005)
        critical = np.quantile(drawn[:, ~shown].max(axis=1), 1 - alpha)
        now = shown | (size > critical)
        if (now == shown).all():
            break
        shown = now
    return shown

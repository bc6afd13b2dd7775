"""Methods two by two over datasets: signed ranks, Holm's correction, wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kbench.results.stats.arrays import Array, checked

_EXACT_UP_TO = 100
"""Differences up to which the signed-rank test is exact."""


@dataclass(frozen=True)
class SignedRank:
    """Wilcoxon's signed-rank test of paired differences, with the two-sided p.

    `plus` and `minus` are the sums of the ranks of positive and of negative
    differences; the ranks of zeros are shared evenly.
    """

    plus: float
    minus: float
    p: float


def signed_rank(differences: Sequence[float] | Array) -> SignedRank:
    """Test whether paired differences are symmetric about zero.

    Zeros are ranked with the others and their ranks shared (Demsar 2006,
    section 3.1.3). Up to 100 differences p is exact also with ties and zeros:
    all signs of the nonzero differences are equally likely. Beyond, normal.

    Missing differences (NaN) count as the largest ones against what is claimed. If neither
    sign can be claimed then, p is 1.

    >>> signed_rank([0.1, 0.2, 0.3, -0.05])
    SignedRank(plus=9.0, minus=1.0, p=0.25)
    >>> signed_rank([0.1] * 9).p, signed_rank([0.1] * 9 + [np.nan]).p
    (0.00390625, 0.091796875)
    """
    from scipy.stats import norm, rankdata

    d = np.round(np.asarray(differences, dtype=float), 12)
    if np.isnan(d).any():
        worst, best = (signed_rank(np.where(np.isnan(d), end, d)) for end in (-np.inf, np.inf))
        if worst.plus <= worst.minus and best.minus <= best.plus:
            return replace(worst, p=1.0)
        return worst if worst.plus > worst.minus else best
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
    """Return the probability of each sum of ranks where all signs are equally likely.

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

    >>> smallest_p(5), [smallest_p(n) * 45 < 0.05 for n in (10, 11)]
    (0.0625, [False, True])
    """
    return min(1.0, 2.0 ** (1 - n_datasets))


def holm(p: Sequence[float] | Array) -> Array:
    """Adjust p values for their number, by Holm's step-down method: compare them with alpha.

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

    The p values have the shape (n_methods, n_methods): symmetric, ones on the
    diagonal. Values are NaN where a cell is missing; see `signed_rank`.

    References
    ----------
    A. Benavoli, G. Corani, F. Mangili, "Should we really use post-hoc tests
    based on mean-ranks?", JMLR 17 (2016).

    Examples
    --------
    >>> wilcoxon_holm(np.array([[0.9, 0.8], [0.8, 0.6], [0.7, 0.4]]))
    array([[1.  , 0.25], [0.25, 1.  ]])
    """
    values = checked(values, allow_nan=True)
    k = values.shape[1]
    a, b = np.triu_indices(k, 1)
    adjusted = np.ones((k, k))
    adjusted[a, b] = holm(
        [signed_rank(values[:, i] - values[:, j]).p for i, j in zip(a, b, strict=True)]
    )
    return np.minimum(adjusted, adjusted.T)


def wins_ties_losses(values: Array, tie: float = 0.0) -> NDArray[np.int64]:
    """Count for each pair of methods the datasets won, tied and lost.

    The shape is (n_methods, n_methods, 3): ``[i, j]`` holds wins, ties and
    losses of i against j. Differences up to `tie` are ties.

    >>> wins_ties_losses(np.array([[0.9, 0.8], [0.7, 0.7], [0.9, 0.5]]))[0, 1]
    array([2, 1, 0])
    """
    values = checked(values)
    counts = []
    for column in values.T:
        d = np.round(column[:, None] - values, 12)
        outcomes = [d > tie, np.abs(d) <= tie, d < -tie]
        counts.append(np.sum(outcomes, axis=1, dtype=np.int64).T)
    return np.array(counts)

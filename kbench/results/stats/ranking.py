"""All methods at once: ranks, Friedman's test, and which methods no test tells apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbench.results.order import tied_ranks
from kbench.results.stats.arrays import Array, checked


def ranks(values: Array) -> Array:
    """Rank the methods within each dataset, 1 for the best; ties share the mean rank.

    Values and ranks have the shape (n_datasets, n_methods).

    >>> ranks(np.array([[0.9, 0.8, 0.9]]))
    array([[1.5, 3. , 1.5]])
    """
    # rounding first: sums in another order must not break ties
    return np.array([tied_ranks(row) for row in -np.round(checked(values), 12)])


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
    """Test whether all methods perform alike, on at least two datasets and three methods.

    With `correct_ties` the statistic is divided by the correction for ties
    (Conover 1999), as scipy does; Demsar (2006) prints the figures without it.

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

    values = checked(values)
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

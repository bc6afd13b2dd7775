"""Two columns that tell the target together: their sum, their difference, one within the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

MOST = 50
"""Columns of which all pairs are tried."""

MOST_GROUPS = 10
"""Columns of groups within which the others are tried."""

LEAST_GROUPS, LEAST_ROWS = 5, 5
"""Groups that a column has at least, and their rows on average."""


@dataclass(frozen=True)
class Pair:
    """One number made of two columns, by their positions: ``sum``, ``difference``, ``within``."""

    a: int
    b: int
    how: str

    def of(self, values: np.ndarray) -> np.ndarray:
        """Return the number for each row."""
        a, b = values[:, self.a], values[:, self.b]
        with np.errstate(all="ignore"):
            if self.how == "within":
                return np.asarray(group_numbers(a) + ranks(b))
            return np.asarray(a + b if self.how == "sum" else a - b)


def all_pairs(values: np.ndarray, nominal: np.ndarray) -> Iterator[Pair]:
    """Yield the pairs of the columns of some training rows."""
    d = values.shape[1]
    numeric = [j for j in range(d) if not nominal[j]]
    for i, a in enumerate(numeric):
        for b in numeric[i + 1 :]:
            yield Pair(a, b, "sum")
            yield Pair(a, b, "difference")
    sizes = [len(np.unique(values[:, j])) for j in range(d)]
    groups = [j for j in range(d) if LEAST_GROUPS <= sizes[j] <= len(values) / LEAST_ROWS]
    groups.sort(key=lambda j: -sizes[j])
    for a in groups[:MOST_GROUPS]:
        yield from (Pair(a, b, "within") for b in numeric if b != a)


def group_numbers(a: np.ndarray) -> np.ndarray:
    """Number the distinct values of a column in their order, as float."""
    return np.asarray(np.unique(a, return_inverse=True)[1].reshape(-1), dtype=float)


def ranks(b: np.ndarray) -> np.ndarray:
    """Return the ranks of values, equal ones alike, from 0 to less than 1."""
    numbers = group_numbers(b)
    return np.asarray(numbers / (numbers.max(initial=0.0) + 1.0))

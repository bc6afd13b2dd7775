"""Rows of a matrix, copied only when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK_ROWS = 4096
"""Rows that are taken, embedded and multiplied together."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a matrix, which may be a memory-mapped file, in double precision.

    A file in single precision saves memory; it is not a choice of the method.

    Parameters
    ----------
    matrix : ndarray or CSR matrix
    numbers : ndarray of int
        Which of its rows these are.

    Examples
    --------
    >>> rows = Rows(np.array([[0.0], [1.0], [2.0]]), np.array([2, 0]))
    >>> rows.shape, rows[:1].tolist()
    ((2, 1), [[2.0]])
    """

    matrix: Any
    numbers: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.numbers), self.matrix.shape[1]

    def __getitem__(self, rows: Any) -> Any:
        """Copy some of the rows."""
        return self.matrix[self.numbers[rows]].astype(np.float64, copy=False)

    def row_bytes(self) -> float:
        """Return the mean size of a row in float64."""
        n, d = self.matrix.shape
        return float(12 * self.matrix.nnz / max(1, n) if hasattr(self.matrix, "indptr") else 8 * d)


def whole(X: Any) -> Any:
    """Return all rows as one matrix."""
    return X[:] if isinstance(X, Rows) else X


def numbered_blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield row numbers, `BLOCK_ROWS` at a time."""
    for start in range(0, len(rows), BLOCK_ROWS):
        yield rows[start : start + BLOCK_ROWS]


def blocks(X: Any) -> Iterator[Any]:
    """Yield all rows of a matrix, `BLOCK_ROWS` at a time."""
    for rows in numbered_blocks(np.arange(X.shape[0])):
        yield X[rows]

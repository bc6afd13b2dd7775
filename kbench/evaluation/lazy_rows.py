"""Rows of a matrix: copied only when they are needed, in blocks, and their hashes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "np.ndarray | csr_matrix"

SALT = np.uint64(0x9E3779B97F4A7C15)

VALUES = 1 << 16
"""Values that are hashed together, which fit into the cache of a core."""

BLOCK_ROWS = 4096
"""Rows that are taken, embedded and multiplied together."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a matrix, which may be a memory-mapped file, in double precision.

    A file in single precision saves memory; it is not a choice of the method.

    >>> rows = Rows(np.array([[0.0], [1.0], [2.0]]), np.array([2, 0]))
    >>> rows.shape, rows[:1].tolist()
    ((2, 1), [[2.0]])
    """

    matrix: Matrix
    numbers: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.numbers), self.matrix.shape[1]

    def __getitem__(self, rows: slice | np.ndarray) -> Matrix:
        """Copy some of the rows."""
        return self.matrix[self.numbers[rows]].astype(np.float64, copy=False)

    def column(self, number: int) -> np.ndarray:
        """Copy a column of a dense matrix."""
        return np.asarray(self.matrix[self.numbers, number], dtype=np.float64)

    def row_bytes(self) -> float:
        """Return the mean size of a row in float64."""
        n, d = self.matrix.shape
        return float(12 * self.matrix.nnz / max(1, n) if is_sparse(self.matrix) else 8 * d)


def is_sparse(X: object) -> "TypeGuard[csr_matrix]":
    """Whether rows are those of a CSR matrix."""
    return hasattr(X, "indptr")


def take(X: "Matrix | Rows", rows: np.ndarray | None = None) -> Rows:
    """Return some rows of a matrix, or all, without a copy."""
    every = X if isinstance(X, Rows) else Rows(X, np.arange(X.shape[0]))
    return every if rows is None else Rows(every.matrix, every.numbers[rows])


def whole(X: "Matrix | Rows") -> Matrix:
    """Return all rows as one matrix."""
    return X[:] if isinstance(X, Rows) else X


def iterate_row_numbers(rows: np.ndarray, n_rows: int | None = None) -> Iterator[np.ndarray]:
    """Yield row numbers, `n_rows` at a time, by default `BLOCK_ROWS`."""
    step = n_rows or BLOCK_ROWS
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def row_hashes(X: Matrix) -> np.ndarray:
    """Hash the rows of a dense or CSR matrix; equal rows get equal hashes.

    NaN equals NaN, -0.0 equals 0.0, and zeros of a CSR matrix may be stored or not. Among
    a million different rows, two get the same hash with probability 3e-8, among 10 million
    with 3e-6.

    >>> import numpy as np
    >>> first, other, again = row_hashes(np.array([[1.0, 0], [0, 1], [1, -0.0]]))
    >>> (first == again, first == other)
    (np.True_, np.False_)
    """
    # The sum over columns of a well mixed hash of (value, column). Small integers as
    # floats have 40 low bits of zero: a plain linear hash of the bits would collide.
    n, d = X.shape
    salts = np.arange(1, d + 1, dtype=np.uint64) * SALT
    hashes = np.zeros(n, dtype=np.uint64)
    if is_sparse(X):
        _add_sparse(hashes, X, salts)
        return hashes
    step = max(1, VALUES // max(d, 1))
    for start in range(0, n, step):
        mixed = hash_values(X[start : start + step], salts)
        hashes[start : start + step] = mixed.sum(axis=1, dtype=np.uint64)
    return hashes


def _add_sparse(hashes: np.ndarray, X: "csr_matrix", salts: np.ndarray) -> None:
    """Add the hashes of the stored values that are not 0."""
    n = len(hashes)
    # rows by about as many values as are hashed together
    step = max(1, VALUES * n // max(int(X.indptr[-1] - X.indptr[0]), 1))
    for start in range(0, n, step):
        ends = X.indptr[start : start + step + 1]
        values = np.asarray(X.data[ends[0] : ends[-1]])
        rows = np.repeat(np.arange(start, start + len(ends) - 1), np.diff(ends))
        mixed = hash_values(values, salts[X.indices[ends[0] : ends[-1]]])
        stored = values != 0
        np.add.at(hashes, rows[stored], mixed[stored])


def hash_values(values: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """Hash each value with its salt (the finaliser of SplitMix64), a multiple of `SALT`."""
    plain = np.asarray(values, dtype=np.float64) + 0.0  # -0 becomes 0
    plain[np.isnan(plain)] = np.nan  # one bit pattern for all of them
    z: np.ndarray = plain.view(np.uint64) + salts
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z

"""64-bit hashes of the rows of a matrix, to find equal rows block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

SALT = np.uint64(0x9E3779B97F4A7C15)
VALUES = 1 << 16
"""Values that are hashed together, which fit into the cache of a core."""


def row_hashes(X: Any) -> np.ndarray:
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
    if hasattr(X, "indptr"):
        _add_sparse(hashes, X, salts)
        return hashes
    step = max(1, VALUES // max(d, 1))
    for start in range(0, n, step):
        mixed = hashed(X[start : start + step], salts)
        hashes[start : start + step] = mixed.sum(axis=1, dtype=np.uint64)
    return hashes


def _add_sparse(hashes: np.ndarray, X: Any, salts: np.ndarray) -> None:
    """Add the hashes of the stored values that are not 0."""
    n = len(hashes)
    # rows by about as many values as are hashed together
    n_values = int(X.indptr[-1] - X.indptr[0])
    step = max(1, VALUES * n // max(n_values, 1))
    for start in range(0, n, step):
        ends = X.indptr[start : start + step + 1]
        values = np.asarray(X.data[ends[0] : ends[-1]])
        rows = np.repeat(np.arange(start, start + len(ends) - 1), np.diff(ends))
        mixed = hashed(values, salts[X.indices[ends[0] : ends[-1]]])
        stored = values != 0
        np.add.at(hashes, rows[stored], mixed[stored])


def hashed(values: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """Hash each value with its salt (the finaliser of SplitMix64), a multiple of `SALT`."""
    plain = np.asarray(values, dtype=np.float64) + 0.0  # -0 becomes 0
    plain[np.isnan(plain)] = np.nan  # one bit pattern for all of them
    z: np.ndarray = plain.view(np.uint64) + salts
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    return z

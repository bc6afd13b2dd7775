"""Products and factors of rows, sparse or not, in the quicker form."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

# A sparse matrix times a vector takes 2.5 times as long per entry as an array.
# Beyond this size a dense copy is no longer small beside the rest.
_DENSE_FROM = 0.4
_DENSE_ENTRIES = 32_000_000

# A product of sparse matrices takes some 400 times as long per multiplication as
# one of arrays, and needs the square of the density as many.
SPARSE_GRAM = 400.0


def dense_where_quicker(X, max_size: int = _DENSE_ENTRIES):
    """Return `X`, or an array of up to `max_size` values where it has few zeros."""
    size = X.shape[0] * X.shape[1]
    if sp.issparse(X) and _DENSE_FROM * size < X.nnz and size <= max_size:
        return X.toarray()
    return X


def used_columns(X) -> np.ndarray:
    """Return the columns of a CSR matrix that have entries; the first if there are none."""
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    return used if len(used) else np.zeros(1, dtype=np.intp)


def only_columns(X, columns: np.ndarray):
    """Return a CSR matrix with only the given columns: all `used_columns`, in order."""
    place = np.zeros(X.shape[1], dtype=X.indices.dtype)
    place[columns] = np.arange(len(columns))
    shape = (X.shape[0], len(columns))
    return sp.csr_array((X.data, place[X.indices], X.indptr), shape=shape)


def inner_products(X) -> np.ndarray:
    """Return ``X X'`` as an array; `X` is an array or a CSR matrix."""
    if sp.issparse(X):
        X = only_columns(X, used_columns(X))
        size = X.shape[0] * X.shape[1]
        if size <= _DENSE_ENTRIES and SPARSE_GRAM * X.nnz**2 > size**2:
            X = X.toarray()
    K = X @ X.T
    return K.toarray() if sp.issparse(K) else K


def pivoted_cholesky(K: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Factorise a Gram matrix, whose lower triangle is read, up to its numerical rank.

    Returns the factor (the lower triangle of its first `rank` columns, rows in the order
    of the pivots), the pivots, counted from 1, and the rank.

    LAPACK's default tolerance is about the rounding errors of the matrix itself, so
    that copies of a row may count as further dimensions, of noise.
    """
    rounding = 10 * len(K) * np.finfo(np.float64).eps * K.diagonal().max()
    return lapack.dpstrf(K, tol=rounding, lower=1)[:3]

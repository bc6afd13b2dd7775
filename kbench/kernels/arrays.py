"""Checks of inputs, and row-wise sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "np.ndarray | csr_matrix"
MatrixLike: TypeAlias = "ArrayLike | csr_matrix"


def check_rows(X: MatrixLike, name: str) -> Matrix:
    """Return inputs as rows of floats: 2-d arrays; sparse matrices and lazy rows as they are."""
    rows: Matrix = X if hasattr(X, "tocsr") or hasattr(X, "is_lazy") else np.asarray(X)
    if isinstance(rows, np.ndarray) and rows.dtype not in (np.float64, np.float32):
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, (n_samples, n_features), got {rows.ndim}")
    return rows


def row_sums(X: Matrix) -> np.ndarray:
    """``sum_j x_j`` of each row."""
    return np.asarray(X.sum(axis=1)).ravel()


def squared_norms(X: Matrix) -> np.ndarray:
    """``||x||^2`` of each row."""
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X))
    return row_sums(X.multiply(X))


def inverse(values: np.ndarray) -> np.ndarray:
    """``1 / v``, and 0 for 0."""
    return np.asarray(np.divide(1.0, values, out=np.zeros_like(values), where=values != 0))


def inverse_roots(squared: np.ndarray) -> np.ndarray:
    """``1 / sqrt(s)``, and 0 for 0."""
    return inverse(np.sqrt(squared))


def is_positive(values: np.ndarray) -> np.ndarray:
    """1 for a positive value, else 0."""
    return (values > 0).astype(values.dtype)

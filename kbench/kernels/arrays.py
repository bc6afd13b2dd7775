"""Checks of inputs, and row-wise sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_rows(X: Any, name: str) -> Any:
    """Return inputs as rows of floats: 2-d arrays, or sparse matrices as they are."""
    if not hasattr(X, "tocsr"):
        X = np.asarray(X)
        if X.dtype not in (np.float64, np.float32):
            X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, (n_samples, n_features), got {X.ndim}")
    return X


def row_sums(X: Any) -> NDArray[Any]:
    """``sum_j x_j`` of each row."""
    return np.asarray(X.sum(axis=1)).ravel()


def squared_norms(X: Any) -> NDArray[Any]:
    """``||x||^2`` of each row."""
    if hasattr(X, "tocsr"):
        return row_sums(X.multiply(X))
    return np.asarray(np.einsum("ij,ij->i", X, X))


def inverse(values: NDArray[Any]) -> NDArray[Any]:
    """``1 / v``, and 0 for 0."""
    return np.asarray(np.divide(1.0, values, out=np.zeros_like(values), where=values != 0))


def inverse_roots(squared: NDArray[Any]) -> NDArray[Any]:
    """``1 / sqrt(s)``, and 0 for 0."""
    return inverse(np.sqrt(squared))


def is_positive(values: NDArray[Any]) -> NDArray[Any]:
    """1 for a positive value, 0 for others."""
    return (values > 0).astype(values.dtype)

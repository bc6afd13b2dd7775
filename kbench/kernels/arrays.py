"""Checks and row-wise sums that kernels share."""

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
        raise ValueError(f"{name} has {X.ndim} dimensions; it must have 2, (n_samples, n_features)")
    return X


def row_sums(X: Any) -> NDArray[Any]:
    """``sum_j x_j`` of each row."""
    return np.asarray(X.sum(axis=1)).ravel()


def squared_norms(X: Any) -> NDArray[Any]:
    """``||x||^2`` of each row."""
    if hasattr(X, "tocsr"):
        return row_sums(X.multiply(X))
    return np.asarray(np.einsum("ij,ij->i", X, X))


def inverse_roots(squared: NDArray[Any]) -> NDArray[Any]:
    """``1 / sqrt(s)``, and 0 for 0."""
    inverse = np.zeros_like(squared)
    np.divide(1.0, np.sqrt(squared), out=inverse, where=squared > 0)
    return inverse


def ones(X: Any) -> NDArray[Any]:
    """One 1 per row."""
    return np.ones(X.shape[0], dtype=X.dtype)


def positive(value: Any, name: str) -> float:
    """Check a parameter: a positive finite number."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not (0 < float(value) < np.inf):
        raise ValueError(f"{name}={value!r}: it must be a positive finite number")
    return float(value)

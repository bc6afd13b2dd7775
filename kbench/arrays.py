"""Arrays of numpy, torch and the array API: their namespace, and what the standard lacks.

Maps and learners compute in the namespace of their inputs, ``xp = namespace(X)``, so that
one code runs on the host and on a GPU. Functions that are not in the standard, or that numpy
computes faster in another way, have their variants here.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "np.ndarray | csr_matrix"
MatrixLike: TypeAlias = "ArrayLike | csr_matrix"


T = TypeVar("T")


def namespace(X: object) -> Any:
    """Return the module whose functions take `X`, and arrays that are made from it.

    It is numpy for sequences, sparse matrices and rows that are not in memory.

    >>> namespace(np.ones(3)).__name__
    'numpy'
    """
    if hasattr(X, "__array_namespace__"):
        return X.__array_namespace__()
    if type(X).__module__.partition(".")[0] == "torch":
        from array_api_compat import torch

        return torch
    return np


def to_numpy(X: Any) -> np.ndarray:
    """Return an array of the host with the values of an array of any namespace."""
    return np.asarray(X.detach().cpu() if hasattr(X, "detach") else X)


def like(values: Any, X: Any) -> Any:
    """Return `values` in the namespace and type and on the device of `X`; copied if necessary.

    >>> like(np.ones(2), np.zeros(3, dtype=np.float32)).dtype
    dtype('float32')
    """
    xp = namespace(X)
    if xp is np:
        return to_numpy(values).astype(X.dtype, copy=False)
    return xp.asarray(values, dtype=X.dtype, device=X.device)


def on_host(fitted: T) -> T:
    """Return a copy of a fitted estimator whose arrays are those of numpy.

    Attributes, lists, tuples and dicts are followed.
    """
    value: Any = fitted
    if isinstance(value, list | tuple):
        # a named tuple takes its items one by one
        items = [on_host(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return type(value)({key: on_host(item) for key, item in value.items()})
    if namespace(value) is not np:
        return to_numpy(value)  # type: ignore[return-value]
    if hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type):
        value = copy.copy(value)
        vars(value).update({key: on_host(item) for key, item in vars(fitted).items()})
    return value


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

"""Arrays of numpy, torch and the array API: their namespace, and what the standard lacks.

Maps and learners compute in the namespace of their inputs, ``xp = namespace(X)``, so that
one code runs on the host and on a GPU. Functions that are not in the standard, or that numpy
computes faster in another way, have their variants here.
"""

import copy
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "np.ndarray | csr_matrix"
MatrixLike: TypeAlias = "ArrayLike | csr_matrix"

Array: TypeAlias = Any
"""An array of any namespace."""

T = TypeVar("T")


def namespace(X: object) -> Array:
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


def to_numpy(X: Array) -> np.ndarray:
    """Return an array of the host with the values of an array of any namespace."""
    if hasattr(X, "tocsr"):
        return np.asarray(X.toarray())
    return np.asarray(X.detach().cpu() if hasattr(X, "detach") else X)


def like(values: Array, X: Array, dtype: Array = None) -> Array:
    """Return `values` in the namespace and on the device of `X`; copied if necessary.

    Their type is that of `X`, or the given one.

    >>> like(np.ones(2), np.zeros(3, dtype=np.float32)).dtype
    dtype('float32')
    """
    xp, dtype = namespace(X), dtype or X.dtype
    if xp is np:
        return (values if hasattr(values, "tocsr") else to_numpy(values)).astype(dtype, copy=False)
    return xp.asarray(_portable(values, xp), dtype=dtype, device=X.device)


def _portable(values: Array, xp: Array) -> Array:
    """Return `values` as an array of numpy that torch takes, unless they are of the namespace."""
    return (
        values if namespace(values) is xp else np.require(to_numpy(values), requirements=["C", "W"])
    )


def wide(number: float, X: object) -> float:
    """Return a number whose product with arrays such as `X` is computed in float64 by numpy.

    Other namespaces compute it in the type of the array.
    """
    return np.float64(number) if namespace(X) is np else float(number)


def host_type(X: Array) -> np.dtype:
    """Return the type of numpy for the values of `X`."""
    return np.dtype(X.dtype if namespace(X) is np else str(X.dtype).rpartition(".")[2])


def empty(shape: tuple[int, ...], X: Array) -> Array:
    """Return an array without values, of the type and in the namespace and place of `X`."""
    return namespace(X).empty(shape, dtype=X.dtype, device=getattr(X, "device", None))


def full(shape: tuple[int, ...], value: float, X: Array) -> Array:
    """Return an array of equal values, of the type and in the namespace and place of `X`."""
    return namespace(X).full(shape, float(value), dtype=X.dtype, device=getattr(X, "device", None))


def take(X: Array, rows: Array) -> Array:
    """Return rows, given as a slice or by their numbers, of arrays, sparse matrices, lazy rows.

    >>> take(np.eye(3), np.array([2]))
    array([[0., 0., 1.]])
    """
    xp = namespace(X)
    if isinstance(rows, slice):
        return X[rows] if xp is np else X[rows, ...]
    if xp is np:
        return X[to_numpy(rows)]
    return xp.take(X, xp.asarray(_portable(rows, xp), device=X.device), axis=0)


def take_columns(X: Array, kept: Array) -> Array:
    """Return the columns at which a mask is true."""
    xp = namespace(X)
    if xp is np:
        return X[:, kept]
    return xp.take(X, xp.nonzero(xp.asarray(kept, device=X.device))[0], axis=1)


def on_host(fitted: T) -> T:
    """Return a copy of a fitted estimator whose arrays are those of numpy.

    Attributes, lists, tuples and dicts are followed.
    """
    converted: T = _converted(fitted, to_numpy, {})
    return converted


def on_device(fitted: T, X: Array) -> T:
    """Return a copy of a fitted estimator whose arrays are where `X` is, with their own types.

    As for `on_host`; arrays of other values than numbers and sparse matrices stay.
    """
    xp = namespace(X)
    converted: T = _converted(
        fitted,
        lambda values: (
            xp.asarray(_portable(values, xp), device=X.device)
            if namespace(values) is not np or values.dtype.kind in "biufc"
            else values
        ),
        {},
    )
    return converted


def _converted(fitted: Array, convert: Callable[[Array], Array], seen: dict[int, Array]) -> Array:
    """Return what has arrays as a copy with others; anything else, and circles, as it is."""
    if isinstance(fitted, type) or inspect.isroutine(fitted) or inspect.ismodule(fitted):
        return fitted
    if isinstance(fitted, np.ndarray) or namespace(fitted) is not np:
        return convert(fitted)
    if id(fitted) in seen or hasattr(fitted, "tocsr"):
        return seen.get(id(fitted), fitted)
    value = seen[id(fitted)] = fitted
    if isinstance(fitted, list | tuple):
        items = [_converted(item, convert, seen) for item in fitted]
        if any(new is not item for new, item in zip(items, fitted, strict=True)):
            value = getattr(fitted, "_make", type(fitted))(items)  # of a named tuple
    else:
        inside = fitted if isinstance(fitted, dict) else getattr(fitted, "__dict__", {})
        given = {key: _converted(item, convert, seen) for key, item in inside.items()}
        if any(given[key] is not inside[key] for key in given):
            value = copy.copy(fitted)
            (value if isinstance(value, dict) else value.__dict__).update(given)
    seen[id(fitted)] = value
    return value


def check_rows(X: MatrixLike, name: str) -> Matrix:
    """Return inputs as rows of floats: 2-d arrays; sparse matrices and lazy rows as they are.

    Arrays of other namespaces stay in theirs.
    """
    xp = namespace(X)
    is_ready = xp is not np or hasattr(X, "tocsr") or hasattr(X, "is_lazy")
    rows: Matrix = X if is_ready else np.asarray(X)
    if isinstance(rows, np.ndarray) and rows.dtype not in (np.float64, np.float32):
        rows = rows.astype(np.float64)
    if xp is not np and not xp.isdtype(rows.dtype, "real floating"):
        rows = xp.astype(rows, xp.float64)
    if rows.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, (n_samples, n_features), got {rows.ndim}")
    return rows


def row_sums(X: Matrix) -> Array:
    """``sum_j x_j`` of each row."""
    if namespace(X) is not np:
        return namespace(X).sum(X, axis=1)
    return np.asarray(X.sum(axis=1)).ravel()


def squared_norms(X: Matrix) -> Array:
    """``||x||^2`` of each row."""
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    return row_sums(X.multiply(X) if hasattr(X, "tocsr") else X * X)


def inverse(values: Array) -> Array:
    """``1 / v``, and 0 for 0."""
    xp = namespace(values)
    return xp.where(values == 0, 0.0, 1.0 / xp.where(values == 0, 1.0, values))


def inverse_roots(squared: Array) -> Array:
    """``1 / sqrt(s)``, and 0 for 0."""
    return inverse(namespace(squared).sqrt(squared))


def is_positive(values: Array) -> Array:
    """1 for a positive value, else 0."""
    return namespace(values).astype(values > 0, values.dtype)


def exponential(K: Array) -> Array:
    """``exp(K)``; numpy writes it to `K`."""
    return np.exp(K, out=K) if isinstance(K, np.ndarray) else namespace(K).exp(K)


def as_type(X: Array, dtype: np.dtype | type) -> Array:
    """Return an array or a sparse matrix in a type of numpy, copied only if it has another one."""
    xp = namespace(X)
    if xp is np:
        return X.astype(dtype, copy=False)
    return xp.astype(X, getattr(xp, np.dtype(dtype).name), copy=False)


def indicators(codes: Array, n_codes: int, X: Array) -> Array:
    """1 where a code is the number of the column, else 0, in the namespace and type of `X`.

    >>> indicators(np.array([1, 0]), 2, np.zeros(1)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    xp = namespace(X)
    if xp is np:  # comparisons take up to eight times as long
        found = np.zeros((len(codes), n_codes), X.dtype)
        found[np.arange(len(codes)), codes] = 1.0
        return found
    numbers = xp.arange(n_codes, dtype=xp.int64, device=X.device)
    return xp.astype(like(codes, X, xp.int64)[:, None] == numbers[None, :], X.dtype)


def diagonal(A: Array) -> np.ndarray:
    """Return the diagonal of a matrix, on the host."""
    return to_numpy(namespace(A).linalg.diagonal(A))

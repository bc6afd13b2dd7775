"""What every kernel is, and what its computation shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kbench.kernels.algebra import Product, Scaled, Sum


class Kernel:
    """Base of all kernels.

    A subclass is a frozen dataclass that computes ``_gram(X, Y)`` (with `Y`
    None for the Gram matrix of `X` with itself) and, where that is cheaper,
    ``diag``. Calls check the shapes that go in and that what comes out is
    finite.
    """

    @property
    def psd(self) -> bool:
        """Every Gram matrix ``k(X)`` is positive semidefinite."""
        return True

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Compute the Gram matrix.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples_X, n_features)
            Rows.
        Y : array or CSR matrix, shape (n_samples_Y, n_features), optional
            Columns; `X` by default.

        Returns
        -------
        ndarray of float64 (float32 for float32 inputs), shape \
(n_samples_X, n_samples_Y)
            ``K[i, j] = k(X[i], Y[j])``.

        Raises
        ------
        ValueError
            If the shapes do not fit, or the result is not finite.
        """
        X = as_rows(X, "X")
        if Y is not None:
            Y = as_rows(Y, "Y")
            if X.shape[1] != Y.shape[1]:
                raise ValueError(
                    f"Y has {Y.shape[1]} features; it must have as many as X, {X.shape[1]}"
                )
        K = self._gram(X, Y)
        n_columns = (X if Y is None else Y).shape[0]
        if np.shape(K) != (X.shape[0], n_columns):
            raise ValueError(
                f"kernel={self!r} returned shape {np.shape(K)} for {X.shape[0]} rows "
                f"against {n_columns}; it must return ({X.shape[0]}, {n_columns})"
            )
        # a sum shows a NaN or an infinity without a temporary of the size of K
        if not np.isfinite(np.sum(K)) and not np.isfinite(K).all():
            raise ValueError(
                f"kernel={self!r} returned NaN or infinite values; "
                "its values must be finite (are the inputs too large?)"
            )
        return K

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        raise NotImplementedError

    def diag(self, X: Any) -> NDArray[Any]:
        """Compute ``k(x, x)`` for each row.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, shape (n_samples,)
            The diagonal of ``k(X)``.
        """
        X = as_rows(X, "X")
        # small blocks: their off-diagonal entries are wasted
        blocks = [
            np.diagonal(self(X[start : start + 32])) for start in range(0, X.shape[0], 32)
        ] or [np.empty(0)]
        return np.concatenate(blocks)

    def resolve(self, X: Any) -> Kernel:
        """Set every number that depends on data.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Training inputs.

        Returns
        -------
        Kernel
            This kernel where nothing is open.
        """
        return self

    def take(self, X: Any, rows: NDArray[Any]) -> Any:
        """Keep what comparing with some rows later needs.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Training inputs.
        rows : ndarray of int, shape (n_rows,)
            Row indices, landmarks for instance.

        Returns
        -------
        array or CSR matrix
            To be passed as `Y`; ``X[rows]`` but for `Precomputed`.
        """
        return X[rows]

    def __add__(self, other: Any) -> Sum:
        from kbench.kernels.algebra import Sum
        from kbench.kernels.names import resolve_kernel

        if not callable(other):
            return NotImplemented
        return Sum(self, resolve_kernel(other))

    def __mul__(self, other: Any) -> Scaled | Product:
        from kbench.kernels.algebra import Product, Scaled
        from kbench.kernels.names import resolve_kernel

        if isinstance(other, int | float | np.number):
            return Scaled(self, float(other))
        if not callable(other):
            return NotImplemented
        return Product(self, resolve_kernel(other))

    def __rmul__(self, other: Any) -> Scaled | Product:
        return self.__mul__(other)


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

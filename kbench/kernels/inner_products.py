"""Kernels of inner products, and precomputed Gram matrices."""

from dataclasses import dataclass

import numpy as np

from kbench.arrays import (
    Array,
    Matrix,
    MatrixLike,
    check_rows,
    inverse_roots,
    is_positive,
    namespace,
    squared_norms,
)
from kbench.kernels.base import Kernel
from kbench.parameters import check_integer, check_number


def inner_products(X: Array, Y: Array | None) -> Array:
    """``x . z`` of all pairs of rows."""
    if namespace(X) is not np:
        return X @ (X if Y is None else Y).T
    from sklearn.metrics.pairwise import linear_kernel

    return np.asarray(linear_kernel(X, Y))


@dataclass(frozen=True)
class Linear(Kernel):
    """The inner product, ``k(x, z) = x . z``.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    takes_any_namespace = True

    def _gram(self, X: Matrix, Y: "Matrix | None") -> Array:
        return inner_products(X, Y)

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        return np.repeat((coef @ Y)[:, None, :], len(X), axis=1)

    def diag(self, X: MatrixLike) -> Array:
        """``||x||^2``."""
        return squared_norms(check_rows(X, "X"))


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``k(x, z) = (offset + x . z)^degree``.

    Parameters
    ----------
    degree : int, default 2
        Degree, at least 1.
    offset : float, default 1.0
        Nonnegative; 0 is the homogeneous kernel.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 2
    offset: float = 1.0

    takes_any_namespace = True

    def __post_init__(self) -> None:
        check_integer(self.degree, "degree", least=1)
        check_number(self.offset, "offset", least=0)
        self._set(degree=int(self.degree), offset=float(self.offset))

    def _gram(self, X: Matrix, Y: "Matrix | None") -> Array:
        return self._power(inner_products(X, Y))

    def _power(self, K: Array) -> Array:
        K += self.offset
        if self.degree > 8:
            return K**self.degree
        base = namespace(K).asarray(K, copy=True) if self.degree > 2 else K
        # products are many times faster than pow for the degrees in use
        for _ in range(self.degree - 1):
            K *= base
        return K

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        K = self.degree * (X @ Y.T + self.offset) ** (self.degree - 1)
        return np.stack([(K * each) @ Y for each in coef])

    def diag(self, X: MatrixLike) -> Array:
        """``(offset + ||x||^2)^degree``."""
        return self._power(squared_norms(check_rows(X, "X")))


@dataclass(frozen=True)
class Cosine(Kernel):
    """The cosine of the angle, ``k(x, z) = x . z / (||x|| ||z||)``; 0 for a zero row.

    Examples
    --------
    >>> Cosine()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    takes_any_namespace = True

    def _gram(self, X: Matrix, Y: "Matrix | None") -> Array:
        K = inner_products(X, Y)
        K *= inverse_roots(squared_norms(X))[:, None]
        K *= inverse_roots(squared_norms(X if Y is None else Y))
        return K

    def diag(self, X: MatrixLike) -> Array:
        """1, or 0 for a zero row."""
        return is_positive(squared_norms(check_rows(X, "X")))


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The kernel of inputs that are Gram matrices.

    ``k(K)`` is `K`, ``k(K, columns)`` the given columns, and
    ``k.take(K, rows)`` the indices `rows`, so that an estimator written as
    ``k(X, k.take(X_train, rows))`` works on Gram matrices too: it is fitted on
    K(train, train) and predicts from K(test, train), as in scikit-learn.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> Precomputed()(K, Precomputed().take(K, [1]))
    array([[1.],
           [3.]])
    """

    def __call__(self, X: MatrixLike, Y: "MatrixLike | None" = None) -> Array:
        """Return the Gram matrix, or the columns `Y` of it.

        Parameters
        ----------
        X : ndarray, shape (n_samples, n_train)
            Similarities to the training rows.
        Y : ndarray of int, shape (n_columns,), optional
            Training rows to compare with.

        Returns
        -------
        ndarray, shape (n_samples, n_train) or (n_samples, n_columns)
            The similarities.
        """
        X = check_rows(X, "X")
        if Y is None:
            return np.asarray(X)
        columns = np.asarray(Y)
        if columns.ndim != 1 or columns.dtype.kind not in "iu":
            raise ValueError(
                "Y must be the indices of training rows for kernel=Precomputed(), got an array of "
                f"shape {columns.shape} and dtype {columns.dtype}"
            )
        return np.asarray(X[:, columns])

    def diag(self, X: MatrixLike) -> Array:
        """Return the diagonal."""
        return np.asarray(X).diagonal()

    def take(self, X: Matrix, rows: np.ndarray) -> np.ndarray:
        """Keep the indices: the similarities to these rows are columns."""
        return np.asarray(rows)

    def _as_part(self) -> Kernel:
        raise ValueError("kernel=Precomputed() cannot be combined: combine the Gram matrices")

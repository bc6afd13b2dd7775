"""Similarities that are given: as a matrix, or as any function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbench.kernels.base import Kernel, as_rows


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The input is a Gram matrix already.

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

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
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
        X = as_rows(X, "X")
        if Y is None:
            return np.asarray(X)
        columns = np.asarray(Y)
        if columns.ndim != 1 or columns.dtype.kind not in "iu":
            raise ValueError(
                "kernel=Precomputed() compares with training rows given by their indices, "
                f"not with an array of shape {columns.shape} and dtype {columns.dtype}"
            )
        return np.asarray(X[:, columns])

    def diag(self, X: Any) -> NDArray[Any]:
        """Return the diagonal."""
        return np.asarray(X).diagonal()

    def take(self, X: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Keep the indices: the similarities to these rows are columns."""
        return np.asarray(rows)


@dataclass(frozen=True)
class Similarity(Kernel):
    """Any function as a similarity; nothing is assumed about its eigenvalues.

    Parameters
    ----------
    function : callable
        ``function(X, Y) -> ndarray (n_samples_X, n_samples_Y)``, or, with
        `pairs`, ``function(x, z) -> float`` of two rows. A method ``diag(X)``
        or ``resolve(X)`` of it is used where there is one.
    pairs : bool, default False
        The function compares two rows, not two matrices.

    Examples
    --------
    >>> Similarity(lambda x, z: min(x[0], z[0]), pairs=True)([[1.0], [3.0]], [[2.0]])
    array([[1.],
           [2.]])
    """

    function: Callable[..., Any]
    pairs: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function={self.function!r}: it must be callable")

    @property
    def psd(self) -> bool:
        """Not known, hence False."""
        return False

    def resolve(self, X: Any) -> Similarity:
        """Resolve the function where it can be."""
        resolve = getattr(self.function, "resolve", None)
        return self if resolve is None else replace(self, function=resolve(X))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        Y = X if Y is None else Y
        if self.pairs:
            K = np.array([[float(self.function(x, z)) for z in Y] for x in X])
            return K.reshape(X.shape[0], Y.shape[0])
        return np.asarray(self.function(X, Y), dtype=np.result_type(X.dtype, np.float32))

    def diag(self, X: Any) -> NDArray[Any]:
        """``function(x, x)`` of each row."""
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(X))
        if self.pairs:
            return np.array([float(self.function(x, x)) for x in as_rows(X, "X")])
        return super().diag(X)

"""Precomputed Gram matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbench.kernels.arrays import Matrix, MatrixLike, as_rows
from kbench.kernels.base import Kernel


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

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
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
                "Y must be the indices of training rows for kernel=Precomputed(), got an array of "
                f"shape {columns.shape} and dtype {columns.dtype}"
            )
        return np.asarray(X[:, columns])

    def diag(self, X: MatrixLike) -> np.ndarray:
        """Return the diagonal."""
        return np.asarray(X).diagonal()

    def take(self, X: Matrix, rows: np.ndarray) -> np.ndarray:
        """Keep the indices: the similarities to these rows are columns."""
        return np.asarray(rows)

    def _as_part(self) -> Kernel:
        raise ValueError("kernel=Precomputed() cannot be combined: combine the Gram matrices")

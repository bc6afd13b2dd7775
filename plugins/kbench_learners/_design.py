"""The rows of a linear problem, and the ways to solve with ``I + X' D X``.

A design is what the Newton solver needs of the inputs: margins ``X w``, the
adjoint ``X' a``, Gram matrices of columns over any set of rows, and, where they
are small enough, inner products of rows. The constant column of the intercept
is implicit, so that no input is copied.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack, solve_triangular

# Beyond these sizes a factorisation costs more than conjugate gradients, and
# its memory is no longer small beside the input.
MAX_FACTOR_COLUMNS = 3000
MAX_FACTOR_ROWS = 4000
_CHUNK_ENTRIES = 500_000

# A product of sparse matrices takes about a hundred times as long per
# multiplication as one of dense matrices, and needs the square of the density
# as many. Beyond this size a dense copy is no longer small beside the rest.
_DENSE_FROM = 0.1
_DENSE_ENTRIES = 32_000_000


def dense_where_quicker(X):
    """Return `X`, as an array where it is sparse in name only.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
    """
    size = X.shape[0] * X.shape[1]
    if sp.issparse(X) and _DENSE_FROM * size < X.nnz and size <= _DENSE_ENTRIES:
        return X.toarray()
    return X


class Design:
    """Rows of a linear problem with an implicit constant last column.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
        Inputs, float64.
    bias : float
        Value of the constant column; 0 for none.

    Attributes
    ----------
    shape : tuple of int
        Rows, and columns with the constant one.
    entries : int
        Stored entries of `X`.
    direct : bool
        The Gram matrix of the columns is small enough to be factorised.
    gram_ : ndarray or None
        ``X' X``, once it was asked for.
    """

    def __init__(self, X, bias: float = 0.0) -> None:
        self.X = X
        self.bias = float(bias)
        self.sparse = sp.issparse(X)
        self.shape = (X.shape[0], X.shape[1] + bool(bias))
        self.entries = X.nnz if self.sparse else X.size
        self.direct = self.shape[1] <= MAX_FACTOR_COLUMNS
        self._pivots: tuple[np.ndarray, np.ndarray] | None = None
        self.gram_: np.ndarray | None = None
        self._row_gram: np.ndarray | None = None

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``X w``; `w` may have several columns."""
        if not self.bias:
            return self.X @ w
        return self.X @ w[:-1] + self.bias * w[-1]

    def adjoint(self, a: np.ndarray) -> np.ndarray:
        """Return ``X' a``; `a` may have several columns."""
        w = self.X.T @ a
        if not self.bias:
            return w
        return np.concatenate([w, self.bias * a.sum(axis=0, keepdims=True)])

    @property
    def has_gram(self) -> bool:
        """Whether ``X' X`` is at hand."""
        return self.gram_ is not None

    def gram(self, index: np.ndarray | None = None, weights: np.ndarray | None = None):
        """Return ``X_I' D X_I``, accumulated over blocks of rows.

        Parameters
        ----------
        index : ndarray of int, optional
            The rows I; all of them by default.
        weights : ndarray, optional
            Diagonal of D, positive; ones by default.

        Returns
        -------
        ndarray, shape (n_columns, n_columns)
            The matrix of all rows without weights is computed once and must
            not be written to.
        """
        whole = index is None and weights is None
        if whole and self.gram_ is not None:
            return self.gram_
        n_rows = self.shape[0] if index is None else len(index)
        p = self.shape[1]
        total = np.zeros((p, p))
        step = n_rows if self.sparse else max(1, _CHUNK_ENTRIES // p)
        for start in range(0, n_rows, max(step, 1)):
            part = slice(start, start + step)
            block = self.X[part if index is None else index[part]]
            scale = None if weights is None else np.sqrt(weights[part])
            self._add_gram(total, block, scale)
        if whole:
            self.gram_ = total
        return total

    def _add_gram(self, total, block, scale) -> None:
        if scale is not None:
            block = sp.diags_array(scale) @ block if self.sparse else block * scale[:, None]
        q = self.X.shape[1]
        inner = block.T @ block
        total[:q, :q] += inner.toarray() if self.sparse else inner
        if self.bias:
            ones = self.bias * (np.ones(block.shape[0]) if scale is None else scale)
            total[:q, q] += block.T @ ones
            total[q, :q] = total[:q, q]
            total[q, q] += ones @ ones

    @property
    def keeps_row_gram(self) -> bool:
        """Whether inner products of all rows are kept."""
        n, p = self.shape
        if self._row_gram is not None:
            return True
        return n <= p and n <= MAX_FACTOR_ROWS

    def row_gram(self, index: np.ndarray | None = None) -> np.ndarray:
        """Return ``X_I X_I'``, a new array unless I is all rows."""
        if self.keeps_row_gram:
            if self._row_gram is None:
                self._row_gram = self._inner(self.X)
            return self._row_gram if index is None else self._row_gram[index][:, index]
        return self._inner(self.X if index is None else self.X[index])

    def _inner(self, X) -> np.ndarray:
        K = X @ X.T
        K = K.toarray() if self.sparse else K
        K += self.bias**2
        return K

    def squared_columns(self, weights: np.ndarray) -> np.ndarray:
        """Return the diagonal of ``X' D X``."""
        if self.sparse:
            squares = self.X.copy()
            squares.data **= 2
            out = squares.T @ weights
        else:
            out = np.einsum("ij,ij,i->j", self.X, self.X, weights)
        return np.append(out, self.bias**2 * weights.sum()) if self.bias else out

    def part(self, index: np.ndarray) -> Design:
        """Return the design of some rows."""
        return Design(self.X[index], self.bias)

    def subproblem(self, index: np.ndarray) -> Design:
        """Return the design of some rows for a problem of their own.

        It takes over their inner products where these are kept.
        """
        out = self.part(index)
        if self._row_gram is not None:
            out._row_gram = self.row_gram(index)
        return out

    def reduced(self) -> Design:
        """Return an equivalent design with at most as many columns as rows.

        ``X X' = L L'`` by pivoted Cholesky, so the rows of ``L`` have the inner
        products of the rows of ``X`` and L2-regularised problems in either have
        the same dual solution. Duplicate rows and linear dependencies only
        lower the rank.
        """
        n, p = self.shape
        if n >= p or n > MAX_FACTOR_ROWS:
            return self
        return Design.of_row_gram(self.row_gram())

    @classmethod
    def of_row_gram(cls, K: np.ndarray) -> Design:
        """Return a design whose rows have the inner products `K`, which is kept."""
        factor, pivots, rank, _ = lapack.dpstrf(K, lower=1)
        L = np.empty((len(K), rank))
        L[pivots - 1] = np.tril(factor)[:, :rank]
        out = cls(L)
        out._pivots = pivots[:rank] - 1, factor[:rank, :rank]
        out._row_gram = K
        return out

    @property
    def is_reduced(self) -> bool:
        """Whether `X` is a factor of the inner products of another design."""
        return self._pivots is not None

    def expand(self, W: np.ndarray, full: Design) -> np.ndarray:
        """Return coefficients of a reduced design in the columns of `full`.

        They have the same margins and norms: ``X' v`` with ``L' v = w`` for the
        pivot rows.
        """
        index, factor = self._pivots
        return full.part(index).adjoint(solve_triangular(factor, W, lower=True, trans=1))

"""The rows of a linear problem, and products for solving with ``I + X' D X``.

A design computes what the Newton solver needs of the inputs: margins ``X w``, the
adjoint ``X' a``, Gram matrices of columns over any set of rows, and, where they
are small enough, inner products of rows. The constant column of the intercept
is implicit, so that no input is copied. Before it come products and factors of rows, sparse
or not, in the quicker form.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack, solve_triangular

# A sparse matrix times a vector takes 2.5 times as long per entry as an array.
# Beyond this size a dense copy is no longer small beside the rest.
_DENSE_FROM = 0.4
_DENSE_ENTRIES = 32_000_000

# Costs of an entry in a product with a vector, in operations of a product of arrays.
DENSE_PRODUCT = 8.0
SPARSE_PRODUCT = 20.0

# A product of sparse matrices takes some 400 times as long per multiplication as
# one of arrays, and needs the square of the density as many.
SPARSE_GRAM = 400.0


def dense_where_quicker(X, max_size: int = _DENSE_ENTRIES, small: int = 0):
    """Return `X`, or an array of up to `small` values, or `max_size` where few of them are 0."""
    size = X.shape[0] * X.shape[1]
    if sp.issparse(X) and (size <= small or (_DENSE_FROM * size < X.nnz and size <= max_size)):
        return X.toarray()
    return X


def used_columns(X) -> np.ndarray:
    """Return the columns of a CSR matrix that have entries; the first if there are none."""
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    return used if len(used) else np.zeros(1, dtype=np.intp)


def only_columns(X, columns: np.ndarray):
    """Return a CSR matrix with only the given columns: all `used_columns`, in order."""
    place = np.zeros(X.shape[1], dtype=X.indices.dtype)
    place[columns] = np.arange(len(columns))
    return sp.csr_array((X.data, place[X.indices], X.indptr), shape=(X.shape[0], len(columns)))


def inner_products(X) -> np.ndarray:
    """Return ``X X'`` as an array; `X` is an array or a CSR matrix."""
    if sp.issparse(X):
        X = only_columns(X, used_columns(X))
        size = X.shape[0] * X.shape[1]
        if size <= _DENSE_ENTRIES and SPARSE_GRAM * X.nnz**2 > size**2:
            X = X.toarray()
    K = X @ X.T
    return K.toarray() if sp.issparse(K) else K


def pivoted_cholesky(K: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Factorise a Gram matrix, whose lower triangle is read, up to its numerical rank.

    Returns the factor (the lower triangle of its first `rank` columns, rows in the order
    of the pivots), the pivots, counted from 1, and the rank.

    LAPACK's default tolerance is about the rounding errors of the matrix itself, so
    that copies of a row may count as further dimensions, of noise.
    """
    rounding = 10 * len(K) * np.finfo(np.float64).eps * K.diagonal().max()
    return lapack.dpstrf(K, tol=rounding, lower=1)[:3]


# Beyond these sizes a factorisation costs more than conjugate gradients, and
# its memory is no longer small beside the input.
MAX_FACTOR_COLUMNS = 3000
MAX_FACTOR_ROWS = 4000

# Beyond this share of the cube of its size in the entries of sparse rows, one factorisation
# takes as long as the conjugate gradients of a whole path.
_ITERATED = 1e4

# Rows are taken in blocks of half as many entries as the Gram matrix of the
# columns has, but not of very few rows: products of narrow blocks are slow.
_MIN_BLOCK_ENTRIES = 30_000
_MAX_BLOCK_ENTRIES = 500_000

# The rows of a subproblem are copied up to this size; beyond, they are taken
# again for every product, which then takes 1.4 times as long.
_COPY_ENTRIES = 4_000_000


class Design:
    """Rows of a linear problem with an implicit constant last column.

    `X` is a float64 array or CSR matrix, shape (n_samples, n_features), `bias` the value of
    the constant column (0 for none), and `index` the rows of `X` that belong to the problem,
    by default all. `shape` counts the constant column; the Gram matrix of the columns is small
    enough to be factorised where it is `direct`, and a row of it costs `gram_cost` multiplications.
    The design `iterates` where conjugate gradients are expected to be quicker than any factor.
    """

    def __init__(self, X, bias: float = 0.0, index: np.ndarray | None = None) -> None:
        self.X = X
        self.bias = float(bias)
        self.sparse = sp.issparse(X)
        self._index = index
        n = X.shape[0] if index is None else len(index)
        self.shape = (n, X.shape[1] + bool(bias))
        self.entries = (X.nnz if self.sparse else X.size) * n // max(1, X.shape[0])
        self.direct = self.shape[1] <= MAX_FACTOR_COLUMNS
        self.gram_cost = float(self.shape[1] ** 2)
        sparse_cost = SPARSE_GRAM * (self.entries / max(1, n)) ** 2
        self._gram_of_arrays = not self.sparse or sparse_cost >= self.gram_cost
        if not self._gram_of_arrays:
            self.gram_cost = sparse_cost
        self.iterates = self.sparse and min(self.shape) ** 3 > _ITERATED * self.entries
        self._transposed = X.T if index is None else None  # takes long to make of sparse rows
        self._columns: np.ndarray | None = None
        self._width = self.shape[1]
        self._pivots: np.ndarray | None = None
        self._basis: np.ndarray | None = None
        self.gram_: np.ndarray | None = None
        self._row_gram: np.ndarray | None = None

    @property
    def factor_steps(self) -> float:
        """Number of products ``X w`` and ``X' a`` that cost as much as factorising ``X' D X``."""
        n, p = self.shape
        product = SPARSE_PRODUCT if self.sparse else DENSE_PRODUCT
        return (n * self.gram_cost + p**3 / 1.5) / (4.0 * product * max(1, self.entries))

    def _taken(self, rows) -> np.ndarray:
        """Return the inputs of some rows, by slice or row numbers."""
        return self.X[rows if self._index is None else self._index[rows]]

    def _blocks(self, n_rows: int, arrays: bool = False):
        """Yield slices of up to `n_rows` rows that fit into a block, as arrays or as they are."""
        n, p = self.shape
        size = min(max(p * p // 2, _MIN_BLOCK_ENTRIES), _MAX_BLOCK_ENTRIES)
        # sparse rows are an array first, then one with the constant column
        entries = n * p * (1 + self.sparse) if arrays else self.entries
        step = max(1, size * max(1, n) // max(1, entries))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``X w``; `w` may have several columns."""
        coef = w[:-1] if self.bias else w
        if self._index is None:
            out = self.X @ coef
        else:
            out = np.empty((self.shape[0], *w.shape[1:]))
            for part in self._blocks(len(out)):
                out[part] = self._taken(part) @ coef
        if self.bias:
            out += self.bias * w[-1]
        return out

    def adjoint(self, a: np.ndarray) -> np.ndarray:
        """Return ``X' a``; `a` may have several columns."""
        if self._transposed is not None:
            w = self._transposed @ a
        else:
            w = np.zeros((self.X.shape[1], *a.shape[1:]))
            for part in self._blocks(len(a)):
                w += self._taken(part).T @ a[part]
        if not self.bias:
            return w
        return np.concatenate([w, self.bias * a.sum(axis=0, keepdims=True)])

    def gram(self, index: np.ndarray | None = None, weights: np.ndarray | None = None):
        """Return ``X_I' D X_I``, of which only the upper triangle is valid.

        `index` are the rows I, by default all; positive `weights` are the diagonal of D, by
        default ones. The matrix of all rows without weights is computed once and must not
        be written to.
        """
        whole = index is None and weights is None
        if whole and self.gram_ is not None:
            return self.gram_
        total = self.add_gram(np.zeros((self.shape[1], self.shape[1])), 1.0, index, weights)
        if whole:
            self.gram_ = total
        return total

    def add_gram(
        self,
        total: np.ndarray,
        factor: float,
        index: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """Add ``factor X_I' D X_I`` to the upper triangle of `total`, in place.

        Rows are taken block by block, so that this needs little memory in
        addition to `total`.
        """
        n_rows = self.shape[0] if index is None else len(index)
        for part in self._blocks(n_rows, self._gram_of_arrays):
            block = self._taken(part if index is None else index[part])
            scale = None if weights is None else np.sqrt(weights[part])
            if self._gram_of_arrays:
                block = block.toarray() if self.sparse else block
                self._add_dense(total, factor, block, scale)
            else:
                self._add_sparse(total, factor, block, scale)
        return total

    def _add_dense(self, total, factor, block, scale) -> None:
        if self.bias:
            block = np.column_stack([block, np.full(len(block), self.bias)])
            if scale is not None:
                block *= scale[:, None]
        elif scale is not None:
            block = block * scale[:, None]
        # the upper triangle by rows is the lower one by columns, which BLAS has
        blas.dsyrk(factor, block.T, beta=1.0, c=total.T, lower=1, overwrite_c=1)

    def _add_sparse(self, total, factor, block, scale) -> None:
        if scale is not None:
            block = sp.diags_array(scale) @ block
        q = self.X.shape[1]
        columns = block.T.tocsr()
        for start in range(0, q, 256):  # a few columns at a time, to save memory
            some = slice(start, min(start + 256, q))
            total[some, :q] += factor * (columns[some] @ block).toarray()
        if self.bias:
            ones = self.bias * (np.ones(block.shape[0]) if scale is None else scale)
            total[:q, q] += factor * (block.T @ ones)
            total[q, q] += factor * (ones @ ones)

    @property
    def keeps_row_gram(self) -> bool:
        """True if inner products of all rows are kept."""
        n, p = self.shape
        if self._row_gram is not None:
            return True
        return n <= p and n <= MAX_FACTOR_ROWS and not self.iterates

    def row_gram(self, index: np.ndarray | None = None) -> np.ndarray:
        """Return ``X_I X_I'``, a new array unless I is all rows."""
        if self.keeps_row_gram:
            if self._row_gram is None:
                self._row_gram = self._inner(self._everything())
            return self._row_gram if index is None else self._row_gram[np.ix_(index, index)]
        return self._inner(self._everything() if index is None else self._taken(index))

    def _everything(self):
        return self.X if self._index is None else self.X[self._index]

    def _inner(self, X) -> np.ndarray:
        K = inner_products(X)
        K += self.bias**2
        return K

    def squared_columns(self, weights: np.ndarray) -> np.ndarray:
        """Return the diagonal of ``X' D X``."""
        out = np.zeros(self.X.shape[1])
        for part in self._blocks(self.shape[0]):
            block = self._taken(part)
            if self.sparse:
                squares = sp.csr_array((block.data**2, block.indices, block.indptr), block.shape)
                out += squares.T @ weights[part]
            else:
                out += np.einsum("ij,ij,i->j", block, block, weights[part])
        return np.append(out, self.bias**2 * weights.sum()) if self.bias else out

    def part(self, index: np.ndarray) -> Design:
        """Return the design of some rows."""
        rows = index if self._index is None else self._index[index]
        if self.entries * len(index) // max(1, self.shape[0]) > _COPY_ENTRIES:
            return Design(self.X, self.bias, rows)
        return Design(self.X[rows], self.bias)

    def subproblem(self, index: np.ndarray) -> Design:
        """Return the design of a problem on some of the rows.

        It takes over their inner products where these are kept. Where sparse rows
        are copied, it has only the columns that they use; see `widened`.
        """
        out = self.part(index)
        if out.sparse and out._index is None:
            columns = used_columns(out.X)
            X = dense_where_quicker(only_columns(out.X, columns), _COPY_ENTRIES)
            out = Design(X, self.bias)
            out._columns, out._width = columns, self.shape[1]
        if self._row_gram is not None:
            out._row_gram = self.row_gram(index)
        return out

    def widened(self, w: np.ndarray) -> np.ndarray:
        """Return coefficients of a subproblem in the columns of the whole one."""
        if self._columns is None:
            return w
        out = np.zeros(self._width)
        out[self._columns] = w[: len(self._columns)]
        if self.bias:
            out[-1] = w[-1]
        return out

    def reduced(self) -> Design:
        """Return an equivalent design with at most as many columns as rows.

        ``X X' = L L'`` by pivoted Cholesky, so the rows of ``L`` have the inner
        products of the rows of ``X`` and L2-regularised problems in either have
        the same dual solution. Duplicate rows and linear dependencies only
        lower the rank. A subproblem with more rows than columns may have a low
        rank too, as coordinates in trees of cells do.
        """
        n, p = self.shape
        if n >= p:
            is_factored = self._columns is not None and self.direct and not self.iterates
            return self._of_low_rank() if is_factored else self
        if not self.keeps_row_gram or not self.row_gram().any():
            return self
        return Design.of_row_gram(self.row_gram())

    def _of_low_rank(self) -> Design:
        """Return the rows in an orthonormal basis of their span, where that is small.

        A basis of the range of ``X' X`` by pivoted Cholesky, which takes as long as
        one Newton step. The Gram matrix is needed anyway. The coordinates may have
        as many values as rows that are copied.
        """
        p = self.shape[1]
        factor, pivots, rank = pivoted_cholesky(self.gram().T)
        if not 0 < rank <= p // 2 or rank * self.shape[0] > _COPY_ENTRIES:
            return self
        span = np.empty((p, rank))
        span[pivots - 1] = np.tril(factor[:, :rank])
        del factor
        basis = np.linalg.qr(span)[0]
        out = Design(self.margins(basis))
        out._basis, out._row_gram = basis, self._row_gram
        self.gram_ = None
        return out

    @classmethod
    def of_row_gram(cls, K: np.ndarray) -> Design:
        """Return a design whose rows have the inner products `K`, which is kept."""
        factor, pivots, rank = pivoted_cholesky(K)
        for column in range(1, rank):
            factor[:column, column] = 0.0
        L = np.empty((len(K), rank))
        L[pivots - 1] = factor[:, :rank]
        out = cls(L)
        out._pivots = pivots[:rank] - 1
        out._row_gram = K
        return out

    @property
    def is_reduced(self) -> bool:
        """True if `X` is a factor of the inner products of another design."""
        return self._pivots is not None or self._basis is not None

    def expand(self, W: np.ndarray, full: Design) -> np.ndarray:
        """Return coefficients of a reduced design in the columns of `full`.

        They have the same margins and norms: ``X' v`` with ``L' v = w`` for the
        pivot rows, or a sum of the basis.
        """
        if self._basis is not None:
            return self._basis @ W
        factor = self.X[self._pivots]
        return full.part(self._pivots).adjoint(solve_triangular(factor, W, lower=True, trans=1))

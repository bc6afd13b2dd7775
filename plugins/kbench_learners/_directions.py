"""Newton directions: solving ``(I + X' D X) d = -g`` in the cheapest way.

Three methods compete: a factorisation in the columns, one in the rows that have
curvature (Woodbury's identity), and conjugate gradients.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from kbench_learners._design import Design

# Rough costs in units of one floating-point operation of a matrix product,
# which is what a factorisation consists of.
_CG_PRODUCTS = 4.0  # operations per entry of X in one iteration
_DENSE_PRODUCT = 8.0
_SPARSE_PRODUCT = 20.0
_GATHER = 20.0
_MAX_ROWS = 3000

_CG_EXPECTED = 40  # iterations, before any are known
_CG_MAX = 250


class ActiveRows:
    """Solve with ``I + sigma X_J' X_J`` while the set J of rows changes.

    Where a system in the columns is the cheapest, ``X_J' X_J`` is updated by the
    rows that entered or left J since it was last used.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self._S: np.ndarray | None = None
        self._members = np.zeros(design.shape[0], dtype=bool)
        self._cg_expected = _CG_EXPECTED

    def refresh(self) -> None:
        """Discard the updated matrix, whose rounding errors have grown."""
        self._S = None

    def direction(self, g, J, sigma, accuracy):
        """Return d with ``(I + sigma X_J' X_J) d = -g``, to `accuracy` if iterated.

        If every method fails, return the last iterate.
        """
        if len(J) == 0:
            return -g
        members = np.zeros(self.design.shape[0], dtype=bool)
        members[J] = True
        costs = self._costs(J, members)
        step = max(costs["cg"], 1.0)  # there may be no entries at all
        costs["cg"] = step * self._cg_expected
        methods = sorted(costs, key=costs.get)
        rough = -g
        for method, following in zip(methods, [*methods[1:], None], strict=True):
            if method == "rows":
                d = self._by_rows(g, J, sigma)
            elif method == "columns":
                d = self._by_columns(g, J, members, sigma)
            else:  # no longer than the next best method would take
                limit = _CG_MAX if following is None else int(costs[following] / step) + 1
                d, n_iter, solved = self._iterated(g, J, members, sigma, accuracy, limit)
                self._cg_expected = n_iter if solved else 2 * n_iter
                if not solved:
                    d, rough = None, d
            if d is not None:
                return d
        return rough

    def _costs(self, J, members):
        design, m = self.design, len(J)
        n, p = design.shape
        product = _SPARSE_PRODUCT if design.sparse else _DENSE_PRODUCT
        entries = design.entries * m / n
        costs = {"cg": _CG_PRODUCTS * product * entries}  # of one iteration
        if m <= _MAX_ROWS:
            inner = _GATHER if design.keeps_row_gram else design.gram_cost / p
            costs["rows"] = m**3 / 3 + m * m * inner
        if design.direct:
            costs["columns"] = self._update(J, members)[1] * design.gram_cost + p**3 / 3
        return costs

    def _update(self, J, members):
        """Return the cheapest method for ``X_J' X_J`` and its number of rows."""
        n, m = len(members), len(J)
        n_rows = {"rows": m}
        if self._S is not None:
            n_rows["update"] = int(np.count_nonzero(members != self._members))
        if self.design.has_gram:
            n_rows["complement"] = n - m
        best = min(n_rows, key=n_rows.get)
        return best, n_rows[best]

    def _by_columns(self, g, J, members, sigma):
        design = self.design
        method, _ = self._update(J, members)
        if method == "rows":
            self._S = None  # never two of them in memory
            self._S = design.gram() if len(J) == len(members) else design.gram(J)
        elif method == "complement":
            self._S = None
            self._S = design.add_gram(design.gram().copy(), -1.0, np.flatnonzero(~members))
        else:
            if self._S is design.gram_:
                self._S = self._S.copy()
            design.add_gram(self._S, 1.0, np.flatnonzero(members & ~self._members))
            design.add_gram(self._S, -1.0, np.flatnonzero(self._members & ~members))
        self._members = members
        H = self._S * sigma
        H.flat[:: len(H) + 1] += 1.0
        return cholesky_solve(H, -g)

    def _iterated(self, g, J, members, sigma, accuracy, limit):
        design, weights = self.design, sigma * members
        if len(J) <= len(members) // 2:  # else zero weights cost less than a copy of most rows
            design, weights = design.part(J), np.full(len(J), sigma)
        return conjugate_gradients(design, g, weights, accuracy, max_iter=limit)

    def _by_rows(self, g, J, sigma):
        design = self.design
        H = design.row_gram(J)
        H.flat[:: len(J) + 1] += 1.0 / sigma
        part = design.part(J)
        beta = cholesky_solve(H, part.margins(g))
        return None if beta is None else part.adjoint(beta) - g


class AllRows:
    """Solve with ``I + X' D X`` where all weights change in every step.

    One factorisation serves as preconditioner of conjugate gradients until
    these take long.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self._factor: np.ndarray | None = None

    def refresh(self) -> None:
        """Discard the factorisation."""
        self._factor = None

    def direction(self, g, J, weights, accuracy):
        """Return d with ``(I + X' D X) d = -g`` to a relative residual."""
        if not self.design.direct:
            return conjugate_gradients(self.design, g, weights, accuracy)[0]
        if self._factor is None:
            H = self.design.gram(weights=weights)
            H.flat[:: len(H) + 1] += 1.0
            factor, info = lapack.dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
            self._factor = None if info else factor
        solve = None if self._factor is None else self._solve
        d, steps, _ = conjugate_gradients(self.design, g, weights, accuracy, solve)
        if steps > 8:
            self._factor = None
        return d

    def _solve(self, r):
        return lapack.dpotrs(self._factor, r, lower=1)[0]


def cholesky_solve(H, b):
    """Solve ``H x = b`` for a positive definite C-ordered `H`, which is overwritten.

    Return None where `H` is not numerically positive definite.
    """
    factor, info = lapack.dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
    if info:
        return None
    x, _ = lapack.dpotrs(factor, b, lower=1)
    return x


def conjugate_gradients(design, g, weights, accuracy, solve=None, max_iter=_CG_MAX):
    """Solve ``(I + X' D X) d = -g`` until the residual is `accuracy` times `g` in norm.

    `weights` is the diagonal of D, shape (n_samples,), and `solve` a preconditioner, by
    default the diagonal. Returns d, the number of iterations, and whether the residual
    is as small as requested.
    """
    if solve is None:
        diagonal = 1.0 + design.squared_columns(weights)

        def solve(r):
            return r / diagonal

    d = np.zeros_like(g)
    r = -g
    s = solve(r)
    q = s.copy()
    rs = float(r @ s)
    stop = accuracy * np.linalg.norm(g)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        Hq = q + design.adjoint(weights * design.margins(q))
        length = rs / float(q @ Hq)
        d += length * q
        r -= length * Hq
        if np.linalg.norm(r) <= stop:
            return d, n_iter, True
        s = solve(r)
        rs, previous = float(r @ s), rs
        q *= rs / previous
        q += s
    return d, n_iter, False

"""Semismooth Newton method for L2-regularised linear classifiers.

The problem of one binary classifier with labels ``y_i = +-1`` is

    minimise  P(w) = |w|^2 / 2 + sum_i psi(y_i x_i . w)

with a convex loss psi of the margin. With ``a_i = -psi'(y_i x_i . w)`` the
gradient is ``g = w - X'(y a)``, and by Fenchel's equality the duality gap at
the pair (w, a) is exactly ``|g|^2 / 2``, which is the stopping rule here.

Sources: Mangasarian, "A finite Newton method for classification" (2002), for
the generalised Hessian and its finite convergence; Chapelle, "Training a
support vector machine in the primal" (Neural Computation 19, 2007), for the
choice between systems in rows and in columns; Keerthi and DeCoste (JMLR 6,
2005), for the exact line search; Rockafellar (1976) for the augmented
Lagrangian that reduces the hinge to clipped quadratics.

Newton directions solve ``(I + X' D X) d = -g`` in the cheapest of three ways: a
factorisation in the columns, one in the rows that have curvature (Woodbury's identity), and
conjugate gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from kbench.arrays import Array, diagonal, like, namespace
from kbench_learners._design import DENSE_PRODUCT, SPARSE_PRODUCT, Design

# Rough costs in units of one floating-point operation of a matrix product,
# which is what a factorisation consists of.
_CG_PRODUCTS = 2.0  # operations per entry of X in one iteration
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
                design, weights = self.design, sigma * members
                if len(J) <= len(members) // 2:  # else zero weights cost less than a copy
                    design, weights = design.part(J), np.full(len(J), sigma)
                d, n_iter, solved = conjugate_gradients(design, g, weights, accuracy, limit)
                self._cg_expected = n_iter if solved else 2 * n_iter
                if not solved:
                    d, rough = None, d
            if d is not None:
                return d
        return rough

    def _costs(self, J, members):
        design, m = self.design, len(J)
        n, p = design.shape
        product = SPARSE_PRODUCT if design.sparse else DENSE_PRODUCT
        # of one iteration
        costs = {"cg": _CG_PRODUCTS * product * (design.entries * m / n)}
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
        if self.design.gram_ is not None:
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

    def _by_rows(self, g, J, sigma):
        design = self.design
        H = design.row_gram(J)
        H.flat[:: len(J) + 1] += 1.0 / sigma
        part = design.part(J)
        beta = cholesky_solve(H, part.margins(g))
        return None if beta is None else part.adjoint(beta) - g


def cholesky_solver(H: Array, new: np.ndarray) -> Callable[[Array], Array] | None:
    """Return a function that solves ``H X = B`` with a `new` diagonal of the symmetric `H`.

    Return None if `H` is not numerically positive definite. Of arrays of numpy, which are
    C-ordered, the upper triangle is read.

    >>> cholesky_solver(np.array([[1.0]]), np.array([4.0]))(np.array([[2.0]])).tolist()
    [[0.5]]
    """
    xp = namespace(H)
    if xp is np:
        changed = H.copy()
        changed.flat[:: len(H) + 1] = new
        factor, info = lapack.dpotrf(changed.T, lower=1, overwrite_a=1, clean=0)
        return None if info else lambda B: lapack.dpotrs(factor, B, lower=1)[0]
    H = H + xp.eye(H.shape[0], dtype=H.dtype, device=H.device) * like(new - diagonal(H), H)
    if hasattr(xp.linalg, "cholesky_ex"):  # of torch
        factor, info = xp.linalg.cholesky_ex(H)
        return None if int(info) else lambda B: xp.cholesky_solve(B, factor)
    try:
        L = xp.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return None
    # the standard has no triangular solver
    return lambda B: xp.linalg.solve(L.T, xp.linalg.solve(L, B))


def cholesky_solve(H, b):
    """Solve ``H x = b`` for a positive definite C-ordered `H`, which is overwritten.

    Return None if `H` is not numerically positive definite.
    """
    factor, info = lapack.dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
    if info:
        return None
    x, _ = lapack.dpotrs(factor, b, lower=1)
    return x


def conjugate_gradients(design, g, weights, accuracy, max_iter=_CG_MAX):
    """Solve ``(I + X' D X) d = -g`` until the residual is `accuracy` times `g` in norm.

    `weights` is the diagonal of D, shape (n_samples,); that of the matrix is the
    preconditioner. Returns d, the number of iterations, and whether the residual is as small
    as requested.
    """
    diagonal = 1.0 + design.squared_columns(weights)
    d, q, rs = np.zeros_like(g), np.zeros_like(g), np.inf
    r = -g
    stop = accuracy * np.linalg.norm(g)
    for n_iter in range(1, max_iter + 1):
        s = r / diagonal
        rs, previous = float(r @ s), rs
        q *= rs / previous
        q += s
        Hq = q + design.adjoint(weights * design.margins(q))
        length = rs / float(q @ Hq)
        d += length * q
        r -= length * Hq
        if np.linalg.norm(r) <= stop:
            return d, n_iter, True
    return d, n_iter, False


@dataclass
class Solution:
    """A fitted binary classifier.

    The coefficient of the constant column is the last of `w`. `dual` is ``y_i a_i``, shape
    (n_samples,): at the optimum ``w = X' dual``; None once it is no longer needed.
    `objective` is P(w), `gap` the duality gap at (w, dual), `n_iter` counts Newton steps.
    """

    w: np.ndarray
    dual: np.ndarray | None
    objective: float
    gap: float
    n_iter: int
    converged: bool


_BLOCK = 16_384  # rows whose losses are computed at once: temporaries stay small


def _blocks(n: int):
    for start in range(0, n, _BLOCK):
        yield slice(start, start + _BLOCK)


class ClippedQuadratic:
    """``psi(m) = h(shift + sigma (1 - m)) / sigma``: quadratic, then linear.

    ``h(t)`` is 0 below 0, ``t^2 / 2`` up to `cap` and linear beyond. Without
    cap and shift and with ``sigma = 2 C`` it is the squared hinge
    ``C max(0, 1 - m)^2``; with a cap C it is the Moreau envelope of
    ``C max(0, 1 - m)`` around a multiplier.
    """

    def __init__(self, sigma: float, cap: float = np.inf, shift: np.ndarray | None = None):
        self.sigma, self.cap, self.shift = sigma, cap, shift

    def _t(self, m, part):
        t = 1.0 - m
        t *= self.sigma
        if self.shift is not None:
            t += self.shift[part]
        return t

    def dual(self, m, part=slice(None)):
        """Return ``-psi'(m)`` of the margins of some rows, by default all."""
        t = self._t(m, part)
        return np.clip(t, 0.0, self.cap, out=t)

    def value(self, m):
        """Return the sum of psi."""
        total = 0.0
        for part in _blocks(len(m)):
            t = self._t(m[part], part)
            a = np.clip(t, 0.0, self.cap)
            t -= 0.5 * a
            total += float(a @ t)
        return total / self.sigma

    def curvature(self, m):
        """Return the rows with curvature and ``psi''`` there."""
        active = np.empty(len(m), dtype=bool)
        for part in _blocks(len(m)):
            active[part] = self._active(m[part], part)
        return np.flatnonzero(active), self.sigma

    def bend(self, m, d, part):
        """Return ``sum psi''(m) d^2`` over some rows."""
        moved = d[self._active(m, part)]
        return self.sigma * float(moved @ moved)

    def _active(self, m, part):
        t = self._t(m, part)
        active = t > 0.0
        if self.cap < np.inf:
            active &= t < self.cap
        return active


def line_search(loss, m, md, wd, dd, accuracy=0.1, max_iter=30):
    """Minimise the objective along a direction; return the step length.

    The derivative along the direction is increasing, and piecewise linear for
    quadratic losses: Newton's method in one dimension, safeguarded by a
    bracket.
    """

    def slope(s):
        total = wd + s * dd
        for part in _blocks(len(m)):
            total -= loss.dual(m[part] + s * md[part], part) @ md[part]
        return total

    start = slope(0.0)
    if not start < 0.0:
        return 0.0
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(max_iter):
        now = slope(s)
        if abs(now) <= -accuracy * start:
            return s
        low, high = (s, high) if now < 0.0 else (low, s)
        bend = dd
        for part in _blocks(len(m)):
            bend += loss.bend(m[part] + s * md[part], md[part], part)
        s -= now / bend
        if not low < s < high:
            s = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
    return low if low > 0.0 else high


def minimise(design, y, loss, w, hessian, tol: float, max_iter: int) -> Solution:
    """Minimise ``|w|^2 / 2 + sum psi(y X w)``, starting at `w`.

    `tol` bounds the duality gap relative to the objective. `hessian` solves for directions and
    keeps its factorisations between calls.
    """
    m = design.margins(w)
    m *= y
    stalled = 0
    first = previous = np.inf
    for n_iter in range(max_iter + 1):
        dual = loss.dual(m)
        dual *= y
        g = w - design.adjoint(dual)
        objective = 0.5 * float(w @ w) + loss.value(m)
        gap = 0.5 * float(g @ g)
        if gap <= tol * objective:
            return Solution(w, dual, objective, gap, n_iter, True)
        # Rounding errors may keep the objective from falling further.
        stalled = stalled + 1 if objective >= previous * (1.0 - 1e-14) else 0
        if n_iter == max_iter or stalled > 3:
            break
        if stalled:
            hessian.refresh()
        previous = min(previous, objective)
        first = gap if n_iter == 0 else first
        for d in (hessian.direction(g, *loss.curvature(m), min(0.1, (gap / first) ** 0.25)), -g):
            md = design.margins(d)
            md *= y
            s = line_search(loss, m, md, float(w @ d), float(d @ d))
            if s != 0.0:
                break
            hessian.refresh()
        if s == 0.0:
            break
        w = w + s * d
        md *= s
        m += md
        del md
    return Solution(w, dual, objective, gap, n_iter, False)

"""Convex losses over a ball of a kernel's feature space, solved to a certificate.

The learner of Shalev-Shwartz, Shamir and Sridharan (2011) minimises the mean
absolute error over the ball ||v||^2 <= B (equations 8 and 9). Written as

    min over ||v||^2 <= B of  (1/m) sum_i  max over b_i in [low_i, high_i] of b_i (t_i - <v, psi_i>)

it covers the absolute error (b_i in [-1, 1], t_i the label 0 or 1) and the hinge loss
(b_i between 0 and t_i, t_i the label -1 or 1) with one solver. Its dual is

    max over b in the box of  (1/m) (b't - sqrt(B) ||sum_i b_i psi_i||),

so any v in the ball and any b in the box bound the optimum from both sides: the
difference is the certificate, independent of the solver that found them.

A search for the penalty that makes ||v||^2 = B would solve ten or so penalised
problems. Here the multiplier of the ball is one more unknown of a single
primal-dual interior point run; the Newton systems stay r x r, bordered by one row.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from kbench.kernels import Kernel

ROWS = 4096  # rows per block: bounds memory, and a block stays in cache


class Factor(NamedTuple):
    """A pivoted Cholesky factor of a Gram matrix K of m rows, of rank r.

    K is nearly G G'; row i of G is psi(x_i) projected on the span of the rows `pivots`, and
    ``G[pivots]`` is lower triangular. `residual` is the diagonal of K - G G', the squared
    distances of the psi(x_i) to that span.
    """

    G: np.ndarray
    pivots: np.ndarray
    residual: np.ndarray


def pivoted_cholesky(kernel: Kernel, X: np.ndarray, rank: int, tol: float = 1e-12) -> Factor:
    """Factor the Gram matrix of `X`, pivot by pivot, and form it only if it is small.

    There are up to `rank` pivots: O(m r) numbers, in O(m r^2) operations. The last one is
    reached when no residual exceeds the share `tol` of the largest diagonal entry.
    """
    residual = np.array(kernel.diag(X), dtype=float)
    m = len(residual)
    rank = min(rank, m)
    G = np.zeros((m, rank), order="F")
    pivots = np.empty(rank, dtype=np.intp)
    floor = tol * residual.max()
    # calling the kernel for single columns costs more than all of a small Gram matrix
    gram = np.asarray(kernel(X), dtype=float) if m <= 2 * rank else None
    for j in range(rank):
        p = int(np.argmax(residual))
        if residual[p] <= floor:
            return Factor(G[:, :j].copy(order="F"), pivots[:j], residual)
        pivots[j] = p
        column = np.ravel(kernel(X, X[p : p + 1])) if gram is None else gram[:, p]
        column = (column - G[:, :j] @ G[p, :j]) / np.sqrt(residual[p])
        # exact zeros, so that G[pivots] is lower triangular to the last bit
        column[pivots[:j]] = 0.0
        G[:, j] = column
        residual -= column**2
        np.maximum(residual, 0.0, out=residual)
        residual[pivots[: j + 1]] = 0.0
    return Factor(G, pivots, residual)


class Solution(NamedTuple):
    """A point v of the ball, a point b of the box, and the bounds that they prove.

    v, shape (r,), is in the coordinates of the factor. `objective` is the mean loss at v,
    `dual` a lower bound of the smallest mean loss, and ``objective - dual <= tol`` where
    the solver `converged`, after `n_iter` Newton steps.
    """

    v: np.ndarray
    b: np.ndarray
    objective: float
    dual: float
    n_iter: int
    converged: bool


def mean_loss(residual, low, high):
    """Return the mean of max over b in [low, high] of b * residual."""
    return float(np.mean(np.maximum(low * residual, high * residual)))


def minimise_over_ball(
    factor: Factor,
    target: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    B: float,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> Solution:
    """Minimise a piecewise linear loss over ||v||^2 <= B; `target` is t, shape (m,).

    A primal-dual interior point method in the unknowns v, b, the two parts of the
    residual t - G v = p - q, and the multiplier of the ball, with Mehrotra's
    predictor and corrector. The box of b has ``low < high``. The result is always a
    feasible pair; its duality gap is at most `tol` if it `converged`.
    """
    interpolant = _interpolant(factor, target, B, tol)
    if interpolant is not None:
        loss = mean_loss(target - factor.G @ interpolant, low, high)
        return Solution(interpolant, np.clip(0.0, low, high), loss, 0.0, 0, True)

    point = _Interior(factor.G, target, low, high, np.sqrt(B))
    best = Solution(point.u, point.b, np.inf, -np.inf, 0, False)
    for n_iter in range(max_iter + 1):
        best = _better(best, point, n_iter, tol)
        if best.converged or n_iter == max_iter:
            break
        try:
            point.advance()
        except LinAlgError:  # too close to the boundary for floats: keep the best point
            break
    return best._replace(v=np.sqrt(B) * best.v)


class _Step(NamedTuple):
    u: np.ndarray
    Gu: np.ndarray
    b: np.ndarray
    p: np.ndarray
    q: np.ndarray
    lam: float
    slack: float


class _Interior:
    """A strictly interior point of primal and dual, and its Newton steps.

    With u = v / sqrt(B) in the unit ball and G scaled by sqrt(B) the conditions are

        G u + p - q = t            p (high - b) = 0
        G'b = lam u                q (b - low) = 0
        slack = (1 - ||u||^2) / 2  lam slack = 0

    with p, q, lam, slack >= 0 and b in the box; the products go to 0 together.
    """

    def __init__(self, G, target, low, high, radius):
        self.G, self.target, self.low, self.high, self.radius = G, target, low, high, radius
        m, r = G.shape
        self.u, self.Gu = np.zeros(r), np.zeros(m)
        self.b = 0.5 * (low + high)
        self.Gb = radius * (G.T @ self.b)
        spread = max(float(np.mean(np.abs(target))), 0.1)
        self.p = np.maximum(target, 0.0) + spread
        self.q = np.maximum(-target, 0.0) + spread
        self.slack = 0.5
        mean_product = 0.5 * float(np.mean(self.p * (high - self.b) + self.q * (self.b - low)))
        self.lam = max(mean_product / self.slack, float(np.linalg.norm(self.Gb)))

    def advance(self):
        """Make one predictor-corrector step; LinAlgError if the system is singular."""
        above, below = self.high - self.b, self.b - self.low
        if not (above.min() > 0 and below.min() > 0):
            raise LinAlgError("the dual point is on the boundary")
        solve = self._newton_system(above, below)
        products = self.p @ above + self.q @ below + self.lam * self.slack
        affine = solve(-self.p * above, -self.q * below, -self.lam * self.slack)
        length = self._longest(affine, above, below)
        predicted = (
            (self.p + length * affine.p) @ (above - length * affine.b)
            + (self.q + length * affine.q) @ (below + length * affine.b)
            + (self.lam + length * affine.lam) * (self.slack + length * affine.slack)
        )
        centre = products / (2 * len(above) + 1) * min(1.0, predicted / products) ** 3
        step = solve(
            centre - self.p * above + affine.p * affine.b,
            centre - self.q * below - affine.q * affine.b,
            centre - self.lam * self.slack - affine.lam * affine.slack,
            float(affine.u @ affine.u) * min(1.0, length) ** 2 / 2,
        )
        # the linearised ball is the ball only near u: steps are at most as long as its radius
        longest = 1.0 / max(1.0, float(np.linalg.norm(step.u)))
        self._move(step, min(longest, 0.995 * self._longest(step, above, below)))

    def _newton_system(self, above, below):
        """Linearise the conditions, eliminated down to r unknowns and lam.

        Returns a function that solves them, given the changes of the three kinds of products and
        the second-order term of the ball.
        """
        D = self.p / above + self.q / below
        H = _normal_matrix(self.G, self.radius**2 / D, self.lam)
        H = cho_factor(H, lower=True, overwrite_a=True)
        Hu = cho_solve(H, self.u)
        border = self.u @ Hu + self.slack / self.lam
        r_dual = self.Gb - self.lam * self.u
        r_primal = self.target - self.Gu - self.p + self.q
        r_ball = (1.0 - self.u @ self.u) / 2 - self.slack

        def solve(c_above, c_below, c_ball, curvature=0.0):
            rest = r_primal - c_above / above + c_below / below
            Hg = cho_solve(H, r_dual + self.radius * (self.G.T @ (rest / D)))
            lam = (self.u @ Hg - r_ball + curvature + c_ball / self.lam) / border
            u = Hg - lam * Hu
            Gu = self.radius * (self.G @ u)
            b = (rest - Gu) / D
            return _Step(
                u=u,
                Gu=Gu,
                b=b,
                p=(c_above + self.p * b) / above,
                q=(c_below - self.q * b) / below,
                lam=lam,
                slack=(c_ball - self.slack * lam) / self.lam,
            )

        return solve

    def _longest(self, step, above, below):
        """Return the step length at which the first positive quantity reaches 0."""
        fastest = max(
            np.max(-step.p / self.p),
            np.max(-step.q / self.q),
            np.max(step.b / above),
            np.max(-step.b / below),
            -step.lam / self.lam,
            -step.slack / self.slack,
        )
        return 1.0 / fastest if fastest > 0 else np.inf

    def _move(self, step, length):
        for name in _Step._fields:
            setattr(self, name, getattr(self, name) + length * getattr(step, name))
        self.Gb = self.radius * (self.G.T @ self.b)


def _interpolant(factor, target, B, tol):
    """Return the v with G v = t if it exists in the ball: the constraint is inactive."""
    v = solve_triangular(factor.G[factor.pivots], target[factor.pivots], lower=True)
    return v if v @ v <= B and np.max(np.abs(factor.G @ v - target)) <= 0.1 * tol else None


def _normal_matrix(G, weights, lam):
    """Add up lam I + G' diag(weights) G over blocks of rows."""
    H = lam * np.eye(G.shape[1])
    root = np.sqrt(weights)
    for start in range(0, len(G), ROWS):
        block = G[start : start + ROWS] * root[start : start + ROWS, None]
        H += block.T @ block
    return H


def _better(best, point, n_iter, tol):
    """Keep the better primal and the better dual point, each made feasible."""
    shrink = 1.0 / max(1.0, float(np.linalg.norm(point.u)))
    objective = mean_loss(point.target - shrink * point.Gu, point.low, point.high)
    dual = float(point.b @ point.target - np.linalg.norm(point.Gb)) / len(point.b)
    if objective < best.objective:
        best = best._replace(v=shrink * point.u, objective=objective)
    if dual > best.dual:
        best = best._replace(b=point.b, dual=dual)
    return best._replace(n_iter=n_iter, converged=best.objective - best.dual <= tol)


def dual_values_at_full_rank(kernel, X, factor, duals, b, B):
    """Return lower bounds of the smallest mean losses with the kernel itself, shape (n,).

    A dual point of the low-rank problem is one of the full problem too, only the norm
    of sum_i b_i psi_i is larger there: (1/m)(b't - sqrt(B) sqrt(b'Kb)). K is never
    stored, but computed in blocks of rows.

    `duals`, shape (n,), are the dual values of the low-rank problems with the squared radii
    `B`, and `b`, shape (m, n), the dual points that attain them. The bounds are at most
    `duals`, and equal to them where the factor is exact.
    """
    if not factor.residual.any():
        return duals
    kept = np.sum((factor.G.T @ b) ** 2, axis=0)
    full = np.zeros_like(kept)
    rows = max(1, 2**22 // len(X))
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        full += np.sum(b[block] * (kernel(X[block], X) @ b), axis=0)
    return duals - np.sqrt(B) * (np.sqrt(np.maximum(full, kept)) - np.sqrt(kept)) / len(X)

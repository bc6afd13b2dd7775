"""The dual of a support vector machine without bias: a quadratic programme in a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

_PATIENCE = 30  # steps without a smaller gap, after which rounding errors dominate


@dataclass(frozen=True)
class BoxSolution:
    """Solution of ``min 1/2 a' Q a - sum(a)``, ``0 <= a <= C``.

    Dual variables `a` at a bound are there exactly. `gap` is the duality gap relative to
    the primal objective, `n_iter` the number of Newton steps.
    """

    a: np.ndarray
    gap: float
    n_iter: int


def solve_box_qp(Q: np.ndarray, C: float, tol: float, max_iter: int) -> BoxSolution:
    """Solve the dual by a primal-dual interior point method, to a relative gap of `tol`.

    Mehrotra's predictor-corrector steps (Nocedal and Wright, "Numerical
    Optimization", 2006, section 16.6), one Cholesky decomposition each. Neither the
    scale nor the rank of `Q` matters: the barrier's diagonal makes every system definite.

    `Q` is ``y_i y_j k(x_i, x_j)``, shape (n, n), positive semidefinite. The result is the
    best point of all steps.
    """
    n = len(Q)
    scale = float(np.mean(Q.diagonal()))
    if scale <= 0:  # Q = 0: every variable is at its upper bound
        return BoxSolution(np.full(n, C), 0.0, 0)
    Q = Q / scale
    upper = C * scale
    x = np.full(n, min(1.0, upper / 2))  # dual variables, times scale
    s = upper - x  # room above
    z = np.ones(n)  # multiplier of x >= 0
    w = np.ones(n)  # multiplier of x <= upper
    best = BoxSolution(np.zeros(n), np.inf, 0)
    for step in range(1, max_iter + 1):
        margins = Q @ x
        a = _snapped(x, s, z, w, upper)
        gap = _relative_gap(Q, a, upper)
        if gap < best.gap:
            best = BoxSolution(np.minimum(a / scale, C), gap, step - 1)
        if gap <= tol or step - best.n_iter > _PATIENCE:
            break
        mu = (x @ z + s @ w) / (2 * n)
        residual = margins - 1 - z + w
        diagonal = z / x + w / s
        system = Q + np.diag(diagonal)
        try:
            factor = cho_factor(system, check_finite=False)
        except LinAlgError:
            break
        newton = (system, factor)
        # predictor: straight at the solution; corrector: back to the centre
        dx, dz, dw = _direction(newton, residual, x, s, z, w, x * z, s * w)
        t = min(_longest(x, dx), _longest(s, -dx), _longest(z, dz), _longest(w, dw))
        after = ((x + t * dx) @ (z + t * dz) + (s - t * dx) @ (w + t * dw)) / (2 * n)
        target = mu * (after / mu) ** 3
        dx, dz, dw = _direction(
            newton, residual, x, s, z, w, x * z + dx * dz - target, s * w - dx * dw - target
        )
        primal = 0.9995 * min(_longest(x, dx), _longest(s, -dx))
        dual = 0.9995 * min(_longest(z, dz), _longest(w, dw))
        t = min(primal, dual, 1.0)
        if not np.isfinite(t) or t <= 0:
            break
        x, s, z, w = x + t * dx, s - t * dx, z + t * dz, w + t * dw
    return BoxSolution(best.a, best.gap, step)


def _direction(newton, residual, x, s, z, w, xz, sw):
    """Solve the Newton system for given complementarity residuals."""
    system, factor = newton
    right = -residual - xz / x + sw / s
    dx = cho_solve(factor, right, check_finite=False)
    # one step of refinement: near the solution the system is ill-conditioned
    dx += cho_solve(factor, right - system @ dx, check_finite=False)
    return dx, -(xz + z * dx) / x, -(sw - w * dx) / s


def _longest(value, direction) -> float:
    """Return the longest step, up to 1, that keeps a vector nonnegative."""
    shrinking = direction < 0
    if not shrinking.any():
        return 1.0
    with np.errstate(over="ignore"):
        return min(1.0, float((-value[shrinking] / direction[shrinking]).min()))


def _snapped(x, s, z, w, upper):
    """Put variables whose multiplier outweighs them on their bound."""
    a = np.where(x / upper < z * 1e-3, 0.0, x)
    return np.where(s / upper < w * 1e-3, upper, a)


def _relative_gap(Q, a, upper) -> float:
    margins = Q @ a
    quadratic = a @ margins / 2
    primal = quadratic + upper * np.maximum(0.0, 1.0 - margins).sum()
    dual = a.sum() - quadratic
    return float((primal - dual) / max(primal, np.finfo(float).tiny))

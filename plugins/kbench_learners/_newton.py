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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


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


class Logistic:
    """``psi(m) = C log(1 + exp(-m))``."""

    def __init__(self, C: float):
        self.C = C

    def dual(self, m, part=slice(None)):
        """Return ``-psi'(m)`` of the margins of some rows, by default all."""
        return self.C * expit(-m)

    def value(self, m):
        """Return the sum of psi."""
        return self.C * sum(float(np.logaddexp(0.0, -m[part]).sum()) for part in _blocks(len(m)))

    def curvature(self, m):
        """Return all rows and ``psi''``."""
        p = expit(-m)
        p *= self.C * (1.0 - p)
        return None, p

    def bend(self, m, d, part):
        """Return ``sum psi''(m) d^2`` over some rows."""
        p = expit(-m)
        return self.C * float((p * (1.0 - p) * d) @ d)


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

    `tol` bounds the duality gap relative to the objective. `hessian`, an `ActiveRows` or
    `AllRows`, solves for directions and keeps its factorisations between calls.
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
        J, weights = loss.curvature(m)
        d = hessian.direction(g, J, weights, min(0.1, (gap / first) ** 0.25))
        del J, weights
        md = design.margins(d)
        md *= y
        s = line_search(loss, m, md, float(w @ d), float(d @ d))
        if s == 0.0:
            hessian.refresh()
            d = -g
            md = design.margins(d)
            md *= y
            s = line_search(loss, m, md, float(w @ d), float(d @ d))
            if s == 0.0:
                break
        w = w + s * d
        md *= s
        m += md
        del md
    return Solution(w, dual, objective, gap, n_iter, False)

"""Core sets: the points on which a smallest enclosing ball rests.

The support vector machine with squared hinge and penalised intercept,

    minimise  |w|^2 / 2 + b^2 / 2 + C / 2 sum_i max(0, 1 - y_i f(x_i))^2,

is the smallest ball that encloses the points ``(y_i phi(x_i), y_i, e_i /
sqrt(C))``, where ``k(x, x)`` is constant (Tsang, Kwok and Cheung, JMLR 6, 2005,
equations 8 to 13). A core set is a subset whose smallest ball, enlarged by
1 + tol, encloses all points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbench_learners._design import Design
from kbench_learners._directions import ActiveRows, cholesky_solve
from kbench_learners._kernel_machine import gram_blocks, subproblem
from kbench_learners._newton import ClippedQuadratic, minimise

_BLOCK_ENTRIES = 4_000_000
_MAX_GRAM_ENTRIES = 2**24
_STEP = 16  # points added at once to a small core set
_SAMPLES = 4  # points that are looked at for each of them
_FULL_STEPS = 8


@dataclass
class CoreSet:
    """A core set and its classifier ``f(x) = sum_j coef_j (k(x_j, x) + 1)``.

    `coef` are signed, and zero where a point lies inside the ball. `excess` is by how much
    the furthest point leaves the ball, relative to its radius; `gap` is the duality gap of
    the classifier on all points, relative to the objective; `n_iter` counts rounds.
    """

    index: np.ndarray
    coef: np.ndarray
    excess: float
    gap: float
    n_iter: int
    converged: bool


class Similarities:
    """Kernel values between rows of a problem, from a Gram matrix where it is small.

    Without one, each value is computed when it is needed, in blocks. `rows` are those of
    the problem among the rows of `X`, or of `gram`, by default all.
    """

    def __init__(self, kernel, X, rows=None, gram=None) -> None:
        self.kernel, self.X = kernel, X
        self.rows = np.arange(X.shape[0]) if rows is None else rows
        if gram is None and len(self.rows) ** 2 <= _MAX_GRAM_ENTRIES:
            if rows is not None:
                self.X, self.rows = subproblem(kernel, X, rows), np.arange(len(rows))
            gram = kernel(self.X)
        self.gram = gram

    def part(self, rows) -> Similarities:
        """Return the values between some rows."""
        return Similarities(self.kernel, self.X, self.rows[rows], self.gram)

    def __call__(self, rows, columns) -> np.ndarray:
        """Return the values between rows and columns."""
        if self.gram is not None:
            return self.gram[self.rows[rows][:, None], self.rows[columns]]
        centres = self.kernel.take(self.X, self.rows[columns])
        return np.asarray(self.kernel(self.X[self.rows[rows]], centres))

    def decisions(self, rows, columns, coef) -> np.ndarray:
        """Return ``sum_j coef_j (k(x_j, x) + 1)`` for rows x, over columns j."""
        if self.gram is not None:
            return self(rows, columns) @ coef + coef.sum()
        centres = self.kernel.take(self.X, self.rows[columns])
        return decisions(self.kernel, self.X[self.rows[rows]], centres, coef)


def core_set(values: Similarities, y, C, tol, max_core_size, rng) -> CoreSet:
    """Grow a core set until its ball encloses all points but for `tol`.

    Each round adds the furthest of a sample of points (Section 4.1.2 of the
    paper: the best of 59 points; here a quarter of the core set, at least 16, out of
    four times as many), and solves the problem of the core set anew.
    A round whose sample has too few points outside looks at all points, so that
    the end does not depend on chance.

    The kernel has a constant diagonal, `y` is -1 or 1, and `rng` is a RandomState.
    """
    first = np.zeros(1, dtype=np.intp)
    square = float(values(first, first)[0, 0]) + 1.0 + 1.0 / C
    index = np.concatenate([rng.permutation(np.flatnonzero(y == sign))[:5] for sign in (-1.0, 1.0)])
    outside = np.ones(len(y), dtype=bool)
    outside[index] = False
    K = np.empty((0, 0))
    coef = np.empty(0)
    n_iter = 0
    while True:
        n_iter += 1
        K = _bordered(values, index, K)
        coef = _solve(K, y[index], C, coef)
        total = float(np.abs(coef).sum())
        support = np.flatnonzero(coef)

        def excess(rows, index=index[support], coef=coef[support], total=total):
            margins = y[rows] * values.decisions(rows, index, coef)
            distance = np.maximum(square + (1.0 - 2.0 * margins) / total, 0.0)
            return np.sqrt(distance / (square - 1.0 / total)) - 1.0, margins

        n_more = min(max(_STEP, len(index) // 4), max_core_size - len(index))
        rest = np.flatnonzero(outside)
        sampled = 0 < _SAMPLES * n_more < len(rest)
        looked = rng.choice(rest, _SAMPLES * n_more, replace=False) if sampled else rest
        far, margins = excess(looked)
        more = _furthest(looked, far, tol, n_more)
        if sampled and len(more) < max(1, n_more // 2):
            far, margins = excess(rest)
            more = _furthest(rest, far, tol, n_more)
        if len(more) == 0:
            break
        outside[more] = False
        index = np.concatenate([index, more])
    worst = float(far.max(initial=0.0))
    gap = _gap(K, y[index], coef, C, margins)
    return CoreSet(index, coef, worst, gap, n_iter, worst <= tol)


def decisions(kernel, X, centres, coef):
    """Return ``sum_j coef_j (k(x_j, x) + 1)``, over blocks of rows.

    `coef` may have several columns.
    """
    sums = np.zeros((X.shape[0], *coef.shape[1:]))
    for rows, K in gram_blocks(kernel, X, centres, entries=_BLOCK_ENTRIES):
        sums[rows] = K @ coef
    return sums + coef.sum(axis=0)


def _furthest(rows, excess, tol, n_more):
    """Return the rows furthest outside, at most `n_more`."""
    out = np.flatnonzero(excess > tol)
    return rows[out[np.argsort(-excess[out], kind="stable")[:n_more]]]


def _bordered(values, index, K):
    """Extend the matrix ``k + 1`` of the core set to its new points."""
    old, new = len(K), len(index)
    rows = values(index[old:], index)
    rows += 1.0
    out = np.empty((new, new))
    out[:old, :old] = K
    out[old:] = rows
    out[:old, old:] = rows[:, :old].T
    return out


def _solve(K, y, C, coef):
    """Return the signed coefficients of the problem on the core set.

    `coef` are those of its first points in the previous round. Full Newton steps, each a
    system of the rows within their margins, end at the solution after a few of them; where
    they do not, because they lack a line search, `minimise` takes over.
    """
    margins = y * (K[:, : len(coef)] @ coef)
    for _ in range(_FULL_STEPS):
        rows = np.flatnonzero(margins < 1.0)
        H = K[rows[:, None], rows]
        H.flat[:: len(rows) + 1] += 1.0 / C
        part = cholesky_solve(H, y[rows])
        if part is None:
            break
        margins = y * (K[:, rows] @ part)
        if np.array_equal(rows, np.flatnonzero(margins < 1.0)):
            found = np.zeros(len(K))
            found[rows] = part
            return found
    design = Design.of_row_gram(K)
    loss = ClippedQuadratic(sigma=C)
    start = design.X[: len(coef)].T @ coef
    return minimise(design, y, loss, start, ActiveRows(design), tol=1e-10, max_iter=200).dual


def _gap(K, y, coef, C, margins_outside):
    """Return the relative duality gap on all points."""
    decision = K @ coef
    square = float(coef @ decision)
    slack = np.maximum(0.0, 1.0 - np.concatenate([y * decision, margins_outside]))
    objective = 0.5 * square + 0.5 * C * float(slack @ slack)
    dual = float(np.abs(coef).sum()) - 0.5 * square - 0.5 * float(coef @ coef) / C
    return max(objective - dual, 0.0) / objective

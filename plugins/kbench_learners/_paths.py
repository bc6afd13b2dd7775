"""Regularisation paths of binary linear classifiers, warm-started in C."""

from dataclasses import replace
from functools import partial

import numpy as np

from kbench_learners._descent import Logistic, Problem, relative_gap
from kbench_learners._design import Design
from kbench_learners._newton import ActiveRows, ClippedQuadratic, Solution, cholesky_solve, minimise

LOSSES = ("squared_hinge", "hinge", "logistic")


def binary_path(design, y, values, loss, tol, max_iter, start=None, margins=None) -> list[Solution]:
    """Fit one binary classifier for every value of C, in the order of `values`.

    They are solved in ascending order, each from the one before, with up to `max_iter`
    steps, until the duality gap is `tol` relative to the objective. `start` are
    coefficients near those of the smallest C. With fewer rows than columns, a reduced
    design is best. The squared hinge is 0 from the `margins` of the rows on, by default 1.
    """
    if design.is_reduced:  # going back to the columns loses a few digits
        tol = 0.1 * tol
    hessian = ActiveRows(design)
    w = np.zeros(design.shape[1]) if start is None else start
    dual: np.ndarray | None = None
    solutions: dict[float, Solution] = {}
    previous = None
    for C in sorted(set(values)):
        if loss == "hinge":
            multipliers = None if dual is None else np.clip(y * dual * (C / previous), 0.0, C)
            solution = _hinge(design, y, C, w, multipliers, hessian, tol, max_iter)
        elif loss == "squared_hinge":
            shift = None if margins is None else 2.0 * C * (margins - 1.0)
            psi = ClippedQuadratic(2.0 * C, shift=shift)
            solution = minimise(design, y, psi, w, hessian, tol, max_iter)
        else:
            solution = _logistic(design, y, C, w, tol, max_iter)
        w, dual, previous = solution.w, solution.dual, C
        solutions[C] = replace(solution, dual=None)  # would be as long as the data, for every C
    return [solutions[C] for C in values]


def _logistic(design, y, C, w, tol, max_iter):
    loss, residual = Logistic(np.full(2, C), np.array([-1.0, 1.0])), partial(relative_gap, tol)
    problem = Problem(w[:, None], np.ones(len(w)), loss, 1.0, residual, max_iter)
    problem.solve_in_memory(design, (y > 0).astype(np.intp), design.direct and not design.iterates)
    gap = 0.5 * float(np.vdot(problem.gradient, problem.gradient))
    return Solution(
        problem.w[:, 0], None, problem.objective, gap, problem.n_iter, problem.converged
    )


def _hinge(design, y, C, w, multipliers, hessian, tol, max_iter):
    """Minimise by an augmented Lagrangian: clipped quadratics around improving multipliers.

    The multipliers are feasible for the dual problem, so that the duality gap
    of the hinge itself decides when to stop. A large sigma needs few rounds but
    makes narrow quadratics, in which Newton steps may get stuck: it grows only
    while the gap falls slowly, and shrinks after a round that got stuck.
    """
    a = np.zeros(len(y)) if multipliers is None else multipliers
    sigma = 4.0 * C
    n_iter = stuck = 0
    best: Solution | None = None
    while n_iter < max_iter and stuck < 5:
        psi = ClippedQuadratic(sigma, cap=C, shift=a)
        inner = minimise(design, y, psi, w, hessian, 0.1 * tol, max_iter - n_iter)
        n_iter += max(1, inner.n_iter)
        v = design.adjoint(inner.dual)
        objective = 0.5 * float(inner.w @ inner.w)
        objective += _total_loss("hinge", C, y * design.margins(inner.w))
        gap = objective - (float(y @ inner.dual) - 0.5 * float(v @ v))
        slow = best is not None and gap > 0.2 * best.gap
        if best is None or gap < best.gap:
            converged = gap <= tol * objective
            best = Solution(inner.w, inner.dual, objective, max(gap, 0.0), n_iter, converged)
            if converged:
                break
        if inner.converged:
            w, a = inner.w, y * inner.dual
            sigma *= 5.0 if slow else 1.0
        else:
            w, a, sigma = best.w, y * best.dual, sigma / 25.0
            stuck += 1
    return replace(best, n_iter=n_iter)


def expand(paths, reduced, design, targets, values, loss, tol, margins=None):
    """Return solutions of a `reduced` design in the columns of the full one.

    Objectives and gaps are evaluated again there. There is one path for each problem on the
    same rows, whose labels are in `targets`; `margins` are those of `binary_path`.
    """
    W = np.column_stack([solution.w for path in paths for solution in path])
    W = reduced.expand(W, design)
    scores = design.margins(W)
    out = []
    for problem, (path, y) in enumerate(zip(paths, targets, strict=True)):
        exact = []
        for k, (solution, C) in enumerate(zip(path, values, strict=True)):
            column = problem * len(values) + k
            w = W[:, column]
            m = y * scores[:, column]
            if margins is not None:
                m += 1.0 - margins
            objective = 0.5 * float(w @ w) + _total_loss(loss, C, m)
            gap = max(objective - (solution.objective - solution.gap), 0.0)
            converged = gap <= tol * objective
            exact.append(replace(solution, w=w, objective=objective, gap=gap, converged=converged))
        out.append(exact)
    return out


def _total_loss(loss, C, m):
    if loss == "logistic":
        return C * float(np.logaddexp(0.0, -m).sum())
    slack = np.maximum(0.0, 1.0 - m)
    return C * float((slack**2 if loss == "squared_hinge" else slack).sum())


def least_squares(design: Design, targets, sigma: float) -> np.ndarray | None:
    """Return the ridge solutions that all classifiers can start from, one per column.

    They are the first Newton step from zero of the squared hinge with
    ``sigma = 2 C``, and share one factorisation. None if every Gram matrix is too large.
    """
    n, p = design.shape
    if design.keeps_row_gram and n < 2 * p:
        K = design.row_gram().copy()
        K.flat[:: n + 1] += 1.0 / sigma
        beta = cholesky_solve(K, np.column_stack(targets).astype(np.float64))
        return None if beta is None else design.adjoint(beta)
    if not design.direct or design.iterates:
        return None
    sums = np.column_stack([design.adjoint(signs.astype(np.float64)) for signs in targets])
    H = design.gram() * sigma
    H.flat[:: p + 1] += 1.0
    return cholesky_solve(H, sigma * sums)

"""Weights of kernels with the largest margin, by cutting planes.

The support vector machine on ``K = sum_m d_m K_m`` has the optimal value

    J(d) = max { sum_i alpha_i - 1/2 sum_m d_m c' K_m c },  c_i = y_i alpha_i,

over the alpha of its dual, which do not depend on d: J is a maximum of linear functions,
and its minimum over ``d >= 0, sum d = 1`` a linear programme with one row for each alpha
(Lanckriet et al., JMLR 5, 2004; Sonnenburg, Raetsch, Schaefer and Schoelkopf, "Large scale
multiple kernel learning", JMLR 7, 2006, Algorithm 1). A machine that is solved at some d
gives the next row. J of several binary problems is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog


@dataclass(frozen=True)
class MarginWeights:
    """Weights, a bound on how far J is above its minimum, relative to it, and the machines."""

    weights: np.ndarray
    gap: float
    n_iter: int


def margin_weights(
    grams: list[np.ndarray],
    machines: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    tol: float,
    max_iter: int,
) -> MarginWeights:
    """Minimise J to a relative gap of `tol`, in at most `max_iter` machines.

    `machines` solves all binary problems for a Gram matrix, and returns the rows of the
    support vectors and their coefficients ``y_i alpha_i``, shape (n_problems, n_support).
    """
    m = len(grams)
    weights = best = np.full(m, 1 / m)
    upper, lower, rows, offsets = np.inf, 0.0, [], []
    for _ in range(max_iter):
        K = sum(weight * gram for weight, gram in zip(weights, grams, strict=True) if weight > 0)
        support, coef = machines(K)
        part = np.ix_(support, support)
        offsets.append(float(np.abs(coef).sum()))
        rows.append([0.5 * float(np.vdot(coef @ gram[part], coef)) for gram in grams])
        value = offsets[-1] - float(weights @ rows[-1])
        if value < upper:
            upper, best = value, weights
        weights, lower = _cutting_plane(np.array(rows), np.array(offsets))
        if upper - lower <= tol * upper:
            break
    gap = max(upper - lower, 0.0) / max(upper, 1e-300)
    return MarginWeights(best, gap, len(rows))


def _cutting_plane(rows, offsets) -> tuple[np.ndarray, float]:
    """Minimise ``max_t offsets_t - rows_t . d`` over the simplex; return d and the minimum."""
    scale = max(float(np.abs(offsets).max()), 1e-300)
    m = rows.shape[1]
    solution = linprog(
        np.append(np.zeros(m), 1.0),
        A_ub=np.column_stack([-rows / scale, -np.ones(len(rows))]),
        b_ub=-offsets / scale,
        A_eq=[np.append(np.ones(m), 0.0)],
        b_eq=[1.0],
        bounds=[(0.0, None)] * m + [(None, None)],
        method="highs-ds",
    )
    weights = np.maximum(solution.x[:m], 0.0)
    return weights / weights.sum(), float(solution.fun) * scale

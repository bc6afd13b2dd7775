"""Fits of linear classifiers over blocks of rows, for one or several C together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kbench.arrays import Array, as_type, namespace, to_numpy
from kbench_learners._descent import (
    BinaryStacked,
    Descent,
    DeviceDescent,
    Logistic,
    Problem,
    Stacked,
    relative_gap,
)
from kbench_learners._design import Design
from kbench_learners._estimator import (
    LinearClassifier,
    check_classes,
    clones_along,
    coding_matrix,
)
from kbench_learners._paths import binary_path

if TYPE_CHECKING:
    from kbench.features import Sample

_START_TOL = 1e-4  # of the solution on the sample, which is only a start


def _begin(
    estimator: LinearClassifier,
    sample: Sample,
    values: Sequence[float],
    problems_of: Callable[..., list[list[Problem]]],
    finish: Callable[[LinearClassifier, list[Problem], float], None],
) -> Descent:
    """Begin a fit for several values of C, as it is described for `kbench.Learner`.

    ``problems_of(estimator, sample, values, bias)`` makes the problems of each C, in rising order
    of C, and ``finish(estimator, problems, bias)`` sets the attributes of a fitted estimator.
    """
    fitted = clones_along(estimator, "C", values)
    check_classes(estimator, sample.classes)
    classes, n_features = sample.classes, sample.Z.shape[1]
    # logistic regression does not scale its intercept
    bias = float(getattr(estimator, "intercept_scaling", 1.0)) if estimator.fit_intercept else 0.0
    rising = sorted(set(values))
    is_local = isinstance(sample.Z, np.ndarray) or hasattr(sample.Z, "indptr")
    # fits of the sample, which are starts only, are on the host
    local = sample if is_local else replace(sample, Z=to_numpy(sample.Z))
    problems = dict(zip(rising, problems_of(estimator, local, rising, bias), strict=True))

    def estimators() -> list[LinearClassifier]:
        for each in fitted:
            each.classes_, each.n_features_in_ = classes, n_features
            finish(each, problems[each.C], bias)
            each._warn_unless_converged()
        return fitted

    together = [problem for C in rising for problem in problems[C]]
    given = together, bias, sample, estimators, estimator._row_share
    return (Descent if is_local else DeviceDescent)(*given)


def set_solution(estimator: LinearClassifier, problems: list[Problem], bias: float) -> None:
    """Set the coefficients of an estimator, and whether its problems have converged."""
    W = np.hstack([problem.w for problem in problems])
    estimator.coef_ = W[: estimator.n_features_in_].T.copy()
    estimator.intercept_ = bias * W[-1]
    estimator.converged_ = all(problem.converged for problem in problems)
    estimator.n_iter_ = max(problem.n_iter for problem in problems)


def fit_squared_hinge(
    estimator: LinearClassifier, sample: Sample, values: Sequence[float]
) -> Descent:
    """Begin fits of the squared hinge, for each class against the rest or each pair of classes.

    All values of C and all problems advance together: the embedding of a block, which
    takes most of the time, serves all of them.
    """
    return _begin(estimator, sample, values, _hinge_problems, _set_hinge_solution)


def _hinge_problems(
    estimator: LinearClassifier, sample: Sample, values: list[float], bias: float
) -> list[list[Problem]]:
    coding = coding_matrix(len(sample.classes), estimator.multiclass)
    paths = [_hinge_path(estimator, sample, signs, values, bias) for signs in coding]
    return [list(problems) for problems in zip(*paths, strict=True)]


def _hinge_path(
    estimator: LinearClassifier, sample: Sample, signs: np.ndarray, values: list[float], bias: float
) -> Iterator[Problem]:
    """Yield the problems of one pair of sides, from the solutions on the sample."""
    y = signs[sample.codes]
    rows = np.flatnonzero(y)
    # a copy of all rows would take as much memory as the sample
    design, y = Design(sample.Z if y.all() else sample.Z[rows], bias), y[rows]
    scale = float(sample.counts @ np.abs(signs)) / len(rows)
    drawn = [scale * C for C in values]
    max_iter = estimator.max_iter
    solutions = binary_path(design, y, drawn, "squared_hinge", _START_TOL, max_iter)
    penalty = np.ones(sample.Z.shape[1] + 1)
    residual = partial(relative_gap, estimator.tol)
    for C, solution in zip(values, solutions, strict=True):
        w = solution.w if bias else np.append(solution.w, 0.0)
        yield Problem(w[:, None], penalty, SquaredHinge(C, signs), scale, residual, max_iter)


def _set_hinge_solution(each: LinearClassifier, problems: list[Problem], bias: float) -> None:
    set_solution(each, problems, bias)
    each.objective_ = np.array([problem.objective for problem in problems])
    each.gap_ = max([0.5 * float(np.vdot(p.gradient, p.gradient)) / p.objective for p in problems])


def fit_logistic(estimator: LinearClassifier, sample: Sample, values: Sequence[float]) -> Descent:
    """Begin fits of the logistic loss, multinomial or of each class against the rest."""
    return _begin(estimator, sample, values, _logistic_problems, set_solution)


def _logistic_problems(
    estimator: LinearClassifier, sample: Sample, values: list[float], _: float
) -> list[list[Problem]]:
    n = float(sample.counts.sum())
    scale = n / len(sample.codes)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        starting = clone(estimator).set_params(tol=_START_TOL)
        starts = starting.fit_path(sample.Z, sample.codes, [scale * C for C in values])
    found = []
    for C, start in zip(values, starts, strict=True):
        W = np.vstack([start.coef_.T, start.intercept_[None, :]])
        found.append(logistic_problems(estimator, C, W, len(sample.classes), n, scale))
    return found


def logistic_problems(
    estimator: LinearClassifier,
    C: float,
    W: np.ndarray,
    n_classes: int,
    n: float,
    scale: float,
    weights: np.ndarray | None = None,
) -> list[Problem]:
    """Return the joint problem of the classes, or one for each against the rest.

    They start at `W`, whose last row is that of the intercept, and have `n` rows. `weights` are
    those of the loss of each class.
    """

    def residual(_: float, g: np.ndarray) -> float:
        return float(np.abs(g).max()) / (estimator.tol * C * n)

    penalty = np.append(np.ones(len(W) - 1), 0.0 if estimator.fit_intercept else 1.0)
    options = scale, residual, estimator.max_iter
    costs = C * (np.ones(n_classes) if weights is None else weights)
    if n_classes > 2 and estimator.multiclass == "multinomial":
        return [Problem(W, penalty, Multinomial(costs), *options)]
    return [
        Problem(w[:, None], penalty, Logistic(costs, signs), *options)
        for w, signs in zip(W.T, coding_matrix(n_classes, "ovr"), strict=True)
    ]


class _StackedHinge(BinaryStacked):
    def _slack(self, scores: Array, members: Array) -> tuple[Array, Array]:
        xp, signs = namespace(scores), members @ self._signs
        return xp.clip(1.0 - signs * scores, 0.0, None) * xp.abs(signs), signs

    def of(self, scores: Array, members: Array) -> tuple[Array, Array]:
        slack, signs = self._slack(scores, members)
        costs = (members @ self._costs) * slack
        return namespace(scores).sum(costs * slack, axis=0), -2.0 * costs * signs

    def curvature(self, scores: Array, members: Array) -> Array:
        slack, _ = self._slack(scores, members)
        return 2.0 * (members @ self._costs) * as_type(slack > 0.0, np.float64)


@dataclass(frozen=True)
class SquaredHinge:
    """The loss ``C max(0, 1 - s f)^2`` of the classes with a sign s."""

    C: float
    coding: np.ndarray
    stacked: ClassVar = _StackedHinge

    def _slack(self, scores: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        signs = self.coding[codes]
        slack = np.maximum(0.0, 1.0 - signs * scores[:, 0])
        slack *= np.abs(signs)
        return slack, signs

    def of(self, scores: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        slack, signs = self._slack(scores, codes)
        return self.C * float(slack @ slack), (-2.0 * self.C * signs * slack)[:, None]

    def curvature(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        return 2.0 * self.C * (self._slack(scores, codes)[0] > 0.0)[:, None]


class _StackedMultinomial(Stacked):
    def _shares(self, scores: Array, members: Array) -> tuple[Array, Array]:
        """Return logarithms of the probabilities, shape (n_rows, n_problems, n_classes)."""
        xp = namespace(scores)
        scores = xp.reshape(scores, (scores.shape[0], -1, members.shape[1]))
        scores = scores - xp.max(scores, axis=2, keepdims=True)
        totals = xp.sum(xp.exp(scores), axis=2, keepdims=True)
        return scores - xp.log(totals), (members @ self._costs)[:, :, None]

    def of(self, scores: Array, members: Array) -> tuple[Array, Array]:
        xp, shape, members_of = namespace(scores), scores.shape, members[:, None, :]
        logs, costs = self._shares(scores, members)
        values = -xp.sum(xp.sum(costs * logs * members_of, axis=2), axis=0)
        return values, xp.reshape(costs * (xp.exp(logs) - members_of), shape)

    def curvature(self, scores: Array, members: Array) -> Array:
        logs, costs = self._shares(scores, members)
        shares = namespace(scores).exp(logs)
        return namespace(scores).reshape(costs * shares * (1.0 - shares), scores.shape)


@dataclass(frozen=True)
class Multinomial:
    """The loss ``-C log p(class)`` of probabilities proportional to exp of the scores.

    Each class has its `C`.
    """

    C: np.ndarray
    stacked: ClassVar = _StackedMultinomial

    def of(self, scores: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        derivatives = scores - scores.max(axis=1, keepdims=True)
        rows = np.arange(len(codes))
        costs, own = self.C[codes], derivatives[rows, codes]
        np.exp(derivatives, out=derivatives)
        totals = derivatives.sum(axis=1, keepdims=True)
        value = float(costs @ (np.log(totals[:, 0]) - own))
        derivatives *= costs[:, None] / totals
        derivatives[rows, codes] -= costs
        return value, derivatives

    def curvature(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        shares = softmax(scores, axis=1)
        return self.C[codes][:, None] * shares * (1.0 - shares)

"""Fits of linear classifiers over blocks of rows, for one or several C together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from kbench.arrays import as_type, namespace, to_numpy
from kbench.parameters import check_parameters
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
from kbench_learners._estimator import LinearClassifier, check_classes, coding_matrix
from kbench_learners._paths import binary_path

_START_TOL = 1e-4  # of the solution on the sample, which is only a start


class BlockFit:
    """A fit for several values of C, as it is described for `kbench.Learner`.

    A subclass makes the problems of each C in `_problems`, in rising order of C.
    """

    def __init__(self, estimator: LinearClassifier, sample: Any, values: Sequence[float]) -> None:
        self.fitted = [clone(estimator).set_params(C=C) for C in values]
        for each in self.fitted:
            check_parameters(each)
        check_classes(estimator, sample.classes)
        self._classes, self._n_features = sample.classes, sample.Z.shape[1]
        # logistic regression does not scale its intercept
        scaling = getattr(estimator, "intercept_scaling", 1.0)
        self._bias = float(scaling) if estimator.fit_intercept else 0.0
        rising = sorted(set(values))
        is_local = isinstance(sample.Z, np.ndarray) or hasattr(sample.Z, "indptr")
        # fits of the sample, which are starts only, are on the host
        local = sample if is_local else replace(sample, Z=to_numpy(sample.Z))
        self._problems = dict(zip(rising, self._begin(estimator, local, rising), strict=True))
        together = [problem for C in rising for problem in self._problems[C]]
        self._descent = (Descent if is_local else DeviceDescent)(together, self._bias, sample)

    def _begin(
        self, estimator: LinearClassifier, sample: Any, values: list[float]
    ) -> list[list[Problem]]:
        raise NotImplementedError

    @property
    def is_done(self) -> bool:
        """Whether no more passes are needed."""
        return self._descent.is_done

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices that are kept."""
        return self._descent.nbytes

    def add(self, Z: np.ndarray, codes: np.ndarray) -> None:
        """Take a block of rows and the numbers of their classes."""
        self._descent.add(Z, codes)

    def step(self) -> None:
        """End an epoch: all rows have been used."""
        self._descent.step()

    def estimators(self) -> list[LinearClassifier]:
        """Return the fitted estimators, in the order of the values."""
        for each in self.fitted:
            problems = self._problems[each.C]
            each.classes_, each.n_features_in_ = self._classes, self._n_features
            self._finish(each, problems)
            each._warn_unless_converged()
        return self.fitted

    def _finish(self, each: LinearClassifier, problems: list[Problem]) -> None:
        """Set the attributes of a fitted estimator."""
        set_solution(each, problems, self._bias)


def set_solution(estimator: LinearClassifier, problems: list[Problem], bias: float) -> None:
    """Set the coefficients of an estimator, and whether its problems have converged."""
    W = np.hstack([problem.w for problem in problems])
    estimator.coef_ = W[: estimator.n_features_in_].T.copy()
    estimator.intercept_ = bias * W[-1]
    estimator.converged_ = all(problem.converged for problem in problems)
    estimator.n_iter_ = max(problem.n_iter for problem in problems)


class SquaredHingeFit(BlockFit):
    """The squared hinge, for each class against the rest or for each pair of classes.

    All values of C and all problems advance together: the embedding of a block, which
    takes most of the time, serves all of them.
    """

    def _begin(
        self, estimator: LinearClassifier, sample: Any, values: list[float]
    ) -> list[list[Problem]]:
        coding = coding_matrix(len(sample.classes), estimator.multiclass)
        paths = [self._path(estimator, sample, signs, values) for signs in coding]
        return [list(problems) for problems in zip(*paths, strict=True)]

    def _path(
        self, estimator: LinearClassifier, sample: Any, signs: np.ndarray, values: list[float]
    ) -> Iterator[Problem]:
        """Yield the problems of one pair of sides, from the solutions on the sample."""
        y = signs[sample.codes]
        rows = np.flatnonzero(y)
        design, y = Design(sample.Z[rows], self._bias), y[rows]
        scale = float(sample.counts @ np.abs(signs)) / len(rows)
        drawn = [scale * C for C in values]
        max_iter = estimator.max_iter
        solutions = binary_path(design, y, drawn, "squared_hinge", _START_TOL, max_iter)
        penalty = np.ones(self._n_features + 1)
        residual = partial(relative_gap, estimator.tol)
        for C, solution in zip(values, solutions, strict=True):
            w = solution.w if self._bias else np.append(solution.w, 0.0)
            loss = SquaredHinge(C, signs)
            yield Problem(w[:, None], penalty, loss, scale, residual, max_iter)

    def _finish(self, each: LinearClassifier, problems: list[Problem]) -> None:
        super()._finish(each, problems)
        each.objective_ = np.array([problem.objective for problem in problems])
        gaps = [0.5 * float(np.vdot(p.gradient, p.gradient)) / p.objective for p in problems]
        each.gap_ = max(gaps)


class LogisticFit(BlockFit):
    """The logistic loss, multinomial or of each class against the rest."""

    def _begin(
        self, estimator: LinearClassifier, sample: Any, values: list[float]
    ) -> list[list[Problem]]:
        n = float(sample.counts.sum())
        scale = n / len(sample.codes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
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


@dataclass(frozen=True)
class SquaredHinge:
    """The loss ``C max(0, 1 - s f)^2`` of the classes with a sign s."""

    C: float
    coding: np.ndarray

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

    @staticmethod
    def stack(losses: Sequence[SquaredHinge], X: Any) -> Any:
        """Return the losses together, in the namespace of `X`."""
        return _StackedHinge(losses, X)


class _StackedHinge(BinaryStacked):
    def _slack(self, scores: Any, members: Any) -> tuple[Any, Any]:
        xp, signs = namespace(scores), members @ self._signs
        return xp.clip(1.0 - signs * scores, 0.0, None) * xp.abs(signs), signs

    def of(self, scores: Any, members: Any) -> tuple[Any, Any]:
        slack, signs = self._slack(scores, members)
        costs = (members @ self._costs) * slack
        return namespace(scores).sum(costs * slack, axis=0), -2.0 * costs * signs

    def curvature(self, scores: Any, members: Any) -> Any:
        slack, _ = self._slack(scores, members)
        return 2.0 * (members @ self._costs) * as_type(slack > 0.0, np.float64)


@dataclass(frozen=True)
class Multinomial:
    """The loss ``-C log p(class)`` of probabilities proportional to exp of the scores.

    Each class has its `C`.
    """

    C: np.ndarray

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

    @staticmethod
    def stack(losses: Sequence[Multinomial], X: Any) -> Any:
        """Return the losses together, in the namespace of `X`."""
        return _StackedMultinomial(losses, X)


class _StackedMultinomial(Stacked):
    def _shares(self, scores: Any, members: Any) -> tuple[Any, Any]:
        """Return logarithms of the probabilities, shape (n_rows, n_problems, n_classes)."""
        xp = namespace(scores)
        scores = xp.reshape(scores, (scores.shape[0], -1, members.shape[1]))
        scores = scores - xp.max(scores, axis=2, keepdims=True)
        totals = xp.sum(xp.exp(scores), axis=2, keepdims=True)
        return scores - xp.log(totals), (members @ self._costs)[:, :, None]

    def of(self, scores: Any, members: Any) -> tuple[Any, Any]:
        xp, shape, members_of = namespace(scores), scores.shape, members[:, None, :]
        logs, costs = self._shares(scores, members)
        values = -xp.sum(xp.sum(costs * logs * members_of, axis=2), axis=0)
        return values, xp.reshape(costs * (xp.exp(logs) - members_of), shape)

    def curvature(self, scores: Any, members: Any) -> Any:
        logs, costs = self._shares(scores, members)
        shares = namespace(scores).exp(logs)
        return namespace(scores).reshape(costs * shares * (1.0 - shares), scores.shape)

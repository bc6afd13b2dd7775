"""Minimisation of penalised linear problems over blocks of rows, which are seen in passes.

A pass gives every problem its value and its gradient at one point. Limited-memory steps
(L-BFGS) are taken with the Hessian of a sample of the rows as the first matrix, and begin
at the solution on this sample. Where the sample has enough rows, few passes are enough, and
none of them needs products of the columns with each other. Where a step falls short of
what was expected, the next pass adds up the Hessian of all rows, as Newton's method does.

Sources: Nocedal and Wright, "Numerical optimization" (2006), algorithm 7.4, for the steps;
Hager and Zhang (SIAM J. Optim. 16, 2005) for the conditions on their length, which hold
where rounding hides the differences of values.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy.special import expit

from kbench.arrays import (
    Array,
    as_type,
    diagonal,
    empty,
    indicators,
    like,
    namespace,
    take,
    to_numpy,
)
from kbench_learners._design import Design
from kbench_learners._newton import cholesky_solver

if TYPE_CHECKING:
    from kbench.features import Sample

_KEPT_STEPS = 20
_MAX_TRIALS = 12
_PROGRESS = 0.1  # of the slope in a step, above which the Hessian is not good enough
_SAMPLE_ROWS = 4096  # that are multiplied together
_PATIENCE = 30  # passes without progress, where a pass embeds all rows again
_PATIENCE_IN_MEMORY = 500
_DEVICE_BYTES = 2**30  # of Hessians that are kept on a device
_MAX_FACTOR_ENTRIES = 20_000_000  # of all factors that a problem in memory keeps

Solve = Callable[..., np.ndarray]


class Loss(Protocol):
    """A loss of the scores of rows with class codes."""

    def of(self, scores: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum over rows, and its derivatives by the scores, shape (n_rows, k)."""

    def curvature(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the second derivatives by each score alone, shape (n_rows, k)."""

    stacked: ClassVar[Any]
    """Class of several such losses together."""


class Problem:
    """One problem in `w`, shape (n_columns, k), and its state between passes.

    The objective is ``sum(penalty * w**2) / 2`` and the loss of all rows; their scores are
    the rows times `w`. `scale` is the number of rows for each row of the sample. `residual`
    of the objective and the gradient is at most 1 where the problem counts as solved.
    """

    def __init__(
        self,
        w: np.ndarray,
        penalty: np.ndarray,
        loss: Loss,
        scale: float,
        residual: Callable[[float, np.ndarray], float],
        max_iter: int,
    ) -> None:
        self.w, self.loss, self.scale = w, loss, scale
        self.objective, self.gradient = np.inf, np.zeros_like(w)
        self.n_iter = 0
        self.converged = self.done = self.needs_hessian = False
        self._penalty, self._residual = penalty[:, None], residual
        self._solve: Solve | None = None
        self._max_iter = max_iter
        self._base = w
        self._direction: np.ndarray | None = None
        self._slope, self._length, self._trials = 0.0, 1.0, 0
        self._steps: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_KEPT_STEPS)
        self._best, self._best_iter, self._renewed = np.inf, 0, 0
        self._patience, self._is_scaled, self._keeps = _PATIENCE, False, False
        self._kept: list[np.ndarray] = []
        self._renewal_steps = 0.0 if w.shape[1] == 1 else _KEPT_STEPS

    @property
    def nbytes(self) -> int:
        """Bytes of a Hessian, as blocks of its diagonal."""
        return 8 * len(self.w) * self.w.size

    @property
    def is_prepared(self) -> bool:
        """Whether the problem has a first Hessian."""
        return self._solve is not None

    def prepare(self, hessians: list[np.ndarray]) -> None:
        """Take the Hessians of the loss on the sample, by each column of `w`."""
        self._solve = make_solver(hessians, self._penalty)

    def follow(self, other: "Problem | None") -> None:
        """Begin with what `other` has ended with, and keep this for another one.

        These are the Hessians and the changes of the gradient by the last steps, as a loss
        with another C has them.
        """
        self._keeps = 2 * self.w.size * len(self.w) <= _MAX_FACTOR_ENTRIES
        # a diagonal takes one product, and another C has other weights of the rows
        if other is not None and other._kept and other._kept[0].ndim > 1:
            factor = float(self.loss.C[0] / other.loss.C[0])
            self._kept = other._kept
            for H in self._kept:
                H *= factor
            self._solve = make_solver(self._kept, self._penalty)
            for step, change, _ in other._steps:
                penalised = self._penalty * step
                self._remember(step, penalised + factor * (change - penalised))

    def solve_in_memory(self, design: Design, codes: np.ndarray, is_factored: bool) -> bool:
        """Take steps on rows in memory until the problem is done.

        The first matrix is the diagonal of the Hessian, and the Hessian once a factorisation
        takes no longer than the steps so far. Where the Hessian `is_factored`, as it had to be
        for a start nearby, it is the first matrix, unless the problem follows another one.
        Returns whether it was factorised.
        """
        self._patience, self.needs_hessian = _PATIENCE_IN_MEMORY, not self.is_prepared
        # small factorisations take longer than their operations
        self._renewal_steps = max(self._renewal_steps, 2.0 + design.factor_steps)
        fits = self.w.size * len(self.w) <= _MAX_FACTOR_ENTRIES
        is_factored = is_factored and fits
        while not self.done:
            if fits and not is_factored and self.n_iter >= design.factor_steps:
                is_factored = self.needs_hessian = True
            scores = design.margins(self.w)
            # the Hessian of the first steps is too large where losses have become small
            self._is_scaled = not is_factored or self.w.shape[1] > 1
            loss, derivatives = self.loss.of(scores, codes)
            hessians: Iterable[np.ndarray] = ()
            if is_factored or not self.is_prepared:
                hessians = self._hessians(design, codes, scores, is_factored)
            self.advance(loss, design.adjoint(derivatives), hessians)
        return is_factored

    def _hessians(
        self, design: Design, codes: np.ndarray, scores: np.ndarray, is_factored: bool
    ) -> Iterator[np.ndarray]:
        for weights in self.loss.curvature(scores, codes).T:
            yield design.gram(weights=weights) if is_factored else design.squared_columns(weights)

    def advance(self, loss: float, adjoint: np.ndarray, hessians: Iterable[np.ndarray]) -> None:
        """Take the sums of a pass at `w`, and move `w` to the point of the next one.

        `hessians` are those of the loss by each column of `w`, or their diagonals. They are
        used if they are needed, and none may be given where they are not.
        """
        self.n_iter += 1
        penalised = self._penalty * self.w
        objective, gradient = 0.5 * float(np.vdot(self.w, penalised)) + loss, penalised + adjoint
        residual = self._residual(objective, gradient)
        # the residual may grow for many steps while the objective falls
        if residual < 0.9 * self._best or objective < 0.999 * self.objective:
            self._best, self._best_iter = min(residual, self._best), self.n_iter
        self.converged = residual <= 1.0
        if self.converged or self._direction is None or self._is_acceptable(objective, gradient):
            if self._direction is not None:
                self._remember(self.w - self._base, gradient - self.gradient)
            self.objective, self.gradient, self._base = objective, gradient, self.w
            if not self.converged:
                self._set_direction(hessians)
        else:
            self._shorten(gradient)
        # rounding errors may hide the rest of the way
        is_stuck = self._trials > _MAX_TRIALS or self.n_iter - self._best_iter >= self._patience
        self.done = self.converged or is_stuck or self.n_iter >= self._max_iter
        if self.done:
            self.w, self._solve = self._base, None
            if not self._keeps:
                self._steps.clear()

    def _is_acceptable(self, objective: float, gradient: np.ndarray) -> bool:
        slope = float(np.vdot(gradient, self._direction))
        if objective <= self.objective + 1e-4 * self._length * self._slope:
            return True
        is_close = objective <= self.objective + 1e-6 * abs(self.objective)
        return is_close and abs(slope) <= 0.8 * abs(self._slope)

    def _remember(self, step: np.ndarray, change: np.ndarray) -> None:
        curvature = float(np.vdot(step, change))
        if curvature > 0.0:
            self._steps.append((step, change, curvature))

    def _set_direction(self, hessians: Iterable[np.ndarray]) -> None:
        expected, is_new = self._slope, bool(hessians) and self.needs_hessian
        if is_new:
            if self._keeps:
                hessians = self._kept = list(hessians)
            self._solve, self._renewed = make_solver(hessians, self._penalty), self.n_iter
            if self.w.shape[1] == 1:  # otherwise blocks of the Hessian are missing
                self._steps.clear()
        self._direction = -self._inverse_times(self.gradient)
        self._slope = float(np.vdot(self.gradient, self._direction))
        self._length, self._trials = 1.0, 0
        self.needs_hessian = self._slope < _PROGRESS * expected < 0.0 and self._may_renew
        if self.needs_hessian and hessians and not is_new:
            self._set_direction(hessians)
        self.w = self._base + self._direction

    @property
    def _may_renew(self) -> bool:
        """Return whether a new Hessian may help: the steps since the last one take longer.

        That of several columns is never complete.
        """
        return self.n_iter - self._renewed >= self._renewal_steps

    def _shorten(self, gradient: np.ndarray) -> None:
        """Try the zero of the slope between both ends, as if it were linear."""
        slope = float(np.vdot(gradient, self._direction))
        share = self._slope / (self._slope - slope) if slope > self._slope else 0.1
        self._length *= min(max(share, 0.1), 0.9)
        self._trials += 1
        self.needs_hessian = self._may_renew
        self.w = self._base + self._length * self._direction

    def _inverse_times(self, gradient: np.ndarray) -> np.ndarray:
        """Apply the inverse Hessian, as the last steps have changed it (two loops)."""
        q = gradient.copy()
        shares = []
        for step, change, curvature in reversed(self._steps):
            share = float(np.vdot(step, q)) / curvature
            q -= share * change
            shares.append(share)
        assert self._solve is not None
        if self._is_scaled and self._steps:
            step, change, curvature = self._steps[-1]
            q, changed = self._solve(q, change)
            q *= curvature / float(np.vdot(change, changed))
        else:
            (q,) = self._solve(q)
        for (step, change, curvature), share in zip(self._steps, reversed(shares), strict=True):
            q += (share - float(np.vdot(change, q)) / curvature) * step
        return q


class Stacked:
    """Losses of several problems, computed together in the namespace of `X`.

    `of` gets scores, shape (n_rows, n_columns), and indicators of the classes of the rows, and
    returns the sum of each problem and derivatives; `curvature` second derivatives.
    """

    def __init__(self, losses: Sequence[Loss], X: Array) -> None:
        shape = np.shape(getattr(losses[0], "coding", losses[0].C))
        self._costs = like(np.column_stack([np.broadcast_to(each.C, shape) for each in losses]), X)


class BinaryStacked(Stacked):
    """Losses of the margins of two sides. Each class has a sign in each problem."""

    def __init__(self, losses: Sequence[Loss], X: Array) -> None:
        super().__init__(losses, X)
        self._signs = like(np.column_stack([each.coding for each in losses]), X)


class _StackedLogistic(BinaryStacked):
    def of(self, scores: Array, members: Array) -> tuple[Array, Array]:
        signs, costs = members @ self._signs, members @ self._costs
        margins = signs * scores
        values = namespace(scores).sum(costs * _log_exp(-margins), axis=0)
        return values, -costs * signs * _share(-margins)

    def curvature(self, scores: Array, members: Array) -> Array:
        shares = _share(scores)
        return (members @ self._costs) * shares * (1.0 - shares)


def _log_exp(X: Array) -> Array:
    """``log(1 + exp(x))``."""
    xp = namespace(X)
    return xp.logaddexp(xp.zeros_like(X), X)


def _share(X: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    return namespace(X).exp(-_log_exp(-X))


@dataclass(frozen=True)
class Logistic:
    """The loss ``C log(1 + exp(-s f))``; each class has its `C`."""

    C: np.ndarray
    coding: np.ndarray
    stacked: ClassVar = _StackedLogistic

    def of(self, scores: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        signs, costs = self.coding[codes], self.C[codes]
        margins = signs * scores[:, 0]
        # a third of the time of logaddexp and expit, and no exponential overflows
        small, below = np.exp(-np.abs(margins)), np.minimum(-margins, 0.0)
        value = float(costs @ (np.log1p(small) - (margins + below)))
        return value, (-costs * signs * np.exp(below) / (1.0 + small))[:, None]

    def curvature(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        shares = expit(scores)
        return self.C[codes][:, None] * shares * (1.0 - shares)


def relative_gap(tol: float, objective: float, g: np.ndarray) -> float:
    """Return the duality gap over `tol` times the objective, if all coefficients are penalised."""
    return 0.5 * float(np.vdot(g, g)) / (tol * objective)


class Descent:
    """Problems on the same rows that advance together, one step a pass.

    The rows have a last column `bias`, which is not given; without it `bias` is 0.
    `sample` has ``Z`` and ``codes`` of some rows, of which `row_share` is taken as many as of all
    rows at once. At most `max_bytes` of Hessians are kept,
    but one at least: other problems wait until some are done. `estimators` returns what was
    fitted.
    """

    def __init__(
        self,
        problems: list[Problem],
        bias: float,
        sample: "Sample",
        estimators: Callable[[], list[Any]],
        row_share: float = 1.0,
        max_bytes: int = 2**28,
    ) -> None:
        self.problems, self.estimators = problems, estimators
        self._step = max(1, int(row_share * _SAMPLE_ROWS))
        self._bias, self._sample, self._max_bytes = bias, sample, max_bytes
        self._begin_pass()

    @property
    def is_done(self) -> bool:
        """Whether all problems are done."""
        return not self._running

    @property
    def nbytes(self) -> int:
        """Bytes of the Hessians, and of the sample as long as a problem needs it."""
        Z = None if self._sample is None else self._sample.Z
        of_sample = 0 if Z is None else 12 * Z.nnz if hasattr(Z, "indptr") else Z.nbytes
        return int(of_sample) + sum(problem.nbytes for problem in self._running)

    def _next(self) -> list[Problem]:
        """Return the first problems that are not done, as many as may be kept."""
        found, size = [], 0
        for problem in self.problems:
            if not problem.done:
                size += problem.nbytes
                if found and size > self._max_bytes:
                    break
                found.append(problem)
        return found

    def _begin_pass(self) -> None:
        self._running = self._next()
        for problem in self._running:
            if not problem.is_prepared:
                problem.prepare(self._sampled_hessians(problem))
        if all(problem.is_prepared or problem.done for problem in self.problems):
            self._sample = None
        if not self._running:
            return
        self._W = np.hstack([problem.w for problem in self._running])
        self._losses = self._put(np.zeros(len(self._running)))
        self._adjoint = self._put(np.zeros_like(self._W))
        self._hessians = [
            self._zeros(problem) if problem.needs_hessian else [] for problem in self._running
        ]

    def _put(self, values: np.ndarray) -> Array:
        """Return an array where the blocks are."""
        return values

    def _zeros(self, problem: Problem) -> list[Array]:
        size, n = problem.w.shape
        return [self._put(np.zeros((size, size))) for _ in range(n)]

    def _sampled_hessians(self, problem: Problem) -> list[Array]:
        """Return the Hessians of a problem's loss, from the sample."""
        hessians, curvature = self._zeros(problem), self._curvature(problem)
        n = len(self._sample.codes)
        for start in range(0, n, self._step):
            part = slice(start, min(n, start + self._step))
            Z = take(self._sample.Z, part)
            weights = problem.scale * curvature(Z, self._sample.codes[part])
            for number, H in enumerate(hessians):
                self._add_gram(H, Z, weights[:, number])
        return hessians

    def _curvature(self, problem: Problem) -> Callable[[Array, np.ndarray], Array]:
        """Return the second derivatives of a loss as a function of rows and their codes."""
        w, constant = problem.w[:-1], self._bias * problem.w[-1]
        return lambda Z, codes: problem.loss.curvature(Z @ w + constant, codes)

    def add(self, Z: np.ndarray, codes: np.ndarray) -> None:
        """Add a block of rows to the sums of a pass, which are in float64."""
        scores = (Z @ self._W[:-1].astype(Z.dtype, copy=False)).astype(np.float64, copy=False)
        scores += self._bias * self._W[-1]
        derivatives = np.empty_like(scores)
        first = 0
        for number, problem in enumerate(self._running):
            columns = slice(first, first + problem.w.shape[1])
            loss, derivatives[:, columns] = problem.loss.of(scores[:, columns], codes)
            self._losses[number] += loss
            if problem.needs_hessian:
                curvature = problem.loss.curvature(scores[:, columns], codes)
                for H, weights in zip(self._hessians[number], curvature.T, strict=True):
                    self._add_gram(H, Z, weights)
            first = columns.stop
        self._adjoint[:-1] += Z.T @ derivatives.astype(Z.dtype, copy=False)
        self._adjoint[-1] += self._bias * derivatives.sum(axis=0)

    def _add_gram(self, H: np.ndarray, Z: Array, weights: np.ndarray) -> None:
        rows = np.flatnonzero(weights)
        if hasattr(Z, "indptr"):
            scaled = Z[rows].multiply(weights[rows, None]).tocsr()
            H[:-1, :-1] += (Z[rows].T @ scaled).toarray()
            H[:-1, -1] += self._bias * np.asarray(scaled.sum(axis=0)).ravel()
        else:
            # the constant column is not appended: its products are sums
            scaled = Z[rows] * np.sqrt(weights[rows, None]).astype(Z.dtype)
            H[:-1, :-1] += scaled.T @ scaled
            H[:-1, -1] += self._bias * (Z.T @ weights.astype(Z.dtype))
        H[-1, -1] += self._bias**2 * weights.sum()

    def step(self) -> None:
        """End a pass: every problem takes a step."""
        first, adjoint = 0, to_numpy(self._adjoint)
        sums = zip(self._running, to_numpy(self._losses), self._hessians, strict=True)
        for problem, loss, hessians in sums:
            last = first + problem.w.shape[1]
            problem.advance(float(loss), adjoint[:, first:last], hessians)
            first = last
        self._begin_pass()


class DeviceDescent(Descent):
    """A descent whose blocks and sums are on a device; steps are taken on the host.

    The losses of all problems are computed together: each call of a function takes a while on
    a GPU, however few numbers it computes.
    """

    def __init__(self, problems: list[Problem], bias: float, sample: "Sample", *given: Any) -> None:
        self._n_classes, self._like = len(sample.classes), empty((0,), sample.Z)
        super().__init__(problems, bias, sample, *given, max_bytes=_DEVICE_BYTES)

    def _begin_pass(self) -> None:
        super()._begin_pass()
        if self._running:
            self._on_device = self._stack(self._running)

    def _put(self, values: np.ndarray) -> Array:
        return like(values, self._like)

    def _stack(self, problems: list[Problem]) -> tuple[Stacked, Array, Array]:
        """Return the loss of problems together, their columns and values of the constant."""
        W = np.hstack([problem.w for problem in problems])
        loss = problems[0].loss.stacked([problem.loss for problem in problems], self._like)
        return loss, self._put(W[:-1]), self._put(self._bias * W[-1])

    def _curvature(self, problem: Problem) -> Callable[[Array, np.ndarray], Array]:
        loss, W, constants = self._stack([problem])
        return lambda Z, codes: loss.curvature(
            Z @ W + constants, indicators(codes, self._n_classes, Z)
        )

    def add(self, Z: Array, codes: np.ndarray) -> None:
        """Add a block of rows to the sums of a pass, which are in float64."""
        xp = namespace(Z)
        loss, W, constants = self._on_device
        scores = as_type(Z @ like(W, Z), np.float64) + constants
        members = indicators(codes, self._n_classes, self._like)
        values, derivatives = loss.of(scores, members)
        self._losses += values
        self._adjoint[:-1, ...] += as_type(Z.T @ like(derivatives, Z), np.float64)
        self._adjoint[-1, ...] += self._bias * xp.sum(derivatives, axis=0)
        if any(problem.needs_hessian for problem in self._running):
            curvature, first = loss.curvature(scores, members), 0
            for problem, hessians in zip(self._running, self._hessians, strict=True):
                for number, H in enumerate(hessians, first):
                    self._add_gram(H, Z, curvature[:, number])
                first += problem.w.shape[1]

    def _add_gram(self, H: Array, Z: Array, weights: Array) -> None:
        xp = namespace(Z)
        (rows,) = xp.nonzero(weights)
        Z, weights = xp.take(Z, rows, axis=0), xp.take(weights, rows, axis=0)
        scaled = Z * like(xp.sqrt(weights)[:, None], Z)
        H[:-1, :-1] += as_type(scaled.T @ scaled, np.float64)
        H[:-1, -1] += self._bias * as_type(Z.T @ like(weights, Z), np.float64)
        H[-1, :-1] = H[:-1, -1]
        H[-1, -1] += self._bias**2 * xp.sum(weights)


def make_solver(hessians: Iterable[np.ndarray], penalty: np.ndarray) -> Solve:
    """Return a function that solves with the Hessians of a loss and its penalty, for gradients.

    Each is that of one column, of which the upper triangle is read, or its diagonal. Of
    several columns the sum of a row stays zero: the same change of all scores changes no
    multinomial loss, whose Hessian is zero along it.
    """
    solvers = [_solver(H, penalty.ravel()) for H in hessians]

    def solve(*gradients: np.ndarray) -> np.ndarray:
        # a factor is read from memory once for all gradients
        columns = np.stack(gradients, axis=-1).swapaxes(0, 1)
        found = np.array([solver(each) for solver, each in zip(solvers, columns, strict=True)])
        if len(solvers) > 1:
            found -= found.mean(axis=0)
        return np.ascontiguousarray(found.transpose(2, 1, 0))

    return solve


def _solver(H: Array, penalty: np.ndarray) -> Solve:
    """Return what solves with a Hessian or its diagonal, and a penalty, for one column.

    Sums of float32 may be indefinite without a larger diagonal.
    """
    raised = (H if H.ndim == 1 else diagonal(H)) + penalty
    largest = float(raised.max())
    # a column without penalty and without curvature
    raised = np.where(raised > 0.0, raised, 1.0)
    if H.ndim == 1:
        return lambda G: G / raised[:, None]
    for shift in (0.0, 1e-7, 1e-5, 1e-3, 1e-1):
        solve = cholesky_solver(H, raised + shift * largest)
        if solve is not None:
            return lambda G, solve=solve: to_numpy(solve(like(G, H)))
    raise np.linalg.LinAlgError("the Hessian is not positive definite")

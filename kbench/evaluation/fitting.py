"""One method, fitted on the training set: in memory, from sums, or in passes over blocks."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbench.arrays import to_numpy
from kbench.evaluation.block_fits import BlockFits
from kbench.evaluation.checked_predictions import (
    FittedLearner,
    FittedMap,
    Predictions,
    check_embedding,
    predict_all,
)
from kbench.evaluation.embedding import Embedding, Fitting, has_converged, needs_blocks
from kbench.evaluation.lazy_rows import BLOCK_ROWS, Matrix, Rows, is_sparse, whole
from kbench.evaluation.passes import Pass, Passes, fit_from_sums, fit_map, pass_over
from kbench.evaluation.specs import Candidate, Fit
from kbench.evaluation.targets import Scale
from kbench.evaluation.timing import Clock, Run, Stopwatch, Timed, once, time_step, times
from kbench.records import TaskType

MEASURED_ROWS = 1000
"""Rows that the metrics of plugins get where the embedding is not held as one matrix."""


@dataclass(frozen=True)
class FittedMethod:
    """A candidate, fitted on the training set or on some of its rows."""

    embedding: Embedding
    """Preprocessing and map."""

    learner: FittedLearner
    scale: Scale
    task: TaskType
    converged: bool

    X: Matrix
    y: np.ndarray
    """Preprocessed training inputs and their targets on the scale: all, or a sample."""

    transform: Clock
    solving: Clock
    """Times of the embedding of the training set, and of the fit of the learner."""

    caught: Sequence[warnings.WarningMessage] = ()
    """Warnings of the fit of the learner."""

    notes: Sequence[str] = ()

    is_in_blocks: bool = False
    """Whether the learner was fitted over blocks."""

    in_search: bool = False
    """Whether the search has made the pass that the learner was fitted from."""

    n_embedded: int = 0
    """Training rows that were embedded in blocks after the search."""

    default: FittedLearner | None = None
    """Learner of the default candidate, if it was fitted on the same embedding."""

    def predict(self, X: Matrix | Rows) -> Predictions:
        """Predict rows, as the learner does: numbers are standardised."""
        with warnings.catch_warnings(action="ignore"):
            if not self._takes_blocks(X):
                return self._predictions(self.learner, self.embedding.embed_all(X))
            blocks = self.embedding.embed_blocks(X, np.arange(X.shape[0]), Stopwatch())
            return Predictions.join([self._predictions(self.learner, Z) for _, Z in blocks])

    def _takes_blocks(self, X: Matrix | Rows) -> bool:
        return self.is_in_blocks or (needs_blocks(X) and self.embedding.allows_blocks(X))

    def _predictions(self, learner: FittedLearner, Z: Matrix) -> Predictions:
        return predict_all(learner, Z, learner.predict(Z), self.task)

    def test(self, X_test: Matrix | Rows) -> Tested:
        """Predict the test set and measure its time, and the sizes of the model."""
        if self._takes_blocks(X_test):
            return self._test_in_blocks(X_test)
        map_, learner = self.embedding.map_, self.learner
        X_test = self.embedding.steps.transform(whole(X_test))
        with warnings.catch_warnings(record=True, action="always") as caught:
            Z = time_step(lambda: map_.transform(X_test))
            check_embedding(Z.value, X_test.shape[0], self.embedding.label)
            predicted = time_step(lambda: learner.predict(Z.value))
        predictions, default = predict_all(learner, Z.value, predicted.value, self.task), None
        if self.default is not None:
            with _ignore_errors():
                default = self._predictions(self.default, Z.value)
        return self._measure(X_test, Z.value, (Z, predicted), predictions, default, caught)

    def _test_in_blocks(self, X_test: Matrix | Rows) -> Tested:
        shared, learners = self.embedding, [self.learner]
        if self.default is not None:
            learners.append(self.default)
        embedding, predicting = Stopwatch(shared.device.synchronise), Stopwatch()
        predictions_of: list[list[Predictions]] = [[] for _ in learners]
        for _, Z in shared.embed_blocks(X_test, np.arange(X_test.shape[0]), embedding):
            for several, each in zip(predictions_of, learners, strict=True):
                with predicting if each is self.learner else Stopwatch():
                    predicted = each.predict(Z)
                several.append(predict_all(each, Z, predicted, self.task))
        predictions, *default = [Predictions.join(several) for several in predictions_of]
        first = X_test[:MEASURED_ROWS]
        Z = shared.embed(first)
        return self._measure(
            shared.steps.transform(first),
            Z if is_sparse(Z) else to_numpy(Z),
            (embedding, predicting),
            predictions,
            default[0] if default else None,
        )

    def _measure(
        self,
        X: Matrix,
        Z: Matrix,
        clocks: tuple[Clock, Clock],
        predictions: Predictions,
        default: Predictions | None,
        caught: Sequence[warnings.WarningMessage] = (),
    ) -> Tested:
        shared = self.embedding
        converged = self.converged and has_converged(self.learner, caught)
        metrics = {
            **times(shared.fit, self.transform, self.solving, *clocks),
            **sizes(shared.host_map, self.learner, Z),
        }
        if not shared.device.is_host:
            moved = [getattr(clock, "apart", 0.0) for clock in (self.transform, *clocks)]
            metrics["transfer_time_s"] = shared.transfer_s + sum(moved)
        if self.is_in_blocks:
            metrics["shared_pass"] = float(self.in_search)
        notes = [*shared.notes, *_messages([*shared.caught, *self.caught, *caught], converged)]
        notes = [*self.notes, *notes] if self.is_in_blocks else [*notes, *self.notes]
        return Tested(predictions, default, X, Z, metrics, notes, converged)


@dataclass(frozen=True)
class Tested:
    """Predictions of a fitted method for the test set."""

    predictions: Predictions
    """As the learner returns them."""

    default: Predictions | None
    """Those of the default candidate, if it was fitted on the same embedding."""

    X: Matrix
    Z: Matrix
    """Preprocessed and embedded test inputs: all, or the first."""

    metrics: dict[str, float]
    """Times and sizes."""

    notes: list[str]
    converged: bool


def sizes(map_: FittedMap, learner: FittedLearner, Z: Matrix) -> dict[str, float]:
    """Count features, non-zeros per row of the embedding, and what the model stores."""
    n_rows, n_components = Z.shape
    nnz = Z.nnz if hasattr(Z, "nnz") else int(np.count_nonzero(Z))
    return {
        "n_components": float(n_components),
        "nnz_per_row": nnz / n_rows,
        "n_stored_floats": float(count_stored_numbers([map_, learner])),
    }


def count_stored_numbers(fitted: Any) -> int:
    """Count the array elements that fitted estimators store, without zeros of sparse ones.

    Attributes, lists, tuples and dicts are followed; the inside of compiled objects
    (a k-d tree) is not counted.
    """
    seen: set[int] = set()
    waiting, count = [fitted], 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            count += value.size * len(value.dtype.names or (None,))
        elif hasattr(value, "indptr"):
            count += value.nnz
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type):
            waiting.extend(vars(value).values())
    return count


def fit(
    fitting: Fitting,
    candidate: Candidate,
    run: Run = once,
    passed: Pass | None = None,
    default: Candidate | None = None,
) -> FittedMethod:
    """Fit a candidate on the training set, as its protocol and its size require.

    `passed` has the sums of its embedding, if the search took them. The learner of the `default`
    candidate is fitted too, untimed, if it has the same preprocessing and map.
    """
    if default is not None and default.map_key != candidate.map_key:
        default = None
    if passed is not None:
        method = _fit_from_sums(fitting, candidate, passed, run, default)
        return replace(method, in_search=True, n_embedded=0)
    shared, X, is_large = fit_map(fitting, [candidate], run)
    if not is_large:
        method, notes = fit_in_memory(fitting, candidate, None, (shared, X), run, default), []
        if fitting.protocol.block_dtype != "float64":
            notes = ["float64 instead of float32: the embedding is one matrix"]
        if fitting.protocol.device != "cpu":
            reason = fitting.place([candidate])[1] or "the map needs all rows together"
            notes.append(f"computed on the host, not on the device: {reason}")
        return replace(method, notes=notes)
    args = fitting, [candidate], [np.arange(len(fitting.data.y))]
    if fitting.learner.all_have("fit_sums", [candidate]):
        return _fit_from_sums(fitting, candidate, pass_over(shared, *args), run, default)
    fits = BlockFits(shared)
    ((fit,),) = fits.fit(*args)
    if fits.begun_on:
        fits.notes.append(f"begun on a sample of {fits.begun_on:,} rows")
    return _make_block_method(fits, fitting, fit, fits.solving, "fitted in passes")


def fit_in_memory(
    fitting: Fitting,
    candidate: Candidate,
    rows: np.ndarray | None = None,
    fitted_map: tuple[Embedding, Matrix | None] | None = None,
    run: Run = once,
    default: Candidate | None = None,
) -> FittedMethod:
    """Fit a candidate on some rows, or all, with the embedding as one matrix.

    Preprocessing and map are fitted too, unless they are given in `fitted_map`, which may have the
    preprocessed rows too. The `default` candidate has the same ones.
    """
    fitting = fitting.select(rows)
    data = fitting.data
    embedding, X = fitted_map or Embedding.fit_rows(fitting, candidate, run)
    scale, y = data.scale_targets()
    measured = _sample(embedding, fitting) if X is None else (X, y)

    def fitted(chosen: Candidate) -> FittedLearner:
        return fitting.learner.fit(chosen.learner, fitting.learner_seed, Z.value, y, data.weight)

    with warnings.catch_warnings(record=True, action="always") as caught:
        embed = embedding.map_.transform
        Z = run(lambda: embedding.embed_all(data.X, True) if X is None else embed(X))
        check_embedding(Z.value, len(y), embedding.label)
        learner = run(lambda: fitted(candidate))
    other = None
    if default is not None:
        with _ignore_errors():
            other = fitted(default)
    if scale.log is not None:
        scale = scale.smeared(y - learner.value.predict(Z.value), data.weight)
    converged = embedding.converged and has_converged(learner.value, caught)
    return FittedMethod(
        embedding,
        learner.value,
        scale,
        data.task,
        converged,
        *measured,
        replace(Z, value=None),  # the embedding is not held any longer
        learner,
        caught,
        default=other,
    )


def _fit_from_sums(
    fitting: Fitting, candidate: Candidate, passed: Pass, run: Run, default: Candidate | None
) -> FittedMethod:
    """Fit the learner from the sums of one embedding."""
    sums = passed.leave_out(None, np.arange(len(fitting.data.y)))

    def fitted(chosen: Candidate) -> Fit:
        return fit_from_sums(fitting.learner, sums, [chosen], fitting.learner_seed)[0]

    solved = run(lambda: fitted(candidate))
    other = None if default is None else fitted(default)[0]
    solving = Timed(None, passed.solving.wall + solved.wall, passed.solving.cpu + solved.cpu)
    method = _make_block_method(passed, fitting, solved.value, solving, "fitted from sums")
    return replace(method, default=other)


def _make_block_method(
    passes: Passes, fitting: Fitting, fit: Fit, solving: Clock, how: str
) -> FittedMethod:
    """Return a method whose learner was fitted over blocks, with a sample of its rows."""
    shared, (learner, converged) = passes.shared, fit
    scale, _ = fitting.data.scale_targets()
    X, y = _sample(shared, fitting)
    if scale.log is not None:
        residuals = y - learner.predict(shared.apply(shared.device.put(X, shared.dtype)))
        scale = scale.smeared(residuals, fitting.data.weights(_draw_rows(fitting)))
    where = "" if shared.device.is_host else f" on the device {shared.device.name}"
    n_rows = shared.block_rows(fitting.data.X) or BLOCK_ROWS
    blocks = f"blocks of {n_rows:,} embedded rows in {shared.dtype}{where}"
    return FittedMethod(
        shared,
        learner,
        scale,
        fitting.data.task,
        shared.converged and converged,
        X,
        y,
        passes.transform,
        solving,
        notes=[f"{how} over {blocks}", *passes.notes],
        is_in_blocks=True,
        n_embedded=passes.n_embedded,
    )


def _sample(embedding: Embedding, fitting: Fitting) -> tuple[Matrix, np.ndarray]:
    """Return preprocessed inputs of some rows, and their targets."""
    data, rows = fitting.data, _draw_rows(fitting)
    return embedding.steps.transform(data.X[rows]), data.scale_targets()[1][rows]


def _draw_rows(fitting: Fitting) -> np.ndarray:
    return np.random.default_rng(fitting.seed).permutation(len(fitting.data.y))[:MEASURED_ROWS]


@contextlib.contextmanager
def _ignore_errors() -> Iterator[None]:
    """Ignore warnings and errors of a default candidate: a fit of its own meets them again."""
    with warnings.catch_warnings(action="ignore"), contextlib.suppress(Exception):
        yield


def _messages(caught: list[warnings.WarningMessage], converged: bool) -> list[str]:
    """Return the texts of warnings; of those of convergence only where a fit did not."""
    from sklearn.exceptions import ConvergenceWarning

    messages = {str(w.message).strip() for w in caught}
    if converged:
        messages -= {str(w.message).strip() for w in caught if w.category is ConvergenceWarning}
    return sorted(messages)[:20]

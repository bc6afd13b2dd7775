"""The chosen candidate, fitted on the whole training part and timed."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.evaluation.method import Method
from kbench.evaluation.model_measures import sizes
from kbench.evaluation.outputs import Predictions, check_embedding, predictions_of
from kbench.evaluation.rows import BLOCK_ROWS, whole
from kbench.evaluation.search import (
    BlockFits,
    Candidate,
    Data,
    Pass,
    SharedMap,
    embedding_of,
    fit_from_sums,
    fit_map,
    has_converged,
    pass_over,
    preprocessed,
    takes_sums,
)
from kbench.evaluation.splits import derive_seed
from kbench.evaluation.timing import Clock, Stopwatch, Timed, timed, times
from kbench.records import Protocol

MEASURED_ROWS = 1000
"""Rows that the measures of plugins get where the embedding is not held as one matrix."""


@dataclass(frozen=True)
class Refit:
    """A candidate, fitted on the training part, and what it says of the test part.

    Parameters
    ----------
    map_, learner : object
        Fitted.
    predictions : Predictions
        As the learner returns them.
    converged : bool
    notes : list of str
    measures : dict
        Times and sizes.
    X, y : array or CSR matrix
        Preprocessed training inputs and their targets: all, or a sample.
    X_test, Z_test : array or CSR matrix
        Preprocessed and embedded test inputs: all, or the first.
    n_embedded : int
        Training rows that were embedded in blocks, beside those of the search.
    default : Predictions, optional
        Those of the default candidate, if it was fitted on the same embedding.
    """

    map_: Any
    learner: Any
    predictions: Predictions
    converged: bool
    notes: list[str]
    measures: dict[str, float]
    X: Any
    y: np.ndarray
    X_test: Any
    Z_test: Any
    n_embedded: int = 0
    default: Predictions | None = None


def refit(
    method: Method,
    data: Data,
    X_test: Any,
    candidate: Candidate,
    seed: int,
    protocol: Protocol,
    passed: Pass | None = None,
    default: Candidate | None = None,
) -> Refit:
    """Fit a candidate on the training part and predict the test part.

    `passed` has the sums of its embedding, if the search took them. Otherwise they are
    taken here, where the embedding is too large to hold. The `default` candidate is fitted
    and predicts too, if it has the same preprocessing and map.
    """
    if default is not None and default.map_key != candidate.map_key:
        default = None
    if protocol.inner_fit == "fold" or data.pairwise:
        return _from_matrix(method, data, X_test, candidate, seed, None, default)
    in_search = passed is not None
    if passed is None:
        fitting = method.feature_map, method.learner, data, [candidate], seed
        shared, is_large = embedding_of(*fitting, protocol)
        if not is_large:
            fitted = _from_matrix(method, data, X_test, candidate, seed, shared, default)
            if protocol.dtype == "float32":
                fitted.notes.append("float64 instead of float32: the embedding is one matrix")
            return fitted
        if not takes_sums(method.learner, [candidate]):
            return _in_blocks(method, data, X_test, candidate, seed, shared)
        passed = pass_over(shared, *fitting, [np.arange(len(data.y))])
    candidates = [candidate] if default is None else [candidate, default]
    return _from_sums(method, data, X_test, candidates, seed, passed, in_search)


def _from_matrix(
    method: Method,
    data: Data,
    X_test: Any,
    candidate: Candidate,
    seed: int,
    shared: SharedMap | None,
    default: Candidate | None,
) -> Refit:
    """Fit the learner on the embedding as one matrix; fit the map too, unless it is `shared`.

    The `default` candidate has the same map.
    """
    X_test, more = whole(X_test), whole(data.unlabelled)
    if shared:
        steps = shared.steps
        X = steps.transform(whole(data.X))
    else:
        steps, X = _preprocessed(method, data, candidate)
    X_test = steps.transform(X_test)
    unlabelled = None if more is None else steps.transform(more)
    scale = data.scale(np.arange(len(data.y)))
    y = scale.standardise(data.y)

    def fitted_map() -> Any:
        return fit_map(method.feature_map, candidate.feature_map, seed, X, y, unlabelled)

    def fitted_learner() -> Any:
        learner_seed = derive_seed(seed, "learner")
        return method.learner.fit(candidate.learner, learner_seed, Z.value, y, data.weight)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        map_ = shared.map_ if shared else timed(fitted_map)
        Z = timed(lambda: map_.value.transform(X))
        check_embedding(Z.value, len(y), method.feature_map.what)
        learner = timed(fitted_learner)
        Z_test = timed(lambda: map_.value.transform(X_test))
        check_embedding(Z_test.value, X_test.shape[0], method.feature_map.what)
        predicted = timed(lambda: learner.value.predict(Z_test.value))
    if shared:
        caught = [*shared.caught, *caught]
    converged = has_converged(map_.value, caught) and has_converged(learner.value, caught)
    return Refit(
        map_.value,
        learner.value,
        predictions_of(learner.value, Z_test.value, predicted.value, data.task),
        converged,
        [*(shared.notes if shared else ()), *_messages(caught, converged)],
        {
            **times(map_, Z, learner, Z_test, predicted),
            **sizes(map_.value, learner.value, Z_test.value),
        },
        X,
        y,
        X_test,
        Z_test.value,
        default=None
        if default is None
        else _default_predictions(method, data, default, seed, Z.value, y, Z_test.value),
    )


def _default_predictions(
    method: Method, data: Data, default: Candidate, seed: int, Z: Any, y: np.ndarray, Z_test: Any
) -> Predictions | None:
    """Fit the default candidate's learner on an embedding and predict, untimed.

    None is returned if that fails: `predictions_by` meets the same error, which its
    caller notes.
    """
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        learner_seed = derive_seed(seed, "learner")
        learner = method.learner.fit(default.learner, learner_seed, Z, y, data.weight)
        return predictions_of(learner, Z_test, learner.predict(Z_test), data.task)
    return None


def _from_sums(
    method: Method,
    data: Data,
    X_test: Any,
    candidates: list[Candidate],
    seed: int,
    passed: Pass,
    in_search: bool,
) -> Refit:
    """Fit learners from the sums of one embedding, and predict the test part in blocks.

    The first candidate is the one that was chosen; another one is the default.
    """
    shared, sums = passed.shared, passed.total()
    learner_seed = derive_seed(seed, "learner")

    def fitted_learner(candidate: Candidate) -> tuple[Any, bool]:
        return fit_from_sums(method.learner, sums, [candidate], learner_seed)[0]

    solved = timed(lambda: fitted_learner(candidates[0]))
    fitted, learner_converged = solved.value
    learners = [fitted, *(fitted_learner(candidate)[0] for candidate in candidates[1:])]
    products = passed.products
    learner = Timed(fitted, products.wall + solved.wall, products.cpu + solved.cpu)
    notes = [f"fitted from sums over {_blocks_of(shared)}", *passed.notes]
    n_embedded = 0 if in_search else passed.n_embedded
    return _predicting_blocks(
        method,
        data,
        X_test,
        seed,
        _Fitted(shared, learners, learner_converged, passed.transform, learner, notes, n_embedded),
        in_search,
    )


def _in_blocks(
    method: Method, data: Data, X_test: Any, candidate: Candidate, seed: int, shared: SharedMap
) -> Refit:
    """Fit the learner in passes over blocks of the embedding, and predict in blocks."""
    fits = BlockFits(shared)
    parts, fitting = [np.arange(len(data.y))], (data, [candidate], seed)
    (((learner, converged),),) = fits.of(method.feature_map, method.learner, *fitting, parts, [[0]])
    notes = [f"fitted in passes over {_blocks_of(fits.shared)}", *fits.notes]
    clocks = fits.transform, fits.solving
    fitted = _Fitted(fits.shared, [learner], converged, *clocks, notes, fits.n_embedded)
    return _predicting_blocks(method, data, X_test, seed, fitted)


def _blocks_of(shared: SharedMap) -> str:
    return f"blocks of {BLOCK_ROWS:,} embedded rows in {shared.dtype}"


@dataclass(frozen=True)
class _Fitted:
    """Learners that were fitted over blocks, the candidate's first, with its times."""

    shared: SharedMap
    learners: list[Any]
    converged: bool
    transform: Clock
    learner: Clock
    notes: list[str]
    n_embedded: int


def _predicting_blocks(
    method: Method,
    data: Data,
    X_test: Any,
    seed: int,
    fit: _Fitted,
    in_search: bool = False,
) -> Refit:
    """Predict the test part in blocks; `in_search` says that its pass is shared."""
    shared, fitted = fit.shared, fit.learners[0]
    embedding, predicting = Stopwatch(), Stopwatch()
    given: list[list[Predictions]] = [[] for _ in fit.learners]
    for _, Z in shared.embedded_blocks(X_test, np.arange(X_test.shape[0]), embedding):
        for several, each in zip(given, fit.learners, strict=True):
            with predicting if each is fitted else Stopwatch():
                predicted = each.predict(Z)
            several.append(predictions_of(each, Z, predicted, data.task))
    predictions = [Predictions.joined(several) for several in given]
    converged = shared.converged and fit.converged
    rows = np.random.default_rng(seed).permutation(len(data.y))[:MEASURED_ROWS]
    Z_test = shared.embed(X_test[:MEASURED_ROWS])
    return Refit(
        shared.map_.value,
        fitted,
        predictions[0],
        converged,
        [*fit.notes, *shared.notes, *_messages(shared.caught, converged)],
        {
            **times(shared.map_, fit.transform, fit.learner, embedding, predicting),
            **sizes(shared.map_.value, fitted, Z_test),
            "shared_pass": float(in_search),
        },
        shared.steps.transform(data.X[rows]),
        data.scale(np.arange(len(data.y))).standardise(data.y[rows]),
        shared.steps.transform(X_test[:MEASURED_ROWS]),
        Z_test,
        fit.n_embedded,
        predictions[1] if len(predictions) > 1 else None,
    )


def predictions_by(
    method: Method, data: Data, X_test: Any, candidate: Candidate, seed: int, protocol: Protocol
) -> Predictions:
    """Return the predictions of `refit`; short steps are not repeated for a clock."""
    if protocol.inner_fit == "fold" or data.pairwise:
        return fit_and_predict(method, data, X_test, candidate, seed)
    return refit(method, data, X_test, candidate, seed, protocol).predictions


def fit_and_predict(
    method: Method, data: Data, X_test: Any, candidate: Candidate, seed: int
) -> Predictions:
    """Fit a candidate on inputs in memory and predict, with the seeds of the refit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps, X = _preprocessed(method, data, candidate)
        more = None if data.unlabelled is None else steps.transform(whole(data.unlabelled))
        y = data.scale(np.arange(len(data.y))).standardise(data.y)
        map_ = fit_map(method.feature_map, candidate.feature_map, seed, X, y, more)
        Z, Z_test = map_.transform(X), map_.transform(steps.transform(X_test))
        check_embedding(Z_test, Z_test.shape[0], method.feature_map.what)
        learner_seed = derive_seed(seed, "learner")
        learner = method.learner.fit(candidate.learner, learner_seed, Z, y, data.weight)
        return predictions_of(learner, Z_test, learner.predict(Z_test), data.task)


def _preprocessed(method: Method, data: Data, candidate: Candidate) -> tuple[Any, Any]:
    """Return the preprocessing, fitted on all rows, and these rows after it."""
    return preprocessed(data, None, candidate.preprocess, method.feature_map.requires)


def _messages(caught: list[warnings.WarningMessage], converged: bool) -> list[str]:
    """Return the texts of warnings; of those of convergence only where a fit did not."""
    from sklearn.exceptions import ConvergenceWarning

    messages = {str(w.message).strip() for w in caught}
    if converged:
        messages -= {str(w.message).strip() for w in caught if w.category is ConvergenceWarning}
    return sorted(messages)[:20]

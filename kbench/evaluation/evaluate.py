"""Evaluation of one split of one cell: preprocess, search, fit, time, score.

Nothing here knows of suites, journals or MLflow: the times cannot include them.

What computes is separated from what scores. `measure_split` sees the inputs and
the labels of the training part; it hands its predictions over before it is shown
the labels of the test part, which only the measures of plugins need.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.assignment import Assignment, Visible, assign
from kbench.evaluation.measures import MEASURES
from kbench.evaluation.method import MeasureFunction, Method
from kbench.evaluation.model_measures import gram_error, sizes
from kbench.evaluation.outputs import Predictions, check_embedding, predictions_of, restored
from kbench.evaluation.scores import scores
from kbench.evaluation.search import (
    Candidate,
    Data,
    Nested,
    SearchResult,
    fit_map,
    fit_preprocessing,
    has_converged,
    search,
)
from kbench.evaluation.splits import derive_seed, strata
from kbench.evaluation.targets import Scale
from kbench.evaluation.timing import timed, times
from kbench.records import Dataset, Details, Inputs, Protocol

WARM_UP_ROWS = 200
GRAM_ROWS = 1000

Reveal = Callable[[Predictions, Predictions | None], np.ndarray]
"""Takes the predictions of the test part and returns its labels.

The second predictions are those of the default candidate, where there was a search.
"""


@dataclass(frozen=True)
class Evaluation:
    """Measures, details and predictions of one split.

    The predictions are of the test rows, in the order of the split.
    """

    measures: dict[str, float]
    details: Details
    predictions: Predictions


def evaluate_split(
    dataset: Dataset, split_index: int, method: Method, protocol: Protocol
) -> Evaluation:
    """Measure and score one method on one split of one dataset, in this process.

    The measures are those of `kbench.evaluation.measures` that apply, and those of
    `measure_split`.

    DatasetError is raised where the data cannot be split, or have missing values for
    which the protocol has no treatment; PluginError where a map or learner returns
    what cannot be scored.
    """
    assignment = assign(dataset, protocol, split_index)
    committed: list[tuple[Predictions, Predictions | None]] = []

    def reveal(predictions: Predictions, default: Predictions | None) -> np.ndarray:
        committed.append((predictions, default))
        return assignment.y_test

    measures, details = measure_split(
        Inputs.of(dataset), assignment.visible, method, protocol, reveal
    )
    return scored(assignment, *committed[0], measures, details, method.learner.what)


def scored(
    assignment: Assignment,
    predictions: Predictions,
    default: Predictions | None,
    measures: Mapping[str, float],
    details: Details,
    what: str,
) -> Evaluation:
    """Score predictions and add what the computation measured.

    `default` are predictions of the default candidate; their scores have the prefix
    ``default_``. Nothing here runs code of a plugin: predictions are data, and are
    checked again. `what` is the name of the learner for messages.
    """
    truth = assignment.truth

    def check(given: Predictions) -> Predictions:
        return given.checked(truth.task, truth.classes, len(truth.y), what)

    checked = check(predictions)
    own = scores(assignment, checked)
    if default is not None:
        of_default = scores(assignment, check(default))
        own |= {MEASURES[k].of_default: v for k, v in of_default.items() if k in MEASURES}
    _refuse_overwriting(measures, own)
    return Evaluation(
        {**own, **measures},
        replace(details, notes=[*assignment.notes, *details.notes], split_hash=assignment.digest),
        checked,
    )


def measure_split(
    inputs: Inputs, visible: Visible, method: Method, protocol: Protocol, reveal: Reveal
) -> tuple[dict[str, float], Details]:
    """Search, fit and time one method on one split, and predict its test part.

    The times are seconds of wall clock, and with ``_cpu`` before ``_s`` of CPU:

    - ``map_fit_time_s``, ``map_transform_time_s`` (of the training part)
      and ``learner_fit_time_s``; ``fit_time_s`` is their sum;
    - ``predict_time_s``: transform and predict the test part;
    - ``search_time_s``: the inner cross-validation, in none of the others;
    - ``calibration_time_s``: fits on the inner folds, the calibration and its
      probabilities, in none of the others. Native probabilities are not timed either.
    """
    from sklearn.exceptions import ConvergenceWarning

    data, X_test_raw = _parts(inputs, visible, protocol)
    seed = derive_seed(protocol.seed, inputs.checksum, visible.index)
    notes = []

    searched = search(method.feature_map, method.learner, data, protocol, seed, method.criterion)
    best = searched.best
    if not searched.complete:
        notes.append(
            f"search stopped by its budget of {protocol.search_time_s:g} s "
            f"after {searched.n_compared} of {len(searched.scores)} candidates"
        )
    _warm_up(method, data, best, seed)

    steps = fit_preprocessing(data, data.X, best.preprocess, method.feature_map.requires)
    X, X_test = steps.transform(data.X), steps.transform(X_test_raw)
    unlabelled = None if data.unlabelled is None else steps.transform(data.unlabelled)

    scale = Scale.of(data.y, data.task, data.weight)
    y = scale.standardise(data.y)

    def fitted_map() -> Any:
        return fit_map(method.feature_map, best.feature_map, seed, X, y, unlabelled)

    def fitted_learner() -> Any:
        learner_seed = derive_seed(seed, "learner")
        return method.learner.fit(best.learner, learner_seed, Z.value, y, data.weight)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        map_ = timed(fitted_map)
        Z = timed(lambda: map_.value.transform(X))
        check_embedding(Z.value, len(y), method.feature_map.what)
        learner = timed(fitted_learner)
        Z_test = timed(lambda: map_.value.transform(X_test))
        check_embedding(Z_test.value, len(visible.test), method.feature_map.what)
        predicted = timed(lambda: learner.value.predict(Z_test.value))
    predictions = predictions_of(learner.value, Z_test.value, predicted.value, data.task)
    converged = has_converged(map_.value, caught) and has_converged(learner.value, caught)
    messages = {str(w.message).strip() for w in caught}
    if converged:
        messages -= {str(w.message).strip() for w in caught if w.category is ConvergenceWarning}
    notes += sorted(messages)[:20]

    measures = {
        "search_time_s": searched.seconds,
        "search_time_cpu_s": searched.cpu_seconds,
        **times(map_, Z, learner, Z_test, predicted),
        **sizes(map_.value, learner.value, Z_test.value),
        "converged": float(converged),
        "search_converged": searched.converged,
        "search_complete": float(searched.complete),
        "n_candidates": float(searched.n_compared),
        "n_train": float(len(y)),
        "n_features": float(inputs.X.shape[1]),
    }
    if method.kernel is not None:
        measures |= gram_error(method.kernel, map_.value, X_test[:GRAM_ROWS])

    n_test, what = len(visible.test), method.learner.what

    def committable(given: Predictions) -> Predictions:
        if data.task == "regression":
            return restored(given, scale, n_test, what)
        return given.checked(data.task, np.unique(data.y), n_test, what)

    committed = committable(predictions)
    default = committed if searched.default is best else None
    if searched.default is not None and searched.default is not best:
        try:
            default = committable(_predictions_by(method, data, X_test_raw, searched.default, seed))
        except Exception as error:
            # a default that these data do not allow is not a failure of the method
            notes.append(f"the default parameters fail: {type(error).__name__}: {error}"[:300])
    if protocol.calibration != "none":
        # loads a module of scikit-learn that other protocols do not need
        from kbench.evaluation.calibration import calibrate

        default = default and replace(default, probabilities=None)
        calibration = calibrate(method, data, best, protocol, seed, committed)
        committed = replace(committed, probabilities=calibration.probabilities)
        measures |= calibration.measures
        notes += calibration.notes
    y_test = scale.standardise(reveal(committed, default))
    if method.map_measures is not None:
        more = _requested(method.map_measures, learner=learner.value, X_train=X, y_train=y)
        added = method.map_measures(map_.value, X_test, y_test, **more)
        measures |= _refuse_overwriting(added, measures, method.feature_map.what)
    if method.learner_measures is not None:
        added = method.learner_measures(learner.value, Z_test.value, y_test)
        measures |= _refuse_overwriting(added, measures, method.learner.what)
    details = Details(
        chosen={name: _plain(value) for name, value in best.params.items()},
        search=_search_table(searched),
        at_edge=searched.at_edge,
        notes=notes,
    )
    return {name: float(value) for name, value in measures.items()}, details


def _refuse_overwriting(
    added: Mapping[str, float], known: Iterable[str], what: str = "a plugin"
) -> Mapping[str, float]:
    """Return measures that a plugin adds; raise if one has a name of kbench's own."""
    if taken := sorted(set(added) & set(known)):
        raise PluginError(
            f"measures of {what} return {taken[0]!r}, which kbench measures itself; "
            "give it another name"
        )
    return added


def _requested(measures: MeasureFunction, **available: Any) -> dict[str, Any]:
    """Return the available arguments that `measures` takes by keyword only."""
    parameters = inspect.signature(measures).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    return {name: value for name, value in available.items() if name in names}


def _parts(inputs: Inputs, visible: Visible, protocol: Protocol) -> tuple[Data, Any]:
    """Return the training data and the inputs of the test part."""
    X, train, test, unlabelled = inputs.X, visible.train, visible.test, visible.unlabelled
    if inputs.pairwise:
        return (
            Data(
                np.asarray(X)[np.ix_(train, train)],
                visible.y_train,
                pairwise=True,
                task=inputs.task,
                weight=visible.weight_train,
            ),
            np.asarray(X)[np.ix_(test, train)],
        )
    impute = tuple(inputs.kinds) if protocol.missing == "impute" else None
    more = _as_float64(X[unlabelled]) if len(unlabelled) else None
    data = Data(
        _as_float64(X[train]),
        visible.y_train,
        more,
        impute,
        task=inputs.task,
        weight=visible.weight_train,
    )
    return data, _as_float64(X[test])


def _as_float64(X: Any) -> Any:
    """Return rows in double precision: a file may have saved memory, not a method."""
    return X.astype(np.float64, copy=False)


def _warm_up(method: Method, data: Data, best: Candidate, seed: int) -> None:
    """Fit and predict a few rows untimed: first calls load code and fill caches."""
    rows = np.arange(len(data.y))
    if len(rows) > WARM_UP_ROWS:
        # every class must be there; a prefix of sorted data may have one only
        rng = np.random.default_rng(seed)
        first = np.unique(strata(data.y, data.task), return_index=True)[1]
        rows = np.union1d(first, rng.permutation(len(rows))[: WARM_UP_ROWS - len(first)])
    small = replace(data, X=data.rows(rows), y=data.y[rows], weight=data.weights(rows))
    try:
        _predictions_by(method, small, small.X, best, seed)
    except Exception:
        # There may be too few rows for these parameters, which is not a failure of
        # the method; a real one comes again on all rows, where it is reported.
        return


def _predictions_by(
    method: Method, data: Data, X_test: Any, candidate: Candidate, seed: int
) -> Predictions:
    """Fit a candidate and predict, with the seeds of the refit and without a clock."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = fit_preprocessing(data, data.X, candidate.preprocess, method.feature_map.requires)
        X = steps.transform(data.X)
        more = None if data.unlabelled is None else steps.transform(data.unlabelled)
        y = Scale.of(data.y, data.task, data.weight).standardise(data.y)
        map_ = fit_map(method.feature_map, candidate.feature_map, seed, X, y, more)
        Z, Z_test = map_.transform(X), map_.transform(steps.transform(X_test))
        check_embedding(Z_test, Z_test.shape[0], method.feature_map.what)
        learner_seed = derive_seed(seed, "learner")
        learner = method.learner.fit(candidate.learner, learner_seed, Z, y, data.weight)
        return predictions_of(learner, Z_test, learner.predict(Z_test), data.task)


def _search_table(searched: SearchResult) -> list[dict[str, Any]]:
    """Return all scores of a search as plain rows, for the run's artifact."""
    return [
        {
            **{name: _plain(value) for name, value in score.candidate.params.items()},
            "values": score.values,
            "converged": bool(score.converged) and all(score.converged),
            **({"share": score.share} if score.share < 1.0 else {}),
            **({"error": score.error} if score.error else {}),
        }
        for score in searched.scores
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Nested):
        return value.label
    return value if isinstance(value, str | int | float | bool | None) else repr(value)

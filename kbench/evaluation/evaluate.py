"""Evaluation of one split of one cell: preprocess, search, fit, time, score.

Nothing here knows of suites, journals or MLflow: the times cannot include them.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from kbench.evaluation.method import MeasureFunction, Method
from kbench.evaluation.preprocessing import missing_rows, refuse_missing
from kbench.evaluation.scores import gram_error, scores, seen_rows, sizes
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
from kbench.evaluation.splits import derive_seed, rare_classes
from kbench.evaluation.splits import split as split_rows
from kbench.evaluation.timing import timed, times
from kbench.records import Dataset, Details, Protocol, Split

T = TypeVar("T")

WARM_UP_ROWS = 200
GRAM_ROWS = 1000


@dataclass(frozen=True)
class Evaluation:
    """Measures, details and predictions of one split.

    The predictions are the labels of the test rows, in the order of the split.
    """

    measures: dict[str, float]
    details: Details
    predictions: np.ndarray


def evaluate_split(
    dataset: Dataset, split_index: int, method: Method, protocol: Protocol
) -> Evaluation:
    """Measure one method on one split of one dataset.

    Among the measures are ``accuracy``, and ``expected_error``: exact for a rule that
    draws its labels, else 1 minus the accuracy. The times are seconds of wall clock,
    and with ``_cpu`` before ``_s`` of CPU:

    - ``map_fit_time_s``, ``map_transform_time_s`` (of the training part)
      and ``learner_fit_time_s``; ``fit_time_s`` is their sum;
    - ``predict_time_s``: transform and predict the test part;
    - ``search_time_s``: the inner cross-validation, in none of the others.

    DatasetError is raised where the data cannot be split, or have missing values for
    which the protocol has no treatment.
    """
    from sklearn.exceptions import ConvergenceWarning

    split = split_rows(dataset, protocol, split_index)
    data, X_test, y_test, rows = _parts(dataset, split, protocol)
    seed = derive_seed(protocol.seed, dataset.checksum, split_index)
    notes = _notes(dataset, data, y_test, protocol)

    searched = search(method.feature_map, method.learner, data, protocol, seed)
    best = searched.best
    if not searched.complete:
        notes.append(
            f"search stopped by its budget of {protocol.search_time_s:g} s "
            f"after {searched.n_compared} of {len(searched.scores)} candidates"
        )
    _warm_up(method, data, best, seed)

    steps = fit_preprocessing(data, data.X, best.preprocess, method.feature_map.requires)
    X, X_test = steps.transform(data.X), steps.transform(X_test)
    unlabelled = None if data.unlabelled is None else steps.transform(data.unlabelled)

    def fitted_map() -> Any:
        return fit_map(method.feature_map, best.feature_map, seed, X, data.y, unlabelled)

    def fitted_learner() -> Any:
        estimator = method.learner.build(best.learner, derive_seed(seed, "learner"))
        return estimator.fit(Z.value, data.y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        map_ = timed(fitted_map)
        Z = timed(lambda: map_.value.transform(X))
        learner = timed(fitted_learner)
        Z_test = timed(lambda: map_.value.transform(X_test))
        predicted = timed(lambda: learner.value.predict(Z_test.value))
    converged = has_converged(map_.value, caught) and has_converged(learner.value, caught)
    messages = {str(w.message).strip() for w in caught}
    if converged:
        messages -= {str(w.message).strip() for w in caught if w.category is ConvergenceWarning}
    notes += sorted(messages)[:20]

    measures = {
        "search_time_s": searched.seconds,
        "search_time_cpu_s": searched.cpu_seconds,
        **times(map_, Z, learner, Z_test, predicted),
        **scores(learner.value, Z_test.value, y_test, predicted.value),
        **seen_rows(dataset, split, rows, y_test, predicted.value),
        **sizes(map_.value, learner.value, Z_test.value),
        "converged": float(converged),
        "search_converged": searched.converged,
        "search_complete": float(searched.complete),
        "n_candidates": float(searched.n_compared),
        "n_train": float(len(data.y)),
        "n_test": float(len(y_test)),
        "n_features": float(dataset.X.shape[1]),
    }
    if method.kernel is not None:
        measures |= gram_error(method.kernel, map_.value, X_test[:GRAM_ROWS])
    if method.map_measures is not None:
        more = _requested(method.map_measures, learner=learner.value, X_train=X, y_train=data.y)
        measures |= dict(method.map_measures(map_.value, X_test, y_test, **more))
    if method.learner_measures is not None:
        measures |= dict(method.learner_measures(learner.value, Z_test.value, y_test))
    details = Details(
        chosen={name: _plain(value) for name, value in best.params.items()},
        search=_search_table(searched),
        at_edge=searched.at_edge,
        notes=notes,
        split_hash=split.digest,
    )
    return Evaluation(
        {name: float(value) for name, value in measures.items()},
        details,
        np.asarray(predicted.value, dtype=np.int64),
    )


def _requested(measures: MeasureFunction, **available: Any) -> dict[str, Any]:
    """Return the available arguments that `measures` takes by keyword only."""
    parameters = inspect.signature(measures).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    return {name: value for name, value in available.items() if name in names}


def _parts(
    dataset: Dataset, split: Split, protocol: Protocol
) -> tuple[Data, Any, np.ndarray, np.ndarray]:
    """Return the training data, the test inputs, labels and row numbers."""
    X, y = dataset.X, np.asarray(dataset.y)
    train, test, unlabelled = split.train, split.test, split.unlabelled
    if dataset.pairwise:
        return (
            Data(np.asarray(X)[np.ix_(train, train)], y[train], pairwise=True),
            np.asarray(X)[np.ix_(test, train)],
            y[test],
            test,
        )
    if protocol.missing == "error":
        refuse_missing(dataset)
    if protocol.missing == "drop_rows":
        holes = missing_rows(X)
        train, test, unlabelled = (rows[~holes[rows]] for rows in (train, test, unlabelled))
    impute = tuple(dataset.feature_kinds) if protocol.missing == "impute" else None
    return (
        Data(X[train], y[train], X[unlabelled] if len(unlabelled) else None, impute),
        X[test],
        y[test],
        test,
    )


def _notes(dataset: Dataset, data: Data, y_test: np.ndarray, protocol: Protocol) -> list[str]:
    """List classes that are too rare for the folds or have no training row."""
    notes = []
    if protocol.splits in ("stratified", "group_duplicates"):
        rare = rare_classes(np.asarray(dataset.y), protocol.n_folds)
        if rare:
            names = ", ".join(dataset.target_names[k] for k in rare[:5])
            notes.append(f"fewer than {protocol.n_folds} rows of class {names}")
    absent = np.setdiff1d(y_test, data.y)
    if len(absent):
        names = ", ".join(dataset.target_names[k] for k in absent[:5])
        notes.append(f"no training row of class {names}, which is in the test part")
    return notes


def _warm_up(method: Method, data: Data, best: Candidate, seed: int) -> None:
    """Fit and predict a few rows untimed: first calls load code and fill caches."""
    rows = np.arange(len(data.y))
    if len(rows) > WARM_UP_ROWS:
        # every class must be there; a prefix of sorted data may have one only
        rng = np.random.default_rng(seed)
        first = np.unique(data.y, return_index=True)[1]
        rows = np.union1d(first, rng.permutation(len(rows))[: WARM_UP_ROWS - len(first)])
    small = replace(data, X=data.rows(rows), y=data.y[rows])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = fit_preprocessing(small, small.X, best.preprocess, method.feature_map.requires)
            X = steps.transform(small.X)
            more = None if small.unlabelled is None else steps.transform(small.unlabelled)
            map_ = fit_map(method.feature_map, best.feature_map, seed, X, small.y, more)
            Z = map_.transform(X)
            learner = method.learner.build(best.learner, derive_seed(seed, "learner"))
            learner.fit(Z, small.y).predict(Z)
    except Exception:
        # There may be too few rows for these parameters, which is not a failure of
        # the method; a real one comes again on all rows, where it is reported.
        return


def _search_table(searched: SearchResult) -> list[dict[str, Any]]:
    """Return all scores of a search as plain rows, for the run's artifact."""
    return [
        {
            **{name: _plain(value) for name, value in score.candidate.params.items()},
            "accuracies": score.accuracies,
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

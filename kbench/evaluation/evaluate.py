"""Evaluation of one split of one cell: preprocess, search, fit, time, score.

Nothing here knows of suites, journals or MLflow: the times cannot include them.

What computes is separated from what scores. `measure_split` sees the inputs and
the labels of the training part; it hands its predictions over before it is shown
the labels of the test part, which only the measures of plugins need.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.assignment import Assignment, Visible, assign
from kbench.evaluation.measures import MEASURES
from kbench.evaluation.method import MeasureFunction, Method
from kbench.evaluation.model_measures import gram_error
from kbench.evaluation.outputs import Committed, Predictions, restored
from kbench.evaluation.refit import fit_and_predict, predictions_by, refit
from kbench.evaluation.rows import Rows
from kbench.evaluation.scores import scores_over_seeds
from kbench.evaluation.search import (
    Candidate,
    Data,
    Nested,
    SearchResult,
    search,
)
from kbench.evaluation.splits import derive_seed, strata
from kbench.evaluation.timing import Stopwatch
from kbench.records import Dataset, Details, Inputs, Protocol

WARM_UP_ROWS = 200

Reveal = Callable[[Committed], np.ndarray]
"""Takes the predictions of the test part and returns its labels."""


@dataclass(frozen=True)
class Evaluation:
    """Measures, details and predictions of one split.

    The predictions, `of_seeds` of the map, are of the test rows in the order of the split.
    """

    measures: dict[str, float]
    details: Details
    of_seeds: tuple[Predictions, ...]

    @property
    def predictions(self) -> Predictions:
        """Those of the first seed of the map."""
        return self.of_seeds[0]


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
    handed_over: list[Committed] = []

    def reveal(committed: Committed) -> np.ndarray:
        handed_over.append(committed)
        return assignment.y_test

    measures, details = measure_split(
        Inputs.of(dataset), assignment.visible, method, protocol, reveal
    )
    return scored(assignment, handed_over[0], measures, details, method.learner.what)


def scored(
    assignment: Assignment,
    committed: Committed,
    measures: Mapping[str, float],
    details: Details,
    what: str,
) -> Evaluation:
    """Score predictions and add what the computation measured.

    The scores of the default candidate have the prefix ``default_``. Scores are means over the
    seeds of the map; `Details.by_seed` has them by seed. Nothing here runs code of a plugin:
    predictions are data, and are checked again. `what` is the name of the learner for messages.
    """
    truth = assignment.truth

    def check(given: Iterable[Predictions]) -> tuple[Predictions, ...]:
        return tuple(p.checked(truth.task, truth.classes, len(truth.y), what) for p in given)

    checked = check(committed.chosen)
    own, by_seed = scores_over_seeds(assignment, checked)
    if committed.default:
        of_default, _ = scores_over_seeds(assignment, check(committed.default))
        own |= {MEASURES[k].of_default: v for k, v in of_default.items() if k in MEASURES}
    _refuse_overwriting(measures, own)
    notes = [*assignment.notes, *details.notes]
    return Evaluation(
        {**own, **measures},
        replace(details, notes=notes, split_hash=assignment.digest, by_seed=by_seed),
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

    With several seeds of the map, times and measures of the model are those of the first.
    """
    data, X_test = parts(inputs, visible, protocol)
    seed = derive_seed(protocol.seed, inputs.checksum, visible.index)
    notes = []
    start, aside = time.perf_counter(), Stopwatch()

    searched = search(method.feature_map, method.learner, data, protocol, seed, method.criterion)
    best = searched.best
    if not searched.complete:
        notes.append(
            f"search stopped by its budget of {protocol.search_time_s:g} s "
            f"after {searched.n_compared} of {len(searched.scores)} candidates"
        )
    if failures := searched.failures:
        notes.append(
            f"{len(failures)} of {len(searched.scores)} candidates of the search failed, the "
            f"first with {failures[0].error}"[:300]
        )
    if not searched.scores:
        with aside:
            _warm_up(method, data, best, seed)

    other = None if searched.default is best else searched.default
    passed = searched.passed_for(best)
    fitted = refit(method, data, X_test, best, seed, protocol, passed, other)
    notes += fitted.notes
    scale = data.scale(np.arange(len(data.y)))
    measures = {
        "search_time_s": searched.seconds,
        "search_time_cpu_s": searched.cpu_seconds,
        **fitted.measures,
        "converged": float(fitted.converged),
        "search_converged": searched.converged,
        "search_complete": float(searched.complete),
        "search_failures": float(len(searched.failures)),
        "n_candidates": float(searched.n_compared),
        "n_train": float(len(data.y)),
        "n_features": float(inputs.X.shape[1]),
    }
    if n_embedded := searched.n_embedded + fitted.n_embedded:
        measures["embedding_passes"] = n_embedded / len(data.y)
    if method.kernel is not None:
        measures |= gram_error(method.kernel, fitted.map_, fitted.X_test[: protocol.gram_rows])

    n_test, what = len(visible.test), method.learner.what

    def committable(given: Predictions) -> Predictions:
        if data.task == "regression":
            return restored(given, scale, n_test, what)
        return given.checked(data.task, np.unique(data.y), n_test, what)

    def of_all_seeds(
        candidate: Candidate, first: Predictions | None
    ) -> list[tuple[Method, Predictions]]:
        drawn = [
            (each, committable(predictions_by(each, data, X_test, candidate, seed, protocol)))
            for each in _drawn(method, candidate, protocol)[0 if first is None else 1 :]
        ]
        return drawn if first is None else [(method, committable(first)), *drawn]

    chosen = of_all_seeds(best, fitted.predictions)
    default = [given for _, given in chosen] if searched.default is best else []
    if other is not None:
        try:
            default = [given for _, given in of_all_seeds(other, fitted.default)]
        except Exception as error:
            # a default that these data do not allow is not a failure of the method
            notes.append(f"the default parameters fail: {type(error).__name__}: {error}"[:300])
    if protocol.calibration != "none":
        # loads a module of scikit-learn that other protocols do not need
        from kbench.evaluation.calibration import calibrate

        default = [replace(given, probabilities=None) for given in default]
        calibrations = [
            calibrate(each, data, best, protocol, seed, given) for each, given in chosen
        ]
        chosen = [
            (each, replace(given, probabilities=calibration.probabilities))
            for (each, given), calibration in zip(chosen, calibrations, strict=True)
        ]
        measures |= calibrations[0].measures
        notes += calibrations[0].notes
    if protocol.map_seeds > 1:
        measures["n_map_seeds"] = float(len(chosen))
    with aside:
        revealed = reveal(Committed(tuple(given for _, given in chosen), tuple(default)))
    y_test = scale.standardise(revealed)[: fitted.X_test.shape[0]]
    if method.map_measures is not None:
        more = _requested(
            method.map_measures, learner=fitted.learner, X_train=fitted.X, y_train=fitted.y
        )
        added = method.map_measures(fitted.map_, fitted.X_test, y_test, **more)
        measures |= _refuse_overwriting(added, measures, method.feature_map.what)
    if method.learner_measures is not None:
        added = method.learner_measures(fitted.learner, fitted.Z_test, y_test)
        measures |= _refuse_overwriting(added, measures, method.learner.what)
    details = Details(
        chosen={name: _plain(value) for name, value in best.params.items()},
        search=_search_table(searched),
        search_seconds=[float(f"{score.seconds:.4g}") for score in searched.scores],
        at_edge=searched.at_edge,
        notes=notes,
        work_s=time.perf_counter() - start - aside.wall,
        map_details=_map_details(fitted.map_, method.feature_map.what),
    )
    return {name: float(value) for name, value in measures.items()}, details


def _drawn(method: Method, candidate: Candidate, protocol: Protocol) -> list[Method]:
    """Return the method with each seed of its map; one if the map takes none."""
    spec = method.feature_map
    if protocol.map_seeds == 1 or not spec.takes_seed(candidate.feature_map):
        return [method]
    draws = range(protocol.map_seeds)
    return [replace(method, feature_map=replace(spec, draw=draw)) for draw in draws]


def _map_details(fitted: Any, what: str) -> dict[str, Any]:
    """Return a fitted map's ``details_`` as plain JSON values; PluginError if it is not."""
    given = getattr(fitted, "details_", {})
    try:
        if not isinstance(given, dict):
            raise TypeError(f"is {type(given).__name__}, not dict")
        return dict(json.loads(json.dumps(given, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise PluginError(f"details_ of {what} must be plain JSON values: {error}") from error


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


def parts(inputs: Inputs, visible: Visible, protocol: Protocol) -> tuple[Data, Any]:
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
                parts=visible.parts_train,
            ),
            np.asarray(X)[np.ix_(test, train)],
        )

    def part(rows: np.ndarray) -> Any:
        return Rows(X, rows) if protocol.inner_fit == "outer" else Rows(X, rows)[:]

    more = part(unlabelled) if len(unlabelled) else None
    data = Data(
        part(train),
        visible.y_train,
        more,
        tuple(inputs.kinds),
        protocol.missing,
        task=inputs.task,
        weight=visible.weight_train,
        parts=visible.parts_train,
    )
    return data, part(test)


def _warm_up(method: Method, data: Data, best: Candidate, seed: int) -> None:
    """Fit and predict a few rows untimed: first calls load code and fill caches.

    A search has done so on more rows.
    """
    rows = np.arange(len(data.y))
    if len(rows) > WARM_UP_ROWS:
        # every class must be there; a prefix of sorted data may have one only
        rng = np.random.default_rng(seed)
        first = np.unique(strata(data.y, data.task), return_index=True)[1]
        rows = np.union1d(first, rng.permutation(len(rows))[: WARM_UP_ROWS - len(first)])
    small = replace(data, X=data.rows(rows), y=data.y[rows], weight=data.weights(rows))
    try:
        fit_and_predict(method, small, small.X, best, seed)
    except Exception:
        # There may be too few rows for these parameters, which is not a failure of
        # the method; a real one comes again on all rows, where it is reported.
        return


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

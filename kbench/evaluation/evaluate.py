"""Evaluation of one split of one cell: preprocess, search, fit, time, score.

This package imports no suites, journals or MLflow, so that the times cannot include them.

What computes is separated from what scores. `run_split` sees the inputs and
the labels of the training set; it hands its predictions over before it is shown
the labels of the test set, which only the metrics of plugins need.
"""

import inspect
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kbench.errors import LeftOutError, PluginError
from kbench.evaluation.checked_predictions import Committed, FittedMap, Predictions, unstandardise
from kbench.evaluation.device import Device
from kbench.evaluation.embedding import Data, Fitting
from kbench.evaluation.fitting import FittedMethod, Tested, fit, fit_in_memory
from kbench.evaluation.lazy_rows import Matrix, Rows, whole
from kbench.evaluation.method import Kernel, Method, MetricFunction
from kbench.evaluation.scores import Evaluation, compute_scores, refuse_overwriting
from kbench.evaluation.search import candidates, grid_size, search
from kbench.evaluation.search._result import SearchResult
from kbench.evaluation.specs import Candidate, Nested
from kbench.evaluation.split_view import Visible, assign
from kbench.evaluation.splits import derive_seed, strata
from kbench.evaluation.timing import Stopwatch, time_step
from kbench.records import Dataset, Details, Inputs, Protocol

WARM_UP_ROWS, WARM_UP_COLUMNS = 200, 1000

Reveal = Callable[[Committed], np.ndarray]
"""Takes the predictions of the test set and returns its labels."""


def evaluate_split(
    dataset: Dataset, split_index: int, method: Method, protocol: Protocol
) -> Evaluation:
    """Measure and score one method on one split of one dataset, in this process.

    The metrics are those of `kbench.evaluation.metrics` that apply, and those of
    `run_split`.

    Raises DatasetError if the data cannot be split, or have missing values for
    which the protocol has no treatment; raises PluginError if a map or learner returns
    what cannot be scored.
    """
    assignment = assign(dataset, protocol, split_index)
    handed_over: list[Committed] = []

    def reveal(committed: Committed) -> np.ndarray:
        handed_over.append(committed)
        return assignment.y_test

    metrics, details = run_split(Inputs.make(dataset), assignment.visible, method, protocol, reveal)
    return compute_scores(assignment, handed_over[0], metrics, details, method.learner.label)


def run_split(
    inputs: Inputs, visible: Visible, method: Method, protocol: Protocol, reveal: Reveal
) -> tuple[dict[str, float], Details]:
    """Search, fit and time one method on one split, and predict its test set.

    The times are seconds of wall clock, and with ``_cpu`` before ``_s`` of CPU:

    - ``map_fit_time_s``, ``map_transform_time_s`` (of the training set)
      and ``learner_fit_time_s``; ``fit_time_s`` is their sum;
    - ``predict_time_s``: transform and predict the test set;
    - ``search_time_s``: the inner cross-validation, in none of the others;
    - ``calibration_time_s``: fits on the inner folds, the calibration and its
      probabilities, in none of the others. Native probabilities are not timed either.

    With several seeds of the map, times and metrics of the model are those of the first.
    """
    data, X_test = parts(inputs, visible, protocol)
    seed = derive_seed(protocol.seed, inputs.checksum, visible.index)
    start, aside = time.perf_counter(), Stopwatch()
    fitting = Fitting(method, data, protocol, seed)
    Device.of(protocol.device).begin()
    first = candidates(method.feature_map, method.learner, protocol, 0)[:1]
    if protocol.other_methods == "skip" and (reason := fitting.place(first)[1]):
        raise LeftOutError(f'left out, as other_methods = "skip" in [protocol] asks: {reason}')
    searched = search(fitting)
    best = searched.best
    if not searched.scores:
        with aside:
            _warm_up(fitting, best)
    passed = searched.passed_for(best)
    # means of predicted logarithms depend on the residuals of the learner: each fit has its own
    other = None if searched.default is best or data.log is not None else searched.default
    fitted = fit(fitting, best, time_step, passed, other)
    tested = fitted.test(X_test)
    split = _Split(inputs, fitting, X_test, searched, fitted, tested)
    _add_own_metrics(split)
    _add_gram_error(split)
    _add_seeds(split)
    _add_default(split)
    _add_calibration(split)
    chosen = tuple(predictions for _, predictions in split.chosen)
    with aside:
        revealed = reveal(Committed(chosen, tuple(split.default)))
    _add_metrics_of_plugins(split, revealed)
    details = Details(
        chosen={name: _plain(value) for name, value in best.params.items()},
        search=[
            {
                **{name: _plain(value) for name, value in score.candidate.params.items()},
                "values": score.values,
                "converged": bool(score.converged) and all(score.converged),
                **({"share": score.share} if score.share < 1.0 else {}),
                **({"error": score.error} if score.error else {}),
            }
            for score in searched.scores
        ],
        search_seconds=[float(f"{score.seconds:.4g}") for score in searched.scores],
        at_boundary=searched.at_boundary,
        notes=[*_search_notes(searched, protocol), *tested.notes, *split.notes],
        work_s=time.perf_counter() - start - aside.wall,
        map_details=_map_details(fitted.embedding.host_map, method.feature_map.label),
    )
    return {name: float(value) for name, value in split.metrics.items()}, details


@dataclass
class _Split:
    """A method that was fitted on a split and predicted its test set, and what is added to it."""

    inputs: Inputs
    fitting: Fitting
    X_test: "Matrix | Rows"
    searched: SearchResult
    fitted: FittedMethod
    tested: Tested

    chosen: list[tuple[Fitting, Predictions]] = field(default_factory=list)
    """The fitting with each seed of its map, and its predictions."""

    default: list[Predictions] = field(default_factory=list)
    """Those of the default candidate; none where there was no search."""

    metrics: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def fit_all_seeds(
        self, candidate: Candidate, first: Predictions | None
    ) -> list[tuple[Fitting, Predictions]]:
        """Fit a candidate with each seed of its map and predict; `first` exists already."""
        drawn = _vary_seed(self.fitting, candidate)
        done = [] if first is None else [(self.fitting, self._commit(self.fitted, first))]
        return done + [(each, self._commit(fit(each, candidate))) for each in drawn[len(done) :]]

    def _commit(self, fitted: FittedMethod, predictions: Predictions | None = None) -> Predictions:
        data, n_test, name = self.fitting.data, self.X_test.shape[0], self.fitting.learner.label
        predictions = fitted.predict(self.X_test) if predictions is None else predictions
        if data.task == "regression":
            return unstandardise(predictions, fitted.scale, n_test, name)
        return predictions.validate(data.task, np.unique(data.y), n_test, name)


def _add_own_metrics(split: _Split) -> None:
    searched, fitting, n_train = split.searched, split.fitting, len(split.fitting.data.y)
    split.metrics |= {
        "search_time_s": searched.seconds,
        "search_time_cpu_s": searched.cpu_seconds,
        **split.tested.metrics,
        **split.fitted.embedding.device.metrics,
        "converged": float(split.tested.converged),
        "search_converged": searched.converged,
        "search_complete": float(searched.complete),
        "search_failures": float(len(searched.failures)),
        "n_candidates": float(searched.n_compared),
        "grid_size": float(grid_size(fitting.feature_map, fitting.learner, fitting.protocol)),
        "n_train": float(n_train),
        "n_features": float(split.inputs.X.shape[1]),
    }
    if n_embedded := searched.n_embedded + split.fitted.n_embedded:
        split.metrics["embedding_passes"] = n_embedded / n_train


def _add_gram_error(split: _Split) -> None:
    kernel, protocol = split.fitting.method.kernel, split.fitting.protocol
    if kernel is not None:
        X = split.tested.X[: protocol.gram_error_rows]
        split.metrics |= gram_error(kernel, split.fitted.embedding.host_map, X)


def _add_seeds(split: _Split) -> None:
    """Fit the chosen candidate with the other seeds of its map."""
    split.chosen = split.fit_all_seeds(split.searched.best, split.tested.predictions)
    if split.fitting.protocol.map_seeds > 1:
        split.metrics["n_map_seeds"] = float(len(split.chosen))


def _add_default(split: _Split) -> None:
    """Predict with the candidate that a search would have improved."""
    default = split.searched.default
    if default is split.searched.best:
        split.default = [predictions for _, predictions in split.chosen]
    elif default is not None:
        try:
            results = split.fit_all_seeds(default, split.tested.default)
        except Exception as error:
            # a default that these data do not allow is not a failure of the method
            note = f"the default parameters fail: {type(error).__name__}: {error}"
            split.notes.append(note[:300])
        else:
            split.default = [predictions for _, predictions in results]


def _add_calibration(split: _Split) -> None:
    """Replace labels and probabilities by those of a threshold and of a calibration.

    The default has neither. The fits of the threshold are part of the search.
    """
    protocol = split.fitting.protocol
    if protocol.calibration == protocol.threshold_metric == "none":
        return
    # loads a module of scikit-learn that other protocols do not need
    from kbench.evaluation.calibration import calibrate, decide

    if protocol.threshold_metric != "none":
        with (clock := Stopwatch()):
            decided = [(each[0], *decide(*each, split.searched.best)) for each in split.chosen]
        split.chosen = [(each, values) for each, values, _ in decided]
        split.notes += decided[0][2]
        split.metrics["search_time_s"] += clock.wall
        split.metrics["search_time_cpu_s"] += clock.cpu
    if protocol.calibration == "none":
        return
    split.default = [replace(values, probabilities=None) for values in split.default]
    calibrations = [calibrate(each, split.searched.best, values) for each, values in split.chosen]
    split.chosen = [
        (each, replace(values, probabilities=calibration.probabilities))
        for (each, values), calibration in zip(split.chosen, calibrations, strict=True)
    ]
    split.metrics |= calibrations[0].metrics
    split.notes += calibrations[0].notes


def _add_metrics_of_plugins(split: _Split, revealed: np.ndarray) -> None:
    """Add what the functions of the map and of the learner measure on the test set."""
    method, fitted, tested = split.fitting.method, split.fitted, split.tested
    log = fitted.scale.log
    y_test = fitted.scale.standardise(revealed if log is None else log.log(revealed))
    y_test = y_test[: tested.X.shape[0]]
    if method.map_metrics is not None:
        available = {"learner": fitted.learner, "X_train": fitted.X, "y_train": fitted.y}
        more = _select_arguments(method.map_metrics, available)
        added = method.map_metrics(fitted.embedding.host_map, tested.X, y_test, **more)
        split.metrics |= refuse_overwriting(added, split.metrics, method.feature_map.label)
    if method.learner_metrics is not None:
        added = method.learner_metrics(fitted.learner, tested.Z, y_test)
        split.metrics |= refuse_overwriting(added, split.metrics, method.learner.label)


SPECTRAL_ROWS = 1000
"""Rows from which the spectral metrics of a Gram matrix are computed at most."""


def gram_error(kernel: Kernel, map_: FittedMap, X: Matrix) -> dict[str, float]:
    """Measure the error of a fitted map's inner products as an approximation of its kernel.

    ``kernel(map, X, Y)`` returns the Gram matrix K; `X` has rows that the map was not
    fitted on. ``gram_error_frobenius`` and ``gram_error_spectral`` are relative to K, and left
    out if K is 0, as of features that are all constant;
    ``effective_dimension`` is the trace of K (K + I)^-1: the number of directions that
    a regulariser of 1 leaves. The last two are those of the first `SPECTRAL_ROWS` rows: the
    time of eigenvalues grows with the cube of the rows.
    """
    K = np.asarray(kernel(map_, X, X), dtype=np.float64)
    Z = map_.transform(X)
    product = Z @ Z.T
    difference = K - (product.toarray() if hasattr(product, "toarray") else product)
    error, norm = float(np.linalg.norm(difference)), float(np.linalg.norm(K))
    K, difference = (G[:SPECTRAL_ROWS, :SPECTRAL_ROWS] for G in (K, difference))
    spectrum = np.linalg.eigvalsh((K + K.T) / 2)
    positive = np.clip(spectrum, 0.0, None)
    largest = float(np.abs(spectrum).max())
    distance = float(np.abs(np.linalg.eigvalsh((difference + difference.T) / 2)).max())
    relative = {"gram_error_frobenius": (error, norm), "gram_error_spectral": (distance, largest)}
    return {
        **{name: value / size for name, (value, size) in relative.items() if size},
        "effective_dimension": float((positive / (positive + 1.0)).sum()),
    }


def _search_notes(searched: SearchResult, protocol: Protocol) -> list[str]:
    """Return what a reader must know of a search that was stopped, or met failures."""
    notes, n = [], len(searched.scores)
    if not searched.complete:
        notes.append(
            f"search stopped by its budget of {protocol.search_timeout_s:g} s "
            f"after {searched.n_compared} of {n} candidates"
        )
    if failures := searched.failures:
        notes.append(
            f"{len(failures)} of {n} candidates of the search failed, the "
            f"first with {failures[0].error}"[:300]
        )
    return notes


def _vary_seed(fitting: Fitting, candidate: Candidate) -> list[Fitting]:
    """Return the fitting with each seed of its map; one if the map takes none."""
    method, spec, n_draws = fitting.method, fitting.feature_map, fitting.protocol.map_seeds
    if n_draws == 1 or not spec.takes_seed(candidate.feature_map):
        return [fitting]
    maps = [replace(spec, draw=draw) for draw in range(n_draws)]
    return [replace(fitting, method=replace(method, feature_map=drawn)) for drawn in maps]


def _map_details(fitted: FittedMap, name: str) -> dict[str, Any]:
    """Return a fitted map's ``details_`` as plain JSON values; PluginError if it is not."""
    details = getattr(fitted, "details_", {})
    try:
        if not isinstance(details, dict):
            raise TypeError(f"is {type(details).__name__}, not dict")
        return dict(json.loads(json.dumps(details, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise PluginError(f"details_ of {name} must be plain JSON values: {error}") from error


def _select_arguments(metrics: MetricFunction, available: dict[str, object]) -> dict[str, object]:
    """Return the available arguments that `metrics` takes by keyword only."""
    taken = inspect.signature(metrics).parameters
    only = inspect.Parameter.KEYWORD_ONLY
    return {k: value for k, value in available.items() if k in taken and taken[k].kind is only}


def parts(inputs: Inputs, visible: Visible, protocol: Protocol) -> "tuple[Data, Matrix | Rows]":
    """Return the training data and the inputs of the test set."""
    X, train, test, unlabeled = inputs.X, visible.train, visible.test, visible.unlabeled
    X_train: Matrix | Rows = Rows(X, train)
    X_test: Matrix | Rows = Rows(X, test)
    if inputs.pairwise:
        X_train, X_test = (np.asarray(X)[np.ix_(rows, train)] for rows in (train, test))
    data = Data(
        X_train,
        visible.y_train,
        Rows(X, unlabeled) if len(unlabeled) and not inputs.pairwise else None,
        tuple(inputs.kinds),
        protocol.missing,
        inputs.pairwise,
        inputs.task,
        visible.weight_train,
        visible.parts_train,
    )
    return data.on_scale(protocol.target_scale), X_test


def _warm_up(fitting: Fitting, best: Candidate) -> None:
    """Fit and predict a few rows and columns untimed: first calls load code and fill caches.

    A search has done so on more rows.
    """
    data = fitting.data
    rows = np.arange(len(data.y))
    if len(rows) > WARM_UP_ROWS:
        # every class must be there; a prefix of sorted data may have one only
        rng = np.random.default_rng(fitting.seed)
        first = np.unique(strata(data.y, data.task), return_index=True)[1]
        rows = np.union1d(first, rng.permutation(len(rows))[: WARM_UP_ROWS - len(first)])
    try:
        few, d = data.select(rows), data.X.shape[1]
        if d > WARM_UP_COLUMNS and data.unlabeled is None and not data.pairwise:
            # boosting of thousands of columns takes as long on a few rows as on all
            columns = np.linspace(0, d - 1, WARM_UP_COLUMNS).astype(int)
            few = replace(few, X=whole(few.X)[:, columns], kinds=np.array(few.kinds)[columns])
        fit_few = fit_in_memory if fitting.place([best])[0].is_host else fit
        fit_few(replace(fitting, data=few), best).predict(few.X)
    except Exception:
        # There may be too few rows for these parameters, which is not a failure of
        # the method; a real one comes again on all rows, where it is reported.
        return


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Nested):
        return value.label
    return value if isinstance(value, str | int | float | bool | None) else repr(value)

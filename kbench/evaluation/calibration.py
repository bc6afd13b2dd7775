"""Probabilities and labels from scores, by a calibration and a threshold of the training set.

The scores that both are fitted on are out of fold: the learner of each inner fold has not seen the
rows that it scores. One calibration is then applied to the decision values of the final fit, as in
scikit-learn's ``CalibratedClassifierCV(ensemble=False)``, which does not change labels.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.calibration import CalibratedClassifierCV

from kbench.estimators import DecisionValues
from kbench.evaluation.checked_predictions import (
    FittedLearner,
    Predictions,
    predict_all,
    validate_decision,
    validate_numbers,
)
from kbench.evaluation.embedding import Fitting
from kbench.evaluation.lazy_rows import Matrix
from kbench.evaluation.metrics import COMPUTE
from kbench.evaluation.metrics._classification import scores_of_classes
from kbench.evaluation.search._blocks import select_shared
from kbench.evaluation.search._folds import Select, embed_fold, inner_folds
from kbench.evaluation.specs import Candidate
from kbench.evaluation.splits import Fold, rare_classes
from kbench.evaluation.targets import Truth
from kbench.records import Protocol

_SHOWN = 5
"""Classes that a note lists."""

MIN_ROWS = 50
"""Minimum number of training rows of the rarer class from which a threshold is optimised."""


@dataclass(frozen=True)
class Calibration:
    """Calibrated probabilities of the test set, if there are any, with metrics and notes."""

    probabilities: np.ndarray | None
    metrics: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def calibrate(fitting: Fitting, candidate: Candidate, predictions: Predictions) -> Calibration:
    """Calibrate the checked predictions of a fitted classifier for the test set.

    Probabilities of the learner itself are kept. Without decision values, or where all training
    rows of a class are in one inner fold, there are none, and a note says why. The `candidate` is
    fitted on the inner folds of the search. ``calibration_time_s`` is the time of all that is done
    here.
    """
    if predictions.probabilities is not None:
        return Calibration(predictions.probabilities)
    y, protocol = fitting.data.y, fitting.protocol
    classes, decision = np.unique(y), predictions.decision
    if decision is None or (problem := _problem(decision, len(classes))):
        missing = "the learner has neither probabilities nor decision values"
        return _leave_out(missing if decision is None else problem)
    start, cpu_start = time.perf_counter(), time.process_time()
    folds = inner_folds(fitting)
    if alone := [k for k in classes if any(k not in y[train] for train, _ in folds)]:
        return _leave_out(f"all training rows of {_format_classes(alone)} are in one inner fold")
    name = fitting.learner.label

    def score(learner: FittedLearner, Z: Matrix) -> np.ndarray:
        values = validate_decision(learner.decision_function(Z), Z.shape[0], name)
        return values.reshape(len(values), -1)

    with warnings.catch_warnings(action="ignore"):
        values, converged = _out_of_fold(fitting, folds, candidate, score)
        model = _fit_calibration(values, fitting)
        probabilities = model.predict_proba(decision.reshape(len(decision), -1))
    metrics = {
        "calibration_time_s": time.perf_counter() - start,
        "calibration_time_cpu_s": time.process_time() - cpu_start,
        "calibration_converged": float(np.mean(converged)),
    }
    return Calibration(probabilities, metrics, _notes(y, converged, protocol))


def _out_of_fold(
    fitting: Fitting,
    folds: Sequence[Fold],
    candidate: Candidate,
    score: Callable[[FittedLearner, Matrix], np.ndarray],
) -> tuple[np.ndarray, list[bool]]:
    """Fit a candidate on each inner fold, with the seeds of the search.

    Return the scores of all training rows, and which of the fits converged.
    """
    values: list[np.ndarray] = []
    converged = []
    candidates = [candidate]
    select: Select = lambda _, fold: embed_fold(fitting, candidates, fold)  # noqa: E731
    if fitting.shares_map:
        _, select = select_shared(fitting, candidates, folds)
    for number, fold in enumerate(folds):
        embedded = select(number, fold)
        ((fitted, has_converged),) = embedded.fit(candidates)
        values += [score(fitted, Z) for Z in embedded.embed_test_rows()]
        converged.append(has_converged and embedded.converged)
    order = np.argsort(np.concatenate([test for _, test in folds]))
    return np.concatenate(values)[order], converged


def find_threshold(fitting: Fitting, candidate: Candidate) -> tuple[float | None, list[str]]:
    """Return the score from which the second of two classes is predicted, and notes.

    It has the best `threshold_metric` on out-of-fold scores of the training set. With fewer than
    `MIN_ROWS` rows of a class, it is the score that leaves the classes their frequencies. It is
    None if the protocol names no metric, or if the scores do not rank the rows.
    """
    data, name = fitting.data, fitting.protocol.threshold_metric
    classes, counts = np.unique(data.y, return_counts=True)
    folds = inner_folds(fitting) if name != "none" and len(classes) == 2 else []
    if not folds or any(len(np.unique(data.y[train])) < 2 for train, _ in folds):
        return None, []

    def score(learner: FittedLearner, Z: Matrix) -> np.ndarray:
        found = scores_of_classes(classes, predict_all(learner, Z, np.empty(0), data.task))
        values = np.zeros(Z.shape[0]) if found is None else found[:, 1]
        return validate_numbers(values, Z.shape[0], f"the scores of {fitting.learner.label}")

    with warnings.catch_warnings(action="ignore"):
        scores, converged = _out_of_fold(fitting, folds, candidate, score)
    notes = _not_converged(converged, "threshold")
    if scores.min() == scores.max():
        return None, notes
    # just below or above a score: many rows may have the same one
    thresholds = np.nextafter(np.quantile(scores, counts[0] / counts.sum()), [-np.inf, np.inf])
    if counts.min() >= MIN_ROWS:  # the best one lies at a row of the rarer class, on its side
        of_rarer = scores[data.y == classes[counts.argmin()]]
        thresholds = np.unique(np.quantile(of_rarer, np.linspace(0, 1, 200)))
        thresholds = np.nextafter(thresholds, [np.inf, -np.inf][counts.argmin()])
    truth = Truth(data.y, data.task, classes, weight=data.weight)
    labels = (classes[(scores >= each).astype(int)] for each in thresholds)
    values = [COMPUTE[name](truth, Predictions(each)) or 0.0 for each in labels]
    return float(thresholds[int(np.argmax(values))]), notes


def decide(
    fitting: Fitting, predictions: Predictions, candidate: Candidate
) -> tuple[Predictions, list[str]]:
    """Return predictions with the labels that a threshold decides, and notes."""
    threshold, notes = find_threshold(fitting, candidate)
    classes = np.unique(fitting.data.y)
    scores = scores_of_classes(classes, predictions)
    if threshold is not None and scores is not None:
        predictions = replace(predictions, predicted=classes[(scores[:, 1] >= threshold) * 1])
    return predictions, notes


def _fit_calibration(values: np.ndarray, fitting: Fitting) -> CalibratedClassifierCV:
    """Fit the calibration on decision values of the training rows."""
    data = fitting.data
    rows = np.arange(len(data.y))
    # an ensemble of one: the values are out of fold already
    model = CalibratedClassifierCV(
        DecisionValues(), method=fitting.protocol.calibration, cv=[(rows, rows)], ensemble=True
    )
    return model.fit(values, data.y, sample_weight=data.weight)


def _problem(decision: np.ndarray, n_classes: int) -> str:
    """Return why decision values are not one per class, or one for two classes; else ""."""
    if n_classes < 2:
        return "the training set has one class"
    n_columns = decision[0].size
    expected = 1 if n_classes == 2 else n_classes
    return "" if n_columns == expected else f"{n_columns} decision values per row, not {expected}"


def _leave_out(reason: str) -> Calibration:
    return Calibration(None, notes=[f"no calibrated probabilities: {reason}"])


def _notes(y: np.ndarray, converged: list[bool], protocol: Protocol) -> list[str]:
    notes = []
    if rare := rare_classes(y, protocol.inner_folds):
        n = protocol.inner_folds
        notes.append(f"calibrated with fewer than {n} training rows of {_format_classes(rare)}")
    return notes + _not_converged(converged, "calibration")


def _not_converged(converged: list[bool], what: str) -> list[str]:
    failed = len(converged) - sum(converged)
    return [f"{failed} of {len(converged)} fits of the {what} did not converge"] if failed else []


def _format_classes(classes: list[int]) -> str:
    # the names of the classes are not among what a computation sees
    listed = ", ".join(str(k) for k in classes[:_SHOWN])
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    return f"class {listed}{more} (numbered from 0)"

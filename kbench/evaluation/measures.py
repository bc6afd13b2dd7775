"""Measures of predictions: definitions, directions, and how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth
from kbench.records import Measure, TaskType

Compute = Callable[[Truth, Predictions], float]


def _accuracy(truth: Truth, given: Predictions) -> float:
    return mean(given.predicted == truth.y, truth.weight)


def _balanced_accuracy(truth: Truth, given: Predictions) -> float:
    recalls = []
    for label in np.unique(truth.y):
        rows = truth.y == label
        weight = None if truth.weight is None else truth.weight[rows]
        if weight is None or weight.any():
            recalls.append(mean(given.predicted[rows] == label, weight))
    return float(np.mean(recalls))


def _expected_error(truth: Truth, given: Predictions) -> float:
    if given.label_probabilities is None:
        return 1.0 - _accuracy(truth, given)
    right = probability_of(given.label_probabilities, truth.classes, truth.y)
    return 1.0 - mean(right, truth.weight)


def _log_loss(truth: Truth, given: Predictions) -> float:
    # the loss of a label with probability 0 is infinite; clipping at the machine
    # epsilon keeps the mean finite, as in scikit-learn
    assert given.probabilities is not None
    right = probability_of(given.probabilities, truth.classes, truth.y)
    return mean(-np.log(np.clip(right, np.finfo(np.float64).eps, 1.0)), truth.weight)


def _rmse(truth: Truth, given: Predictions) -> float:
    return float(np.sqrt(mean((given.predicted - truth.y) ** 2, truth.weight)))


def _rmse_standardised(truth: Truth, given: Predictions) -> float:
    return _rmse(truth, given) / truth.scale.sd


def _mae(truth: Truth, given: Predictions) -> float:
    return mean(np.abs(given.predicted - truth.y), truth.weight)


_COMPUTED: tuple[tuple[Measure, Compute], ...] = (
    (
        Measure("accuracy", "higher", "share of rows with the right label", "classification"),
        _accuracy,
    ),
    (
        Measure("balanced_accuracy", "higher", "mean recall of the classes", "classification"),
        _balanced_accuracy,
    ),
    (
        Measure(
            "expected_error",
            "lower",
            "1 - accuracy; exact for a rule that draws its labels",
            "classification",
        ),
        _expected_error,
    ),
    (
        Measure(
            "log_loss",
            "lower",
            "mean of -log of the probability of the right label",
            "classification",
            "probabilities",
        ),
        _log_loss,
    ),
    (
        Measure(
            "rmse_standardised",
            "lower",
            "rmse over the standard deviation of the training targets",
            "regression",
        ),
        _rmse_standardised,
    ),
    (
        Measure("rmse", "lower", "root mean squared error, in the target's units", "regression"),
        _rmse,
    ),
    (Measure("mae", "lower", "mean absolute error, in the target's units", "regression"), _mae),
)

_REPORTED = (
    Measure("accuracy_unseen", "higher", "accuracy on rows that equal no training row"),
    Measure("gram_error_frobenius", "lower", "relative error of the map's Gram matrix"),
    Measure("gram_error_spectral", "lower", "the same in the spectral norm"),
)

MEASURES: Mapping[str, Measure] = {
    measure.name: measure for measure in (*(m for m, _ in _COMPUTED), *_REPORTED)
}
"""Built-in measures by name; plugins add others."""

COMPUTE: Mapping[str, Compute] = {measure.name: compute for measure, compute in _COMPUTED}
"""Functions of the measures of predictions, by name."""


def default_measure(task: TaskType) -> Measure:
    """Return the measure that suites of a task compare by default."""
    return MEASURES["accuracy" if task == "classification" else "rmse_standardised"]


def search_measure(name: str | None, task: TaskType) -> Measure:
    """Return the measure that a search optimises, given its name in the protocol."""
    return MEASURES[name or ("accuracy" if task == "classification" else "rmse")]


def applies(measure: Measure, task: TaskType, given: Predictions) -> bool:
    """Whether a measure can be computed from predictions."""
    if measure.task not in (None, task):
        return False
    if measure.needs == "probabilities":
        return given.probabilities is not None
    if measure.needs == "scores":
        return given.probabilities is not None or given.decision is not None
    return measure.needs != "distribution" or given.sd is not None


def mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the weighted mean."""
    return float(np.average(values, weights=weight))


def probability_of(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the probability of each label; 0 for a label that is not among the classes.

    Examples
    --------
    >>> probability_of(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([0, 2]), np.array([2, 1]))
    array([0.75, 0.  ])
    """
    known = np.isin(y, classes)
    column = np.where(known, np.searchsorted(classes, y), 0)
    return np.where(known, probabilities[np.arange(len(y)), column], 0.0)

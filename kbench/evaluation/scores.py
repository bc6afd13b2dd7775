"""Measures of predictions."""

from __future__ import annotations

import numpy as np

from kbench.evaluation.assignment import Assignment
from kbench.evaluation.outputs import Predictions


def scores(assignment: Assignment, predictions: Predictions) -> dict[str, float]:
    """Score the predictions of one split: accuracies, and the log loss of probabilities.

    The error is expected, that is exact, for a rule that draws its labels.
    """
    y = assignment.y_test
    classes = np.unique(assignment.visible.y_train)
    hits = predictions.labels == y
    recalls = [hits[y == label].mean() for label in np.unique(y)]
    measures = {
        "accuracy": float(np.mean(hits)),
        "balanced_accuracy": float(np.mean(recalls)),
        "expected_error": 1.0 - float(np.mean(hits)),
        "n_test": float(len(y)),
    }
    if predictions.label_probabilities is not None:
        given = probability_of(predictions.label_probabilities, classes, y)
        measures["expected_error"] = 1.0 - float(np.mean(given))
    if predictions.probabilities is not None:
        # the loss of a label with probability 0 is infinite; clipping at the machine
        # epsilon keeps the mean finite, as in scikit-learn
        eps = np.finfo(np.float64).eps
        given = probability_of(predictions.probabilities, classes, y)
        measures["log_loss"] = float(-np.log(np.clip(given, eps, 1.0)).mean())
    if assignment.seen is not None:
        measures["seen_rows"] = float(assignment.seen.mean())
        if not assignment.seen.all():
            measures["accuracy_unseen"] = float(np.mean(hits[~assignment.seen]))
    return measures


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

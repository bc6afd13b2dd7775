"""Measures of predicted labels."""

from __future__ import annotations

import math

import numpy as np

from kbench.evaluation.measures._means import mean
from kbench.evaluation.measures._probabilities import probability_of
from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth


def accuracy(truth: Truth, given: Predictions) -> float:
    """Return the share of rows with the right label."""
    return mean(given.predicted == truth.y, truth.weight)


def balanced_accuracy(truth: Truth, given: Predictions) -> float:
    """Return the mean recall of the classes that have a row."""
    right, true, _ = _masses(truth, given)
    present = true > 0
    return float((right[present] / true[present]).mean())


def expected_error(truth: Truth, given: Predictions) -> float:
    """Return 1 - accuracy; the exact error of a rule that draws its labels."""
    if given.label_probabilities is None:
        return 1.0 - accuracy(truth, given)
    right = probability_of(given.label_probabilities, truth.classes, truth.y)
    return 1.0 - mean(right, truth.weight)


def f1_macro(truth: Truth, given: Predictions) -> float:
    """Return the mean F1 of the classes that are right or predicted in a row."""
    right, true, predicted = _masses(truth, given)
    either = true + predicted
    seen = either > 0
    return float((2.0 * right[seen] / either[seen]).mean())


def matthews(truth: Truth, given: Predictions) -> float:
    """Return Matthews' correlation of any number of classes; 0 where one side is constant."""
    right, true, predicted = _masses(truth, given)
    if min(np.count_nonzero(true), np.count_nonzero(predicted)) < 2:
        return 0.0
    total = true.sum()
    right, true, predicted = right / total, true / total, predicted / total
    spread = (1.0 - predicted @ predicted) * (1.0 - true @ true)
    return float(right.sum() - true @ predicted) / math.sqrt(spread)


def _masses(truth: Truth, given: Predictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by label the weight of the rows that are right, that have it, that are given it."""
    y, predicted, weight = truth.y, given.predicted, truth.weight
    n = int(max(y.max(), predicted.max())) + 1
    is_right = y == predicted
    return (
        np.bincount(y[is_right], None if weight is None else weight[is_right], n),
        np.bincount(y, weight, n),
        np.bincount(predicted, weight, n),
    )

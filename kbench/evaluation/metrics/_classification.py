"""Metrics of predicted labels, of probabilities, and of scores that rank rows."""

import math
from collections.abc import Iterator

import numpy as np

from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.metrics._means import mean
from kbench.evaluation.targets import Truth

BINS = 15
"""Bins of the expected calibration error."""


def accuracy(truth: Truth, predictions: Predictions) -> float:
    """Return the share of rows with the right label."""
    return mean(predictions.predicted == truth.y, truth.weight)


def balanced_accuracy(truth: Truth, predictions: Predictions) -> float:
    """Return the mean recall of the classes that have a row."""
    right, true, _ = _masses(truth, predictions)
    present = true > 0
    return float((right[present] / true[present]).mean())


def expected_error(truth: Truth, predictions: Predictions) -> float:
    """Return 1 - accuracy; the exact error of a rule that draws its labels."""
    if predictions.label_probabilities is None:
        return 1.0 - accuracy(truth, predictions)
    right = get_probability(predictions.label_probabilities, truth.classes, truth.y)
    return 1.0 - mean(right, truth.weight)


def f1_macro(truth: Truth, predictions: Predictions) -> float:
    """Return the mean F1 of the classes that are right or predicted in a row."""
    right, true, predicted = _masses(truth, predictions)
    either = true + predicted
    seen = either > 0
    return float((2.0 * right[seen] / either[seen]).mean())


def mcc(truth: Truth, predictions: Predictions) -> float:
    """Return Matthews' correlation of any number of classes; 0 if one side is constant."""
    right, true, predicted = _masses(truth, predictions)
    if min(np.count_nonzero(true), np.count_nonzero(predicted)) < 2:
        return 0.0
    total = true.sum()
    right, true, predicted = right / total, true / total, predicted / total
    spread = (1.0 - predicted @ predicted) * (1.0 - true @ true)
    return float(right.sum() - true @ predicted) / math.sqrt(spread)


def _masses(truth: Truth, predictions: Predictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by label the weight of the rows that are right, that have it, that are given it."""
    y, predicted, weight = truth.y, predictions.predicted, truth.weight
    n = int(max(y.max(), predicted.max())) + 1
    is_right = y == predicted
    return (
        np.bincount(y[is_right], None if weight is None else weight[is_right], n),
        np.bincount(y, weight, n),
        np.bincount(predicted, weight, n),
    )


def log_loss(truth: Truth, predictions: Predictions) -> float:
    """Return the mean of -log of the right label's probability.

    The loss of a label with probability 0 is infinite; clipping at the machine epsilon
    keeps the mean finite, as in scikit-learn.
    """
    right = get_probability(_exact(predictions), truth.classes, truth.y)
    return mean(-np.log(np.clip(right, np.finfo(np.float64).eps, 1.0)), truth.weight)


def brier_score(truth: Truth, predictions: Predictions) -> float:
    """Return the mean squared distance of the probabilities from the right label's indicator.

    It is summed over all classes and lies between 0 and 2 (Brier 1950). A label that is
    not among the classes has probability 0.
    """
    column, is_known = _columns(truth.classes, truth.y)
    distance = _exact(predictions).copy()
    distance[np.flatnonzero(is_known), column[is_known]] -= 1.0
    return mean(np.einsum("ij,ij->i", distance, distance) + ~is_known, truth.weight)


def ece(truth: Truth, predictions: Predictions) -> float:
    """Return the mean distance of confidence and accuracy over 15 bins of equal mass.

    The confidence is the largest probability of a row, and the first class that has it
    is the row's label. Rows are sorted by confidence. Those of equal confidence share
    their mean accuracy, and a row at the border of two bins counts in both, in
    proportion: the order of the rows does not matter, and all bins have the same mass.
    """
    probabilities = _exact(predictions)
    top = probabilities.argmax(axis=1)
    confidence = probabilities[np.arange(len(top)), top]
    gap = confidence - (truth.classes[top] == truth.y)
    order = np.argsort(confidence)
    confidence, gap = confidence[order], gap[order]
    weight = np.ones(len(gap)) if truth.weight is None else truth.weight[order]
    ends = np.append(np.flatnonzero(np.diff(confidence)), len(gap) - 1)
    mass = np.append(0.0, np.cumsum(weight)[ends])
    total = np.append(0.0, np.cumsum(weight * gap)[ends])
    at_borders = np.interp(np.linspace(0.0, mass[-1], BINS + 1), mass, total)
    return float(np.abs(np.diff(at_borders)).sum() / mass[-1])


def get_probability(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the probability of each label; 0 for a label that is not among the classes.

    Examples
    --------
    >>> get_probability(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([0, 2]), np.array([2, 1]))
    array([0.75, 0.  ])
    """
    column, is_known = _columns(classes, y)
    return np.where(is_known, probabilities[np.arange(len(y)), column], 0.0)


def _columns(classes: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of each label, and whether it is among the classes."""
    column = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return column, classes[column] == y


def _exact(predictions: Predictions) -> np.ndarray:
    assert predictions.probabilities is not None
    return predictions.probabilities.astype(np.float64, copy=False)


def roc_auc(truth: Truth, predictions: Predictions) -> float | None:
    """Return the area under the ROC curve: of class 1 of two, else the mean over classes.

    Each class is ranked against all others. Rows of equal score count half. None if the
    scores are not one column per class, or all rows are of one class.
    """
    areas = []
    for right, wrong in _curves(truth, predictions):
        steps = np.diff(wrong, prepend=0.0)
        heights = right - 0.5 * np.diff(right, prepend=0.0)
        areas.append(float((steps / wrong[-1]) @ (heights / right[-1])))
    return float(np.mean(areas)) if areas else None


def average_precision(truth: Truth, predictions: Predictions) -> float | None:
    """Return the average precision: of class 1 of two, else the mean over classes.

    It is the sum over the thresholds of the gain in recall times the precision; rows of
    equal score have one threshold. None as for `roc_auc`.
    """
    values = []
    for right, wrong in _curves(truth, predictions):
        values.append(float((np.diff(right, prepend=0.0) / right[-1]) @ (right / (right + wrong))))
    return float(np.mean(values)) if values else None


def _curves(truth: Truth, predictions: Predictions) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each class the weight of its own and of other rows above each threshold."""
    scores = scores_of_classes(truth.classes, predictions)
    present = np.flatnonzero(np.bincount(truth.y))
    if scores is None or len(present) < 2:
        return
    classes = truth.classes.tolist()
    if len(present) == 2 and set(classes) <= set(present.tolist()):
        present = present[1:]
    weight = truth.weight
    for label in present.tolist():
        # a class without training rows is ranked by a constant
        score = scores[:, classes.index(label)] if label in classes else np.zeros(len(truth.y))
        order = np.argsort(-score)
        ranked = score[order]
        ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
        is_right = (truth.y == label)[order]
        if weight is None:
            right = np.cumsum(is_right)[ends].astype(np.float64)
            yield right, ends + 1.0 - right
        else:
            mass = weight[order]
            yield np.cumsum(mass * is_right)[ends], np.cumsum(mass * ~is_right)[ends]


def scores_of_classes(classes: np.ndarray, predictions: Predictions) -> np.ndarray | None:
    """Return one column of scores for each class; None if there are none.

    They are decision values if the learner has them: calibrated probabilities rank the
    rows of a class differently.
    """
    decision = predictions.decision
    if decision is None:
        return predictions.probabilities
    if len(classes) == 2 and decision.size == len(decision):
        margin = decision.reshape(-1)
        return np.stack([-margin, margin], axis=1)
    if decision.ndim == 2 and decision.shape[1] == len(classes):
        if len(classes) == 2:  # the larger one is predicted
            margin = decision[:, 1] - decision[:, 0]
            return np.stack([-margin, margin], axis=1)
        return decision
    return None

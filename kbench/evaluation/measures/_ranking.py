"""Measures of how scores rank the rows of each class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth


def roc_auc(truth: Truth, given: Predictions) -> float | None:
    """Return the area under the ROC curve: of class 1 of two, else the mean over classes.

    Each class is ranked against all others. Rows of equal score count half. None where the
    scores are not one column per class, or all rows are of one class.
    """
    areas = []
    for right, wrong in _curves(truth, given):
        steps = np.diff(wrong, prepend=0.0)
        heights = right - 0.5 * np.diff(right, prepend=0.0)
        areas.append(float((steps / wrong[-1]) @ (heights / right[-1])))
    return float(np.mean(areas)) if areas else None


def average_precision(truth: Truth, given: Predictions) -> float | None:
    """Return the average precision: of class 1 of two, else the mean over classes.

    It is the sum over the thresholds of the gain in recall times the precision; rows of
    equal score have one threshold. None as for `roc_auc`.
    """
    values = []
    for right, wrong in _curves(truth, given):
        gains = np.diff(right, prepend=0.0)
        values.append(float((gains / right[-1]) @ (right / (right + wrong))))
    return float(np.mean(values)) if values else None


def _curves(truth: Truth, given: Predictions) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each class the weight of its own and of other rows above each threshold."""
    scores = scores_of_classes(truth.classes, given)
    present = np.flatnonzero(np.bincount(truth.y))
    if scores is None or len(present) < 2:
        return
    known = truth.classes.tolist()
    if len(present) == 2 and set(known) <= set(present.tolist()):
        present = present[1:]
    weight = truth.weight
    for label in present.tolist():
        # a class without training rows is ranked by a constant
        score = scores[:, known.index(label)] if label in known else np.zeros(len(truth.y))
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


def scores_of_classes(classes: np.ndarray, given: Predictions) -> np.ndarray | None:
    """Return one column of scores for each class; None where there are none.

    They are decision values where there are any: probabilities that a calibration made of
    them rank the rows of a class otherwise.
    """
    decision = given.decision
    if decision is None:
        return given.probabilities
    if len(classes) == 2 and decision.size == len(decision):
        margin = decision.reshape(-1)
        return np.stack([-margin, margin], axis=1)
    if decision.ndim == 2 and decision.shape[1] == len(classes):
        if len(classes) == 2:  # the larger one is predicted
            margin = decision[:, 1] - decision[:, 0]
            return np.stack([-margin, margin], axis=1)
        return decision
    return None

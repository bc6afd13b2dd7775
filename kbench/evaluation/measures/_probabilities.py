"""Measures of probabilities."""

from __future__ import annotations

import numpy as np

from kbench.evaluation.measures._means import mean
from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth

BINS = 15
"""Bins of the expected calibration error."""


def log_loss(truth: Truth, given: Predictions) -> float:
    """Return the mean of -log of the right label's probability.

    The loss of a label with probability 0 is infinite; clipping at the machine epsilon
    keeps the mean finite, as in scikit-learn.
    """
    right = probability_of(_exact(given), truth.classes, truth.y)
    return mean(-np.log(np.clip(right, np.finfo(np.float64).eps, 1.0)), truth.weight)


def brier(truth: Truth, given: Predictions) -> float:
    """Return the mean squared distance of the probabilities from the right label's indicator.

    It is summed over all classes and lies between 0 and 2 (Brier 1950). A label that is
    not among the classes has probability 0.
    """
    column, known = _columns(truth.classes, truth.y)
    distance = _exact(given).copy()
    distance[np.flatnonzero(known), column[known]] -= 1.0
    return mean(np.einsum("ij,ij->i", distance, distance) + ~known, truth.weight)


def ece_15_equal_mass(truth: Truth, given: Predictions) -> float:
    """Return the mean distance of confidence and accuracy over 15 bins of equal mass.

    The confidence is the largest probability of a row, and the first class that has it
    is the row's label. Rows are sorted by confidence. Those of equal confidence share
    their mean accuracy, and a row at the border of two bins counts in both, in
    proportion: the order of the rows does not matter, and all bins have the same mass.
    """
    probabilities = _exact(given)
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


def probability_of(probabilities: np.ndarray, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the probability of each label; 0 for a label that is not among the classes.

    Examples
    --------
    >>> probability_of(np.array([[0.25, 0.75], [0.5, 0.5]]), np.array([0, 2]), np.array([2, 1]))
    array([0.75, 0.  ])
    """
    column, known = _columns(classes, y)
    return np.where(known, probabilities[np.arange(len(y)), column], 0.0)


def _columns(classes: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of each label, and whether it is among the classes."""
    column = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return column, classes[column] == y


def _exact(given: Predictions) -> np.ndarray:
    assert given.probabilities is not None
    return given.probabilities.astype(np.float64, copy=False)

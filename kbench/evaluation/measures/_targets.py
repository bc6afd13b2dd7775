"""Measures of predicted numbers."""

from __future__ import annotations

import math

import numpy as np

from kbench.evaluation.measures._means import mean
from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth


def rmse(truth: Truth, given: Predictions) -> float:
    """Return the root mean squared error."""
    return math.sqrt(mean((given.predicted - truth.y) ** 2, truth.weight))


def rmse_standardised(truth: Truth, given: Predictions) -> float:
    """Return the root mean squared error over the deviation of the training targets."""
    return rmse(truth, given) / truth.scale.sd


def mae(truth: Truth, given: Predictions) -> float:
    """Return the mean absolute error."""
    return mean(np.abs(given.predicted - truth.y), truth.weight)


def r2(truth: Truth, given: Predictions) -> float | None:
    """Return the coefficient of determination; None for fewer than two rows.

    Where all targets are equal it is 1 if all predictions are right, and else 0, as in
    scikit-learn.
    """
    y, weight = truth.y, truth.weight
    if len(y) < 2:
        return None
    error = mean((given.predicted - y) ** 2, weight)
    if y.min() == y.max():
        return float(error == 0.0)
    return 1.0 - error / mean((y - mean(y, weight)) ** 2, weight)

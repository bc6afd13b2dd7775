"""Means over rows, and the rows that count."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.targets import Truth

Compute = Callable[[Truth, Predictions], float | None]
"""Computes a metric; None if it is not defined."""


def mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the weighted mean."""
    return float(values.mean() if weight is None else (weight * values).sum() / weight.sum())


def take_rows(truth: Truth, predicted: Predictions, rows: np.ndarray) -> tuple[Truth, Predictions]:
    """Return truth and predictions of some rows."""

    def part(values: np.ndarray | None) -> Any:
        return None if values is None else np.asarray(values)[rows]

    return (
        replace(truth, y=truth.y[rows], weight=part(truth.weight)),
        Predictions(**{name: part(values) for name, values in vars(predicted).items()}),
    )


def ignore_zero_weights(compute: Compute) -> Compute:
    """Return a metric that leaves out rows of weight 0, and whose values are finite.

    A value that is too large for float64 becomes the largest number.
    """

    def computed(truth: Truth, predictions: Predictions) -> float | None:
        if truth.weight is not None and not truth.weight.all():
            truth, predictions = take_rows(truth, predictions, np.flatnonzero(truth.weight))
        if not len(truth.y):
            return None
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            value = compute(truth, predictions)
        if value is None or math.isnan(value):
            return None
        return min(max(float(value), -sys.float_info.max), sys.float_info.max)

    return computed

"""Means over rows, and the rows that count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth


def mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the weighted mean."""
    if weight is None:
        return float(values.mean())
    return float((weight * values).sum() / weight.sum())


def rows_of(truth: Truth, given: Predictions, rows: np.ndarray) -> tuple[Truth, Predictions]:
    """Return truth and predictions of some rows."""

    def part(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else np.asarray(values)[rows]

    return (
        replace(truth, y=truth.y[rows], weight=part(truth.weight)),
        Predictions(
            np.asarray(given.predicted)[rows],
            part(given.probabilities),
            part(given.decision),
            part(given.label_probabilities),
            part(given.sd),
        ),
    )

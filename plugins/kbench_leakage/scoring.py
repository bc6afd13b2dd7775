"""Targets, and how well they are predicted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MOST_CLASSES = 50
"""Classes that are told apart; of more, the rarest count as one."""


@dataclass(frozen=True)
class Targets:
    """Targets of some rows: standardised numbers, or numbers of classes.

    Parameters
    ----------
    values : ndarray, shape (n_rows,)
    n_classes : int
        0 for numbers.
    """

    values: np.ndarray
    n_classes: int = 0

    @classmethod
    def of(cls, y: np.ndarray, is_numeric: bool) -> Targets:
        """Return the targets of all rows."""
        if is_numeric:
            y = np.asarray(y, dtype=float)
            y = y / (np.abs(y).max(initial=0.0) or 1.0)  # no square overflows
            return cls((y - y.mean()) / (y.std() or 1.0) if len(y) else y)
        _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
        place = np.empty(len(counts), dtype=np.intp)
        place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        labels = np.minimum(place[labels.reshape(-1)], MOST_CLASSES - 1)
        return cls(labels, min(len(counts), MOST_CLASSES))

    def __getitem__(self, rows: np.ndarray) -> Targets:
        return Targets(self.values[rows], self.n_classes)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_numeric(self) -> bool:
        """Whether they are numbers."""
        return not self.n_classes

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns whose means are predictions: the numbers, or an indicator for each class."""
        if self.is_numeric:
            return self.values[:, None]
        return np.asarray(np.eye(self.n_classes)[self.values])

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to predict."""
        return not len(self) or bool((self.values == self.values[0]).all())


@dataclass(frozen=True)
class Score:
    """Quality of predictions: R2, or the share of the errors that are avoided.

    `value` is at most 1. Of classes, `base` is the accuracy of the most frequent one.
    """

    value: float
    accuracy: float = 0.0
    base: float = 0.0

    def __lt__(self, other: Score) -> bool:
        return self.value < other.value

    def least(self, n_rows: int, is_numeric: bool) -> float:
        """Return the value less two standard errors (R2), or by Wilson's bound (classes).

        >>> round(Score(1.0, 1.0, 0.5).least(27, is_numeric=False), 3)
        0.742
        >>> round(Score(0.97).least(30, is_numeric=True), 3)
        0.948
        """
        n = max(n_rows, 1)
        if is_numeric:
            inside = max(self.value, 0.0)
            return self.value - 4.0 * (1.0 - self.value) * math.sqrt(inside / n)
        p = self.accuracy
        centre, half = p + 2.0 / n, 2.0 * math.sqrt(p * (1.0 - p) / n + 1.0 / n**2)
        bound = (centre - half) / (1.0 + 4.0 / n)
        return (bound - self.base) / (1.0 - self.base) if self.base < 1.0 else 0.0


NONE = Score(0.0)
"""Of predictions that tell nothing, or of no rows."""


def score(predicted: np.ndarray, targets: Targets, train: Targets) -> Score:
    """Score predicted columns of targets; predicting the training rows' mean has about 0."""
    if targets.is_constant:
        return NONE
    if targets.is_numeric:
        error = float(((predicted - targets.columns) ** 2).sum())
        total = float(((targets.columns - targets.columns.mean(axis=0)) ** 2).sum())
        return Score(1.0 - error / total)
    truth = targets.values
    accuracy = float((predicted.argmax(axis=1) == truth).mean())
    base = float((truth == np.bincount(train.values).argmax()).mean())
    return Score((accuracy - base) / (1.0 - base) if base < 1.0 else 0.0, accuracy, base)

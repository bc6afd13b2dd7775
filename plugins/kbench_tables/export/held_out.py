"""What an exported method says of rows that it was not fitted on: probabilities and intervals.

The method is fitted on four fifths of the rows, five times, with the parameters that were
chosen on all rows, and predicts the other fifth. Its errors there give the widths of
prediction intervals (cross-conformal prediction), and its decision values
there the probabilities of learners that have none.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.features import derive_seed, strata, stratified_folds
from kbench.records import Split, TaskType
from kbench_tables.export.intervals import Intervals, level_of

N_FOLDS = 5

LEVEL = 0.9
"""Coverage at which the intervals of a model are checked."""

MAX_ERRORS = 10_000
"""Errors that are kept of more rows, evenly over their ranks."""


@dataclass(frozen=True)
class Part:
    """Predictions for the rows of one fold, in the target's units: labels, numbers, or decisions.

    `sd` has standard deviations of a learner with a predictive distribution.
    """

    rows: np.ndarray
    values: np.ndarray
    sd: np.ndarray | None = None


def held_out(
    predict: Callable[[np.ndarray, np.ndarray], Part],
    y: np.ndarray,
    task: TaskType,
    seed: int,
    splits: Sequence[Split] = (),
) -> list[Part]:
    """Return the parts that ``predict(train, test)`` makes of each fold.

    The folds are the `splits` of the dataset, if it has some: by groups or by time.
    """
    folds: Iterable[tuple[np.ndarray, np.ndarray]] = [(s.train, s.test) for s in splits[:N_FOLDS]]
    if not splits:
        n_folds = min(N_FOLDS, len(y))
        folds = stratified_folds(strata(y, task), n_folds, derive_seed(seed, "held out"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [predict(train, test) for train, test in folds]


def intervals(parts: list[Part], y: np.ndarray) -> Intervals:
    """Return the intervals that held-out errors give, with their coverage at `LEVEL`.

    The coverage is measured on each fold with the errors of the others.
    """
    scores = []
    for part in parts:
        errors = np.abs(y[part.rows] - part.values)
        scores.append(errors if part.sd is None else errors / np.maximum(part.sd, 1e-300))
    covered = []
    if len(scores) == 1:  # a split by time: the second half of its rows by the first
        middle = len(scores[0]) // 2
        scores = [scores[0][:middle], scores[0][middle:]]
    for fold, own in enumerate(scores):
        others = np.sort(np.concatenate([s for other, s in enumerate(scores) if other != fold]))
        covered.append(own <= level_of(others, len(others), LEVEL))
    errors = np.sort(np.concatenate(scores))
    n_rows = len(errors)
    if n_rows > MAX_ERRORS:
        ranks = np.ceil(np.linspace(1, n_rows, MAX_ERRORS)).astype(int) - 1
        errors = errors[ranks]
    return Intervals(
        errors=errors,
        n_rows=n_rows,
        is_relative=parts[0].sd is not None,
        level=LEVEL,
        coverage=float(np.concatenate(covered).mean()),
    )


def calibration(parts: list[Part], y: np.ndarray) -> Any:
    """Return a sigmoid calibration of held-out decision values; None where there is none.

    There must be one decision value per row for two classes, and one per class for more.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    from kbench.estimators import DecisionValues

    blocks = [part.values.reshape(len(part.rows), -1) for part in parts]
    if len({block.shape[1] for block in blocks}) > 1:  # a class with one row
        return None
    values = np.concatenate(blocks)
    labels = y[np.concatenate([part.rows for part in parts])]
    n_classes = len(np.unique(y))
    if values.shape[1] != (1 if n_classes == 2 else n_classes) or not np.isfinite(values).all():
        return None
    base = FrozenEstimator(DecisionValues().fit(values, labels))
    return CalibratedClassifierCV(base, method="sigmoid").fit(values, labels)

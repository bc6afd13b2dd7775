"""Out-of-fold predictions of an exported method, for calibration and prediction intervals.

The method is fitted by five-fold cross-validation with the parameters chosen on all rows. The
absolute residuals of the five models give the widths of prediction intervals around the model
fitted on all rows: cross-validated residual intervals, a form of cross-conformal prediction (Vovk
2015; Barber et al. 2021). Their coverage is approximate. The out-of-fold decision values calibrate
learners without probabilities.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.features import derive_seed, strata, stratified_folds
from kbench.records import Split, TaskType
from kbench_tables.export.intervals import Intervals, quantile

N_FOLDS = 5

# Nominal coverage at which the intervals of a model are checked.
COVERAGE = 0.9

# Maximum number of residual quantiles to store.
MAX_ERRORS = 10_000


@dataclass(frozen=True)
class Fold:
    """Predictions for the rows of one fold, in the target's units: labels, numbers, or decisions.

    `sd` has standard deviations of a learner with a predictive distribution.
    """

    rows: np.ndarray
    values: np.ndarray
    sd: np.ndarray | None = None


def cross_val_predictions(
    predict: Callable[[np.ndarray, np.ndarray], Fold],
    y: np.ndarray,
    task: TaskType,
    seed: int,
    splits: Sequence[Split] = (),
    groups: np.ndarray | None = None,
) -> list[Fold]:
    """Return the out-of-fold predictions of ``predict(train, test)`` for each fold.

    The folds are the `splits` of the dataset if it has any (by groups or by time); else rows with
    the same number in `groups` are in one fold.
    """
    folds: Iterable[tuple[np.ndarray, np.ndarray]] = [(s.train, s.test) for s in splits[:N_FOLDS]]
    if not splits:
        n_folds = min(N_FOLDS, len(y if groups is None else np.unique(groups)))
        folds = stratified_folds(strata(y, task), n_folds, derive_seed(seed, "held out"), groups)
    with warnings.catch_warnings(action="ignore"):
        return [predict(train, test) for train, test in folds]


def intervals(parts: list[Fold], y: np.ndarray, is_by_time: bool = False) -> Intervals:
    """Return intervals from out-of-fold residuals, with their coverage at `COVERAGE`.

    The coverage is estimated on each fold with the residuals of the other folds; if the folds are
    splits by time, on that with the last rows.
    """
    scores = []
    for part in parts:
        errors = np.abs(y[part.rows] - part.values)
        scores.append(errors if part.sd is None else errors / np.maximum(part.sd, 1e-300))
    covered = []
    if len(scores) == 1:  # the second half of its rows by the first
        middle = len(scores[0]) // 2
        scores = [scores[0][middle:], scores[0][:middle]]
    for fold, values in enumerate(scores[:1] if is_by_time else scores):
        rest = np.sort(np.concatenate([s for other, s in enumerate(scores) if other != fold]))
        covered.append(values <= quantile(rest, len(rest), COVERAGE))
    errors = np.sort(np.concatenate(scores))
    n_rows = len(errors)
    if n_rows > MAX_ERRORS:
        errors = errors[(np.ceil(np.linspace(1, n_rows, MAX_ERRORS)).astype(int) - 1)]
    return Intervals(
        errors=errors,
        n_rows=n_rows,
        is_relative=parts[0].sd is not None,
        level=COVERAGE,
        coverage=float(np.concatenate(covered).mean()),
    )


def calibration(parts: list[Fold], y: np.ndarray) -> tuple[Any, float | None]:
    """Return a sigmoid calibration of out-of-fold decision values and its Brier score, or None.

    There must be one decision value per row for two classes, and one per class for more.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    from kbench.estimators import DecisionValues

    blocks = [part.values.reshape(len(part.rows), -1) for part in parts]
    if len({block.shape[1] for block in blocks}) > 1:  # a class with one row
        return None, None
    values = np.concatenate(blocks)
    labels = y[np.concatenate([part.rows for part in parts])]
    n_classes = len(np.unique(y))
    if values.shape[1] != (1 if n_classes == 2 else n_classes) or not np.isfinite(values).all():
        return None, None
    base = FrozenEstimator(DecisionValues().fit(values, labels))
    calibrated = CalibratedClassifierCV(base, method="sigmoid").fit(values, labels)
    errors = calibrated.predict_proba(values) - (labels[:, None] == np.unique(y))
    return calibrated, float((errors**2).sum(axis=1).mean())

"""Measures of predictions: definitions, directions, and how they are computed.

A measure is a number of the predictions of some rows. Rows of weight 0 do not count. A
measure that is not defined for the rows is absent: a split does not have it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping

import numpy as np

from kbench.evaluation.measures import (
    _distributions,
    _labels,
    _probabilities,
    _ranking,
    _targets,
)
from kbench.evaluation.measures._means import mean, rows_of
from kbench.evaluation.outputs import Predictions
from kbench.evaluation.targets import Truth
from kbench.records import Measure, TaskType

__all__ = [
    "COMPUTE",
    "MEASURES",
    "NEVER_RANKED",
    "applies",
    "default_measure",
    "mean",
    "rows_of",
    "search_measure",
]

Compute = Callable[[Truth, Predictions], float | None]

_COMPUTED: tuple[tuple[Measure, Compute], ...] = (
    (
        Measure("accuracy", "higher", "share of rows with the right label", "classification"),
        _labels.accuracy,
    ),
    (
        Measure(
            "balanced_accuracy",
            "higher",
            "mean recall of the classes in the test part",
            "classification",
        ),
        _labels.balanced_accuracy,
    ),
    (
        Measure(
            "expected_error",
            "lower",
            "1 - accuracy; exact for a rule that draws its labels",
            "classification",
        ),
        _labels.expected_error,
    ),
    (
        Measure(
            "f1_macro",
            "higher",
            "mean over classes of 2 right / (rows of the class + rows predicted as it)",
            "classification",
        ),
        _labels.f1_macro,
    ),
    (
        Measure(
            "matthews",
            "higher",
            "correlation of true and predicted labels; 0 where one of them is constant",
            "classification",
        ),
        _labels.matthews,
    ),
    (
        Measure(
            "roc_auc",
            "higher",
            "area under the ROC curve: of class 1 of two, else mean of one-vs-rest",
            "classification",
            "scores",
        ),
        _ranking.roc_auc,
    ),
    (
        Measure(
            "average_precision",
            "higher",
            "mean precision over recall: of class 1 of two, else mean of one-vs-rest",
            "classification",
            "scores",
        ),
        _ranking.average_precision,
    ),
    (
        Measure(
            "log_loss",
            "lower",
            "mean of -log of the probability of the right label",
            "classification",
            "probabilities",
        ),
        _probabilities.log_loss,
    ),
    (
        Measure(
            "brier",
            "lower",
            "mean over rows of the sum over classes of (probability - indicator)^2, 0 to 2",
            "classification",
            "probabilities",
        ),
        _probabilities.brier,
    ),
    (
        Measure(
            "ece_15_equal_mass",
            "lower",
            "mean |confidence - accuracy| of the top label over 15 bins of equal mass; "
            "never for ranking",
            "classification",
            "probabilities",
        ),
        _probabilities.ece_15_equal_mass,
    ),
    (
        Measure(
            "rmse_standardised",
            "lower",
            "rmse over the standard deviation of the training targets",
            "regression",
        ),
        _targets.rmse_standardised,
    ),
    (
        Measure("rmse", "lower", "root mean squared error, in the target's units", "regression"),
        _targets.rmse,
    ),
    (
        Measure("mae", "lower", "mean absolute error, in the target's units", "regression"),
        _targets.mae,
    ),
    (
        Measure(
            "r2",
            "higher",
            "1 - squared error over squared distance from the mean of the test targets",
            "regression",
        ),
        _targets.r2,
    ),
    (
        Measure(
            "nlpd",
            "lower",
            "mean negative log predictive density, in the target's units",
            "regression",
            "distribution",
        ),
        _distributions.nlpd,
    ),
    (
        Measure(
            "nlpd_standardised",
            "lower",
            "nlpd of standardised targets: nlpd - log of their standard deviation",
            "regression",
            "distribution",
        ),
        _distributions.nlpd_standardised,
    ),
    (
        Measure(
            "crps",
            "lower",
            "mean continuous ranked probability score, in the target's units",
            "regression",
            "distribution",
        ),
        _distributions.crps,
    ),
    (
        Measure(
            "crps_standardised",
            "lower",
            "crps over the standard deviation of the training targets",
            "regression",
            "distribution",
        ),
        _distributions.crps_standardised,
    ),
    (
        Measure(
            "coverage_error_90",
            "lower",
            "|share of targets in the central 90 % interval - 0.9|",
            "regression",
            "distribution",
        ),
        _distributions.coverage_error_90,
    ),
    (
        Measure(
            "interval_score_90",
            "lower",
            "width of the 90 % interval + 20 x distance of targets outside, in the target's units",
            "regression",
            "distribution",
        ),
        _distributions.interval_score_90,
    ),
)

_REPORTED = (
    Measure("accuracy_unseen", "higher", "accuracy on rows that equal no training row"),
    Measure("gram_error_frobenius", "lower", "relative error of the map's Gram matrix"),
    Measure("gram_error_spectral", "lower", "the same in the spectral norm"),
)

MEASURES: Mapping[str, Measure] = {
    measure.name: measure for measure in (*(m for m, _ in _COMPUTED), *_REPORTED)
}
"""Built-in measures by name; plugins add others."""

NEVER_RANKED: Mapping[str, str] = {
    "ece_15_equal_mass": (
        "'ece_15_equal_mass' is never for ranking: a classifier that ignores its inputs can "
        "have 0; rank by 'log_loss' or 'brier', which are proper scores"
    )
}
"""Measures by which methods are not compared and searches not guided, with the reason."""


def _on_rows_that_count(compute: Compute) -> Compute:
    """Return a measure that leaves out rows of weight 0, and whose values are finite.

    A value that is too large for float64 becomes the largest number.
    """

    def computed(truth: Truth, given: Predictions) -> float | None:
        if truth.weight is not None and not truth.weight.all():
            truth, given = rows_of(truth, given, np.flatnonzero(truth.weight))
        if not len(truth.y):
            return None
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            value = compute(truth, given)
        if value is None or math.isnan(value):
            return None
        return min(max(float(value), -sys.float_info.max), sys.float_info.max)

    return computed


COMPUTE: Mapping[str, Compute] = {
    measure.name: _on_rows_that_count(compute) for measure, compute in _COMPUTED
}
"""Functions of the measures of predictions, by name; None where it is not defined."""


def default_measure(task: TaskType) -> Measure:
    """Return the measure that suites of a task compare by default."""
    return MEASURES["accuracy" if task == "classification" else "rmse_standardised"]


def search_measure(name: str | None, task: TaskType) -> Measure:
    """Return the measure that a search optimises, given its name in the protocol."""
    return MEASURES[name or ("accuracy" if task == "classification" else "rmse")]


def applies(measure: Measure, task: TaskType, given: Predictions) -> bool:
    """Whether a measure can be computed from predictions."""
    if measure.task not in (None, task):
        return False
    if measure.needs == "probabilities":
        return given.probabilities is not None
    if measure.needs == "scores":
        return given.probabilities is not None or given.decision is not None
    return measure.needs != "distribution" or given.sd is not None

"""Metrics of predicted numbers, and of normal predictive distributions."""

import math

import numpy as np

from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.metrics._means import mean
from kbench.evaluation.targets import Truth

COVERAGE = 0.9
"""Probability of the interval that is scored."""

_HALF_WIDTH = 1.6448536269514722
"""Quantile of the standard normal distribution at (1 + COVERAGE) / 2."""

_LARGEST = 1e300
"""Bound of a squared deviation, so that its mean is finite."""


def rmse(truth: Truth, predictions: Predictions) -> float:
    """Return the root mean squared error."""
    return math.sqrt(mean((predictions.predicted - truth.y) ** 2, truth.weight))


def rmse_standardized(truth: Truth, predictions: Predictions) -> float:
    """Return the root mean squared error over the standard deviation of the training targets."""
    return rmse(truth, predictions) / truth.scale.sd


def mae(truth: Truth, predictions: Predictions) -> float:
    """Return the mean absolute error."""
    return mean(np.abs(predictions.predicted - truth.y), truth.weight)


def r2(truth: Truth, predictions: Predictions) -> float | None:
    """Return the coefficient of determination; None for fewer than two rows.

    Where all targets are equal it is 1 if all predictions are right, and else 0, as in
    scikit-learn.
    """
    y, weight = truth.y, truth.weight
    if len(y) < 2:
        return None
    error = mean((predictions.predicted - y) ** 2, weight)
    if y.min() == y.max():
        return float(error == 0.0)
    return 1.0 - error / mean((y - mean(y, weight)) ** 2, weight)


def nlpd(truth: Truth, predictions: Predictions) -> float:
    """Return the mean negative log density of the targets."""
    z, sd = _standardise(truth, predictions)
    loss = np.log(sd) + 0.5 * np.minimum(z * z, _LARGEST)
    return mean(loss, truth.weight) + 0.5 * math.log(2.0 * math.pi)


def nlpd_standardized(truth: Truth, predictions: Predictions) -> float:
    """Return the same for standardised targets: less by the log of their standard deviation."""
    return nlpd(truth, predictions) - math.log(truth.scale.sd)


def crps(truth: Truth, predictions: Predictions) -> float:
    """Return the mean continuous ranked probability score, in closed form."""
    from scipy.special import erf

    z, sd = _standardise(truth, predictions)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    score = z * erf(z / math.sqrt(2.0)) + 2.0 * density - 1.0 / math.sqrt(math.pi)
    return mean(sd * score, truth.weight)


def crps_standardized(truth: Truth, predictions: Predictions) -> float:
    """Return the same over the standard deviation of the training targets."""
    return crps(truth, predictions) / truth.scale.sd


def coverage_error_90(truth: Truth, predictions: Predictions) -> float:
    """Return the distance of the central 90 % interval's coverage from 0.9."""
    z, _ = _standardise(truth, predictions)
    return abs(mean(np.abs(z) <= _HALF_WIDTH, truth.weight) - COVERAGE)


def interval_score_90(truth: Truth, predictions: Predictions) -> float:
    """Return the mean interval score of the central 90 % interval."""
    z, sd = _standardise(truth, predictions)
    outside = np.maximum(np.abs(z) - _HALF_WIDTH, 0.0)
    return mean(sd * (2.0 * _HALF_WIDTH + 2.0 / (1.0 - COVERAGE) * outside), truth.weight)


def _standardise(truth: Truth, predictions: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets' distances from the means in standard deviations, and these."""
    assert predictions.sd is not None
    return (truth.y - predictions.predicted) / predictions.sd, predictions.sd

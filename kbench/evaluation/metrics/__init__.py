"""Metrics of predictions, and how they are computed.

A metric is a number of the predictions of some rows. Rows of weight 0 do not count. A
metric that is not defined for the rows is absent: a split does not have it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.definitions import COMPUTED, METRICS, NEVER_RANKED
from kbench.evaluation.metrics import _classification, _regression
from kbench.evaluation.metrics._means import Compute, ignore_zero_weights, mean, take_rows
from kbench.evaluation.metrics._plugin_metrics import takes_weights, wrap_function
from kbench.records import Metric, TaskType

_FUNCTIONS = vars(_classification) | vars(_regression)

COMPUTE: Mapping[str, Compute] = {name: ignore_zero_weights(_FUNCTIONS[name]) for name in COMPUTED}
"""Functions of the metrics of predictions, by name; None if it is not defined."""


@dataclass(frozen=True)
class Criterion:
    """A metric, and how it is computed: what a search optimises."""

    metric: Metric
    compute: Compute

    @classmethod
    def built_in(cls, name: str | None, task: TaskType) -> "Criterion":
        """Return what a search of a task optimises, given the name in the protocol."""
        metric = METRICS[name or ("accuracy" if task == "classification" else "rmse")]
        return cls(metric, COMPUTE[metric.name])

    @classmethod
    def from_plugin(
        cls, metric: Metric, function: Callable[..., Any], n_classes: int
    ) -> "Criterion":
        """Return a plugin's metric with its function; see `wrap_function`."""
        return cls(metric, ignore_zero_weights(wrap_function(function, metric, n_classes)))


def applies(metric: Metric, task: TaskType, predictions: Predictions) -> bool:
    """Whether a metric can be computed from predictions."""
    if metric.task not in (None, task):
        return False
    if metric.needs == "probabilities":
        return predictions.probabilities is not None
    if metric.needs == "scores":
        return predictions.probabilities is not None or predictions.decision is not None
    return metric.needs != "distribution" or predictions.sd is not None

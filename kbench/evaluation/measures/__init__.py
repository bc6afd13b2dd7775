"""Measures of predictions, and how they are computed.

A measure is a number of the predictions of some rows. Rows of weight 0 do not count. A
measure that is not defined for the rows is absent: a split does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.definitions import COMPUTED, MEASURES, NEVER_RANKED
from kbench.evaluation.measures import _classification, _regression
from kbench.evaluation.measures._means import Compute, mean, on_rows_that_count, rows_of
from kbench.evaluation.measures._of_plugins import computed_by, takes_weights
from kbench.records import Measure, TaskType

__all__ = [
    "COMPUTE",
    "MEASURES",
    "NEVER_RANKED",
    "Compute",
    "Criterion",
    "applies",
    "mean",
    "rows_of",
    "takes_weights",
]

_FUNCTIONS = vars(_classification) | vars(_regression)

COMPUTE: Mapping[str, Compute] = {name: on_rows_that_count(_FUNCTIONS[name]) for name in COMPUTED}
"""Functions of the measures of predictions, by name; None where it is not defined."""


@dataclass(frozen=True)
class Criterion:
    """A measure, and how it is computed: what a search optimises."""

    measure: Measure
    compute: Compute

    @classmethod
    def built_in(cls, name: str | None, task: TaskType) -> Criterion:
        """Return what a search of a task optimises, given the name in the protocol."""
        measure = MEASURES[name or ("accuracy" if task == "classification" else "rmse")]
        return cls(measure, COMPUTE[measure.name])

    @classmethod
    def of_plugin(cls, measure: Measure, function: Callable[..., Any], n_classes: int) -> Criterion:
        """Return a plugin's measure with its function; see `computed_by`."""
        return cls(measure, on_rows_that_count(computed_by(function, measure, n_classes)))


def applies(measure: Measure, task: TaskType, given: Predictions) -> bool:
    """Whether a measure can be computed from predictions."""
    if measure.task not in (None, task):
        return False
    if measure.needs == "probabilities":
        return given.probabilities is not None
    if measure.needs == "scores":
        return given.probabilities is not None or given.decision is not None
    return measure.needs != "distribution" or given.sd is not None

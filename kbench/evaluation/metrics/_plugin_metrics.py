"""Metrics that plugins give, with arguments like those of scikit-learn's metrics."""

import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.metrics._classification import scores_of_classes
from kbench.evaluation.metrics._means import Compute
from kbench.evaluation.targets import Truth
from kbench.records import Metric


def wrap_function(function: Callable[..., Any], metric: Metric, n_classes: int) -> Compute:
    """Return how a plugin's metric is computed by its function.

    `n_classes` are all classes of the dataset; 0 for regression. See `kbench.Metric` for
    the arguments of the function, which are copies.

    Raises PluginError if it fails, returns anything other than one finite number, or takes
    no weights while the rows have some.
    """
    name = f"metric {metric.name!r}"

    def compute(truth: Truth, predictions: Predictions) -> float | None:
        arguments = _arguments(metric, truth, predictions, n_classes)
        if arguments is None:
            return None
        weights = {}
        if truth.weight is not None:
            if not takes_weights(function):
                raise PluginError(
                    f"{name} has no parameter sample_weight, and the rows of the dataset have "
                    "weights"
                )
            weights = {"sample_weight": truth.weight.copy()}
        try:
            value = function(truth.y.copy(), *arguments, **weights)
        except Exception as error:
            # in one line, as only the last line of a failure is shown
            message = " ".join(str(error).split())
            raise PluginError(f"{name} raised {type(error).__name__}: {message}") from error
        return _finite(value, name)

    return compute


def _arguments(
    metric: Metric, truth: Truth, predictions: Predictions, n_classes: int
) -> tuple[np.ndarray, ...] | None:
    """Return what the function is given beside the truth; None if there are no scores."""
    if metric.needs == "distribution":
        assert predictions.sd is not None
        return predictions.predicted.copy(), predictions.sd.copy()
    if metric.needs == "predictions":
        return (predictions.predicted.copy(),)
    if metric.needs == "probabilities":
        assert predictions.probabilities is not None
        return (_fill_classes(predictions.probabilities, truth.classes, n_classes, 0.0),)
    scores = scores_of_classes(truth.classes, predictions)
    if scores is None:
        return None
    # a class without training rows has the lowest score
    least = 0.0 if predictions.decision is None else float(scores.min(initial=0.0))
    every = _fill_classes(scores, truth.classes, n_classes, least)
    return (every[:, 1] if n_classes == 2 else every,)


def _fill_classes(
    scores: np.ndarray, classes: np.ndarray, n_classes: int, least: float
) -> np.ndarray:
    """Return float64 scores with a column for each class of the dataset."""
    every = np.full((len(scores), n_classes), least)
    every[:, classes] = scores
    return every


def takes_weights(function: Callable[..., Any]) -> bool:
    """Whether a function of a metric has the parameter `sample_weight`."""
    try:
        return "sample_weight" in inspect.signature(function).parameters
    except (ValueError, TypeError):
        return False


def _finite(value: Any, name: str) -> float:
    """Return one finite number, or refuse what a function returned."""
    number = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, bool | np.bool_) or not isinstance(number, numbers.Real):
        raise PluginError(f"{name} returned a {type(value).__name__}; expected one finite number")
    if not math.isfinite(number):
        raise PluginError(f"{name} returned {float(number)}; expected one finite number")
    return float(number)

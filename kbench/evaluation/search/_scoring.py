"""The score of a fitted learner in searches."""

from __future__ import annotations

from typing import Any

from kbench.errors import PluginError
from kbench.evaluation.measures import COMPUTE, Criterion, applies
from kbench.evaluation.outputs import Predictions, predictions_of, restored
from kbench.evaluation.targets import Truth


def score(learner: Any, Z: Any, truth: Truth, criterion: Criterion, what: str) -> float | None:
    """Return a measure of a fitted learner's predictions; None where it is not defined.

    The accuracy of a rule that draws its labels is the expected one, which is exact.
    `what` is its name for messages. PluginError is raised where it returns what cannot
    be scored, or lacks what the measure needs.
    """
    measure, n = criterion.measure, len(truth.y)
    draws = hasattr(learner, "label_probabilities")
    if measure.name in ("accuracy", "expected_error") and draws:
        given = Predictions(learner.predict(Z), None, None, learner.label_probabilities(Z))
        error = COMPUTE["expected_error"](truth, _checked(given, truth, n, what))
        return 1.0 - error if error is not None and measure.name == "accuracy" else error
    if measure.needs == "predictions":
        given = Predictions(learner.predict(Z))
    else:
        given = predictions_of(learner, Z, learner.predict(Z), truth.task)
    return score_predictions(given, truth, criterion, what)


def score_predictions(
    given: Predictions, truth: Truth, criterion: Criterion, what: str
) -> float | None:
    """Return a measure of predictions, standardised for regression; see `score`."""
    measure = criterion.measure
    checked = _checked(given, truth, len(truth.y), what)
    if not applies(measure, truth.task, checked):
        needs = {"distribution": "predictive distribution", "scores": "scores of classes"}
        raise PluginError(
            f"{what} has no {needs.get(measure.needs, measure.needs)}, which the "
            f"search_measure {measure.name!r} needs"
        )
    return criterion.compute(truth, checked)


def _checked(given: Predictions, truth: Truth, n_rows: int, what: str) -> Predictions:
    if truth.task == "regression":
        return restored(given, truth.scale, n_rows, what)
    return given.checked(truth.task, truth.classes, n_rows, what)

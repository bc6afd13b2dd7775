"""The score of a fitted learner in searches."""

from __future__ import annotations

from typing import Any

from kbench.errors import PluginError
from kbench.evaluation.measures import COMPUTE, applies
from kbench.evaluation.outputs import Predictions, predictions_of, restored
from kbench.evaluation.targets import Truth
from kbench.records import Measure


def score(learner: Any, Z: Any, truth: Truth, measure: Measure, what: str) -> float:
    """Return a measure of a fitted learner's predictions.

    `what` is its name for messages. PluginError is raised where it returns what cannot
    be scored, or lacks what the measure needs.
    """
    if measure.needs == "predictions":
        draws = measure.name == "expected_error" and hasattr(learner, "label_probabilities")
        given = Predictions(
            learner.predict(Z),
            label_probabilities=learner.label_probabilities(Z) if draws else None,
        )
    else:
        given = predictions_of(learner, Z, learner.predict(Z), truth.task)
    n = len(truth.y)
    if truth.task == "regression":
        checked = restored(given, truth.scale, n, what)
    else:
        checked = given.checked(truth.task, truth.classes, n, what)
    if not applies(measure, truth.task, checked):
        needs = {"distribution": "predictive distribution", "scores": "scores of classes"}
        raise PluginError(
            f"{what} has no {needs.get(measure.needs, measure.needs)}, which the "
            f"search_measure {measure.name!r} needs"
        )
    return COMPUTE[measure.name](truth, checked)

"""The accuracy of a fitted learner in searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from kbench.evaluation.outputs import checked_labels, checked_probabilities
from kbench.evaluation.scores import probability_of


def expected_accuracy(learner: Any, Z: Any, y: np.ndarray, classes: np.ndarray, what: str) -> float:
    """Return the expected accuracy of a fitted classifier, which is exact.

    A rule that draws its labels has ``label_probabilities``, which are scored
    without a draw. `classes` are the labels of its training part, `what` is its
    name for messages. PluginError is raised where it returns anything else than
    labels or probabilities.
    """
    if hasattr(learner, "label_probabilities"):
        given = checked_probabilities(
            learner.label_probabilities(Z), len(y), len(classes), f"label_probabilities of {what}"
        )
        return float(np.mean(probability_of(given, classes, y)))
    return float(np.mean(checked_labels(learner.predict(Z), classes, len(y), what) == y))

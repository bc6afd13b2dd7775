"""The accuracy of a fitted learner in searches and evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np


def expected_accuracy(
    learner: Any, Z: Any, y: np.ndarray, predicted: np.ndarray | None = None
) -> float:
    """Return the expected accuracy of a fitted classifier.

    Where a rule draws its labels, the learner's own ``score`` computes it without a
    draw. scikit-learn's ``score`` counts hits, and checks its arguments anew each time,
    which is slow in searches on small sets; hits are counted here instead, of
    `predicted` where the predictions are known.
    """
    from sklearn.base import ClassifierMixin

    score = getattr(type(learner), "score", ClassifierMixin.score)
    if score is not ClassifierMixin.score:
        return float(learner.score(Z, y))
    return float(np.mean((learner.predict(Z) if predicted is None else predicted) == y))

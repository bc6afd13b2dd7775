"""The accuracy of a fitted learner, as searches and evaluations count it."""

from __future__ import annotations

from typing import Any

import numpy as np


def expected_accuracy(
    learner: Any, Z: Any, y: np.ndarray, predicted: np.ndarray | None = None
) -> float:
    """Return the accuracy that the learner's rule has in expectation.

    Where a rule draws its labels, the learner's own ``score`` tells it without
    a draw. scikit-learn's counts hits, and checks its arguments anew each time,
    which shows in searches on small sets; hits are counted here instead.

    Parameters
    ----------
    learner : fitted classifier
    Z : ndarray or CSR matrix, shape (n_samples, n_components)
    y : ndarray, shape (n_samples,)
    predicted : ndarray, shape (n_samples,), optional
        What it predicts, where that is known.
    """
    from sklearn.base import ClassifierMixin

    score = getattr(type(learner), "score", ClassifierMixin.score)
    if score is not ClassifierMixin.score:
        return float(learner.score(Z, y))
    return float(np.mean((learner.predict(Z) if predicted is None else predicted) == y))

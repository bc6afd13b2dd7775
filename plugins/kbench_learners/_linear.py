"""Parts that the linear learners share."""

from __future__ import annotations

import numpy as np

from kbench_learners._reduction import MarginClassifier


class LinearClassifier(MarginClassifier):
    """A classifier with a row of `coef_` and a value of `intercept_` for each problem."""

    def _margins(self, X) -> np.ndarray:
        return np.asarray(X @ self.coef_.T) + self.intercept_

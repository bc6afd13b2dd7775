"""Parts that the linear learners share."""

from __future__ import annotations

import numpy as np

from kbench_learners._estimator import WeightedRegressor
from kbench_learners._reduction import MarginClassifier


class LinearClassifier(MarginClassifier):
    """A classifier with a row of `coef_` and a value of `intercept_` for each problem."""

    def _margins(self, X) -> np.ndarray:
        return np.asarray(X @ self.coef_.T) + self.intercept_


class LinearRegressor(WeightedRegressor):
    """A regressor with coefficients `coef_` and a number `intercept_`."""

    def _predicted(self, X) -> np.ndarray:
        return np.asarray(X @ self.coef_) + self.intercept_

"""Parts that the linear learners share."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from kbench_learners._estimator import WeightedRegressor
from kbench_learners._reduction import MarginClassifier


class LinearClassifier(MarginClassifier):
    """A classifier with a row of `coef_` and a value of `intercept_` for each problem."""

    def _margins(self, X) -> np.ndarray:
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def pair_decisions(self, X):
        """Return signed decisions of all pairs of classes, "ovo" only.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples, n_classes, n_classes)
            Entry (k, l) is positive for class k against class l.
        """
        margins = self._checked_margins(X)
        k = len(self.classes_)
        out = np.zeros((len(margins), k, k))
        for number, (first, second) in enumerate(combinations(range(k), 2)):
            out[:, first, second] = margins[:, number]
            out[:, second, first] = -margins[:, number]
        return out


class LinearRegressor(WeightedRegressor):
    """A regressor with coefficients `coef_` and a number `intercept_`."""

    def _predicted(self, X) -> np.ndarray:
        return np.asarray(X @ self.coef_) + self.intercept_

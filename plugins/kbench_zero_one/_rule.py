"""The randomised rule, shared by the classifiers that predict a probability."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class RandomisedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that draws labels from `predict_proba`, with its exact expected error."""

    def label_probabilities(self, X):
        """Return how likely the rule is to draw each label; kbench scores it without a draw.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self.predict_proba(X)

    def expected_error(self, X, y):
        """Return the expected 0-1 error of drawing labels, exactly: no draw is made.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels.

        Returns
        -------
        float
            The mean of |h(x) - y| (equation 1) with the probability h in [0, 1]. A label
            that was not in the training part is always missed.
        """
        return float(np.mean(1.0 - self._probability_of(y, X)))

    def _probability_of(self, y, X) -> np.ndarray:
        """Return the probability of each row's label, shape (n_samples,)."""
        matches = np.asarray(y)[:, None] == self.classes_
        return np.sum(self.predict_proba(X) * matches, axis=1)

"""The inputs with their squares."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class QuadraticMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """``phi(x) = (x, scale * x^2)``, entry by entry."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y=None):
        """Remember the number of features."""
        self._n_features_out = 2 * validate_data(self, X).shape[1]
        return self

    def transform(self, X):
        """Compute the features."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.hstack([X, self.scale * X**2])

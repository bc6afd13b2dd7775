"""Estimators of other libraries, stopped early on held-out training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench_learners._estimator import class_numbers, row_weights

LEAST_ROWS = 500
"""With fewer rows nothing is held out: a tenth is too few to choose by.

On six data sets of 150 to 569 rows (5 folds, 10 rounds without improvement), gradient boosting
with early stopping had between 0.02 less and 0.01 more accuracy than 100 rounds, 0.006 less in
the mean; on one with 768 rows it had 0.03 more.
"""

SHARE = 0.1
"""Share of the training rows that is held out."""


def can_hold_out(y, is_classifier: bool) -> bool:
    """Return True if a stratified tenth of the rows can be held out.

    There must be at least `LEAST_ROWS`, of each class at least two, and no more classes than
    held-out rows.
    """
    n = len(y)
    if n < LEAST_ROWS:
        return False
    if not is_classifier:
        return True
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.min() >= 2 and len(counts) <= int(SHARE * n))


class HeldOut(BaseEstimator):
    """An estimator that fits one of another library, made by `_model`.

    A subclass returns an unfitted model in ``_model(stops, n_classes)``, with early stopping if
    `stops`, and fits it in `_fit_model` where this takes more than ``fit(X, y)``.
    """

    _takes_missing = False

    def _fit_checked(self, X, y, *weights) -> None:
        """Validate a training set and its weights, if it may have any, and fit the model."""
        X, y = self._validated(X, y, y_numeric=not self._is_classifier)
        target = self._target(y)
        stops = can_hold_out(target, self._is_classifier)
        n_classes = len(self.classes_) if self._is_classifier else 0
        weights = [row_weights(each, len(target)) for each in weights]
        self.model_ = self._fit_model(self._model(stops, n_classes), X, target, stops, *weights)

    def _fit_model(self, model, X, y, stops: bool) -> Any:
        return model.fit(X, y)

    def _validated(self, *data, **options):
        finite = "allow-nan" if self._takes_missing else True
        return validate_data(self, *data, dtype=np.float64, ensure_all_finite=finite, **options)

    def _rows(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags


class HeldOutClassifier(ClassifierMixin, HeldOut):
    """A classifier that fits one of another library."""

    _is_classifier = True

    def _target(self, y) -> np.ndarray:
        return class_numbers(self, y)

    def predict(self, X):
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X):
        """Estimate the probabilities of the classes.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        X = self._rows(X)
        return self.model_.predict_proba(X)


class HeldOutRegressor(RegressorMixin, HeldOut):
    """A regressor that fits one of another library."""

    _is_classifier = False

    def _target(self, y) -> np.ndarray:
        return np.asarray(y, dtype=np.float64)

    def predict(self, X):
        """Predict the targets.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        X = self._rows(X)
        return self.model_.predict(X)


class Unweighted:
    """`fit` of an estimator that takes no weights of the rows."""

    def fit(self, X, y):
        """Fit the estimator.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels of at least two classes, or targets.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fit_checked(X, y)
        return self


class Weighted:
    """`fit` of an estimator that takes weights of the rows."""

    def fit(self, X, y, sample_weight=None):
        """Fit the estimator.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels of at least two classes, or targets.
        sample_weight : array-like, shape (n_samples,), optional
            Nonnegative weights of the rows' losses; all 1 by default.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._fit_checked(X, y, sample_weight)
        return self

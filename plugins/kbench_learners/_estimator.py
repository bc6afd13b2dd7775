"""Parts that own classifiers and regressors share: checks of inputs, reports of convergence."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data


def check_classes(estimator: BaseEstimator, classes: np.ndarray) -> None:
    """Refuse targets of one class."""
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class, {classes[0]!r}; {type(estimator).__name__} needs samples "
            "of at least 2 classes"
        )


def class_numbers(estimator: BaseEstimator, y) -> np.ndarray:
    """Set `classes_` of an estimator, and return labels as their numbers."""
    check_classification_targets(y)
    estimator.classes_, codes = np.unique(y, return_inverse=True)
    check_classes(estimator, estimator.classes_)
    return codes.reshape(-1)


class Estimator(BaseEstimator):
    """An estimator on rows of float64, which says whether its solution has converged."""

    _takes_sparse = True
    _order: str | None = None  # memory layout that `_fit` needs

    def _validated(self, *data, **options):
        sparse = "csr" if self._takes_sparse else False
        return validate_data(self, *data, accept_sparse=sparse, dtype=np.float64, **options)

    def _fit_checked(self, X, y, **weights) -> None:
        """Validate parameters and a training set, and fit; `_fit` gets the weights."""
        self._check_parameters()
        X, y = self._training_data(X, y)
        self._fit(X, y, **weights)

    def _complaints(self) -> list[str]:
        """Return messages about solutions that have not converged."""
        return []

    def _warn_unless_converged(self) -> None:
        if not getattr(self, "converged_", True):
            for message in self._complaints():
                warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


class Regressor(RegressorMixin, Estimator):
    """A regressor of one target.

    A subclass checks its parameters in `_check_parameters`, fits in `_fit`, and returns
    predictions of validated inputs in `_predicted`.
    """

    def fit(self, X, y):
        """Fit the regressor.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel.
        y : array-like, shape (n_samples,)
            Targets.

        Returns
        -------
        self
            The fitted regressor.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        self._fit_checked(X, y)
        self._warn_unless_converged()
        return self

    def predict(self, X):
        """Predict the targets.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows with a precomputed kernel.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        check_is_fitted(self)
        return self._predicted(self._validated(X, reset=False))

    def _training_data(self, X, y):
        """Validate a training set."""
        X, y = self._validated(X, y, order=self._order, y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)


class WeightedRegressor(Regressor):
    """A regressor that takes weights of the rows; `_fit` gets them, or None."""

    def fit(self, X, y, sample_weight=None):
        """Fit the regressor.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Targets.
        sample_weight : array-like, shape (n_samples,), optional
            Nonnegative weights of the rows' losses; all 1 by default.

        Returns
        -------
        self
            The fitted regressor.

        Raises
        ------
        ValueError
            If a parameter or a weight is out of range.
        """
        self._fit_checked(X, y, sample_weight=sample_weight)
        self._warn_unless_converged()
        return self


def row_weights(sample_weight, n_samples: int) -> np.ndarray | None:
    """Return weights of the rows in float64; None where none are given."""
    if sample_weight is None:
        return None
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}; expected ({n_samples},)")
    if weight.min() < 0:
        raise ValueError(f"sample_weight must be nonnegative, got {weight.min():g}")
    if not weight.any():
        raise ValueError("all values of sample_weight are zero")
    return weight

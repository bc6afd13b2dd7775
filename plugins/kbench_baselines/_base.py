"""The common base of the maps, the scale of their kernels, and the inputs as they are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.metrics.pairwise import linear_kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels.bandwidths import median_distance
from kbench.parameters import check_coefficients, check_number

FLOATS = (np.float64, np.float32)
"""The dtypes that maps work in; anything else is converted to the first."""


class BaselineMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that validates its inputs and keeps float32.

    Subclasses have ``_fit(X)``, which checks the parameters and returns the number
    of features, and ``_transform(X)``. Both get validated inputs.
    """

    _accept_sparse: str | tuple[str, ...] | bool = "csr"

    def fit(self, X, y=None):
        """Fit the map to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Training data; dense where the map takes no sparse inputs.
        y : ignored

        Returns
        -------
        self
        """
        X = validate_data(self, X, accept_sparse=self._accept_sparse, dtype=FLOATS)
        self._n_features_out = self._fit(X)
        return self

    def transform(self, X):
        """Map `X` to features.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data; dense where the map takes no sparse inputs.

        Returns
        -------
        {ndarray, CSR matrix}, shape (n_samples, n_features_out)
            float32 for float32 inputs, else float64.
        """
        check_is_fitted(self)
        formats = self._accept_sparse
        X = validate_data(self, X, accept_sparse=formats, dtype=FLOATS, reset=False)
        return self._transform(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class DifferentiableMap(BaselineMap):
    """A map whose features have gradients in the inputs.

    Subclasses have ``_gradient(X, coef)``, which gets validated dense inputs and
    coefficients of shape (n_outputs, n_features_out), and returns an array of shape
    (n_outputs, n_samples, n_features).
    """

    def input_gradient(self, X, coef):
        """Compute gradients of ``f(x) = coef . phi(x)`` in x.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Where. Memory is that of a few embeddings: give blocks of rows.
        coef : array-like, shape (n_features_out,) or (n_outputs, n_features_out)
            Coefficients of one function of the features, or of several.

        Returns
        -------
        ndarray, shape (n_samples, n_features) or (n_outputs, n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        coef = np.asarray(coef, dtype=np.float64)
        check_coefficients(coef.shape, self._n_features_out)
        gradients = self._gradient(X, np.atleast_2d(coef))
        return gradients[0] if coef.ndim == 1 else gradients


def dense(X):
    """Return `X` as an ndarray."""
    return X.toarray() if hasattr(X, "toarray") else X


def root_mean_square(X):
    """Root of the mean squared length of the rows of an ndarray or sparse matrix."""
    values = np.asarray(X.data if sp.issparse(X) else X, dtype=np.float64)
    # squares of multiples of the largest value neither overflow nor vanish
    largest = np.abs(values).max(initial=0.0) or 1.0
    return float(largest * np.linalg.norm(values / largest) / np.sqrt(X.shape[0]))


def check_bandwidth(estimator, metric):
    """Check the parameters `bandwidth` and `bandwidth_factor` of a map; return the heuristic."""
    heuristic = "norm" if metric == "inner" else "median"
    check_number(estimator.bandwidth_factor, "bandwidth_factor", above=0)
    bandwidth = estimator.bandwidth
    if not (isinstance(bandwidth, str) and bandwidth == heuristic):
        check_number(bandwidth, "bandwidth", above=0, otherwise=repr(heuristic))
    return heuristic


def resolve_bandwidth(estimator, X, metric):
    """Turn the parameters `bandwidth` and `bandwidth_factor` of a map into a number.

    It is the product of both. The `bandwidth` "median" stands for the median distance in
    the metric "l2" or "l1". For "inner", where the kernel is a function of
    ``x.z / bandwidth^2``, "norm" stands for the root mean square length of the rows.
    """
    heuristic, bandwidth = check_bandwidth(estimator, metric), estimator.bandwidth
    if isinstance(bandwidth, str):
        is_norm = heuristic == "norm"
        bandwidth = (root_mean_square(X) or 1.0) if is_norm else median_distance(X, metric=metric)
    return float(estimator.bandwidth_factor * bandwidth)


class Identity(OneToOneFeatureMixin, BaselineMap):
    """The inputs as they are, to compare other maps with.

    Examples
    --------
    >>> Identity().fit_transform([[1.0, 2.0], [3.0, 4.0]])
    array([[1., 2.],
           [3., 4.]])
    """

    _accept_sparse = ("csr", "csc")

    def _fit(self, X):
        return X.shape[1]

    def _transform(self, X):
        return X


def linear_gram(fitted, X, Y):
    """Gram matrix of the linear kernel."""
    return linear_kernel(X, Y)

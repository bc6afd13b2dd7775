"""The scale of the maps' kernels, and the inputs as they are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.base import OneToOneFeatureMixin
from sklearn.metrics.pairwise import linear_kernel

from kbench.estimators import ExplicitMap
from kbench.kernels import median_distance


def dense(X):
    """Return `X` as an ndarray."""
    return X.toarray() if hasattr(X, "toarray") else X


def root_mean_square(X):
    """Root of the mean squared length of the rows of an ndarray or sparse matrix."""
    values = np.asarray(X.data if sp.issparse(X) else X, dtype=np.float64)
    # squares of multiples of the largest value neither overflow nor vanish
    largest = np.abs(values).max(initial=0.0) or 1.0
    return float(largest * np.linalg.norm(values / largest) / np.sqrt(X.shape[0]))


def resolve_bandwidth(estimator, X, metric):
    """Turn the parameters `bandwidth` and `bandwidth_factor` of a map into a number.

    It is the product of both. The `bandwidth` "median" stands for the median distance in
    the metric "l2" or "l1". For "inner", where the kernel is a function of
    ``x.z / bandwidth^2``, "norm" stands for the root mean square length of the rows.
    """
    bandwidth = estimator.bandwidth
    if isinstance(bandwidth, str):
        is_norm = metric == "inner"
        bandwidth = (root_mean_square(X) or 1.0) if is_norm else median_distance(X, metric=metric)
    return float(estimator.bandwidth_factor * bandwidth)


class Identity(OneToOneFeatureMixin, ExplicitMap):
    """The identity map: the unchanged inputs.

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

"""The inputs as they are."""

from __future__ import annotations

from sklearn.base import OneToOneFeatureMixin
from sklearn.metrics.pairwise import linear_kernel

from kbench_baselines._base import BaselineMap


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

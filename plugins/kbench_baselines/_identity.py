"""The inputs as they are."""

from __future__ import annotations

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.metrics.pairwise import linear_kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench_baselines._checks import FLOATS


class Identity(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """The inputs as they are: every comparison's first line.

    Examples
    --------
    >>> Identity().fit_transform([[1.0, 2.0], [3.0, 4.0]])
    array([[1., 2.],
           [3., 4.]])
    """

    def fit(self, X, y=None):
        """Remember the number of features.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Training data.
        y : ignored

        Returns
        -------
        self
        """
        validate_data(self, X, accept_sparse=["csr", "csc"], dtype=FLOATS)
        return self

    def transform(self, X):
        """Return `X`.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data.

        Returns
        -------
        {ndarray, sparse matrix}, shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse=["csr", "csc"], dtype=FLOATS, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def linear_gram(fitted, X, Y):
    """Gram matrix of the linear kernel."""
    return linear_kernel(X, Y)

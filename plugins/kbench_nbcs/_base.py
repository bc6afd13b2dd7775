"""Parts that the nested map and the mesh share."""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.estimators import InputGradient, is_lazy
from kbench.parameters import check_choice, check_parameters


class CoordinateMap(
    InputGradient, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Base of transformers from dense or sparse rows to sparse coordinates."""

    takes_lazy_rows = True

    def fit(self, X, y=None):
        """Place the simplices around the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Sparse input is made dense a few rows at a time where it has to be.
        y : array-like of shape (n_samples,), optional
            Labels; used by adaptive splits only.

        Returns
        -------
        self
        """
        check_parameters(self)
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            check_choice(self.dtype, "dtype", ("float64", "float32"))
        self._fit(X, y)
        self._n_features_out = self.n_vertices_
        return self

    def transform(self, X):
        """Compute barycentric coordinates.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        CSR matrix of shape (n_samples, n_vertices_)
            One stored value per vertex of each simplex that contains the row (it
            may be zero; a mesh leaves unknown vertices out), in no order of
            columns; indices are int32 below 2**31 stored values.
        """
        check_is_fitted(self)
        return self._transform(X)

    def _validated(self, X, y="no_validation", **options):
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        if is_lazy(X):
            validate_data(self, X[:1], **options)
            return X
        return validate_data(self, X, y, **options)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def dense(X):
    """Return `X` as an ndarray."""
    return X.toarray() if hasattr(X, "toarray") else X


def index_type(n_values):
    """One integer type for both index arrays of a CSR matrix, or scipy would copy them."""
    return np.int32 if n_values <= np.iinfo(np.int32).max else np.int64


def random_frame(d, p, random_state):
    """Draw an orthonormal p-frame in d dimensions, uniformly (Haar): a matrix of shape (d, p)."""
    q, r = np.linalg.qr(random_state.standard_normal((d, p)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)

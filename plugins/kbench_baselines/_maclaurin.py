"""Random Maclaurin features of kernels that are functions of the inner product."""

from __future__ import annotations

import numpy as np
from scipy.special import comb
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench_baselines._checks import (
    FLOATS,
    check_choice,
    check_count,
    check_nonnegative,
    check_positive,
)


class RandomMaclaurinFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random Maclaurin features: products of random signed sums.

    A feature of degree N is ``c prod_j (w_j . x)`` over N random sign vectors.
    N is drawn in proportion to the size of its term in the series at the mean
    squared length of the training rows, in place of Kar and Karnick's geometric
    distribution: still unbiased, with less variance.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    kernel : {"polynomial", "exponential"}, default "exponential"
        ``(gamma x.z + coef0)^degree`` or ``exp(gamma x.z)``.
    degree : int, default 2
        Of the polynomial kernel.
    coef0 : float, default 1.0
        Of the polynomial kernel, >= 0.
    gamma : float or "norm", default "norm"
        Factor of the inner product. "norm" is ``gamma_factor`` over the mean
        squared length of the training rows.
    gamma_factor : float, default 1.0
        Multiplies the heuristic; without effect where `gamma` is a number.
    random_state : int, RandomState or None, default None
        Seed of degrees and signs.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of the kernel.
    degrees_ : ndarray of int, shape (n_components,)
        Degree of each feature, in descending order.
    factors_ : ndarray, shape (n_components,)
        c of each feature.
    signs_ : list of ndarray
        The j-th holds w_j of all features of degree above j, one a column.

    References
    ----------
    P. Kar and H. Karnick, Random feature maps for dot product kernels, AISTATS
    2012, algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> RandomMaclaurinFeatures(n_components=50, random_state=0).fit_transform(X).shape
    (150, 50)
    """

    def __init__(
        self,
        n_components=300,
        *,
        kernel="exponential",
        degree=2,
        coef0=1.0,
        gamma="norm",
        gamma_factor=1.0,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.random_state = random_state

    def fit(self, X, y=None):
        """Resolve the scale on `X`, and draw degrees and signs.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Training data.
        y : ignored

        Returns
        -------
        self
        """
        check_count(self, "n_components", "degree")
        check_choice(self, "kernel", ("polynomial", "exponential"))
        check_nonnegative(self, "coef0")
        check_positive(self, "gamma_factor")
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        rng = check_random_state(self.random_state)
        squares = X.multiply(X).sum() if hasattr(X, "multiply") else np.vdot(X, X)
        mean_square = float(squares) / X.shape[0] or 1.0
        if isinstance(self.gamma, str):
            if self.gamma != "norm":
                raise ValueError(f"gamma must be a number > 0 or 'norm', got {self.gamma!r}")
            self.gamma_ = float(self.gamma_factor / mean_square)
        else:
            check_positive(self, "gamma")
            self.gamma_ = float(self.gamma)

        size = self.gamma_ * mean_square
        if self.kernel == "exponential":
            # the terms of exp(size) are Poisson probabilities up to a factor,
            # so that what is divided out is the same for every degree
            degrees, sum_of_terms = rng.poisson(size, size=self.n_components), np.exp(size)
        else:
            order = np.arange(self.degree + 1)
            terms = comb(self.degree, order) * size**order * self.coef0 ** (self.degree - order)
            sum_of_terms = terms.sum()
            degrees = rng.choice(order, size=self.n_components, p=terms / sum_of_terms)
        self.degrees_ = np.sort(degrees)[::-1]
        # a_N gamma^N / P(N) = sum_of_terms / mean_square^N
        self.factors_ = np.sqrt(sum_of_terms / self.n_components) * np.power(
            mean_square, -self.degrees_ / 2.0
        )
        self.signs_ = [
            rng.choice(
                np.array([-1.0, 1.0], dtype=X.dtype),
                size=(X.shape[1], int((self.degrees_ > j).sum())),
            )
            for j in range(self.degrees_[0])
        ]
        self._n_features_out = self.n_components
        return self

    def transform(self, X):
        """Map `X` to features whose inner products approximate the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray, shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        features = np.empty((X.shape[0], self.n_components), dtype=X.dtype)
        features[:] = self.factors_
        for signs in self.signs_:
            features[:, : signs.shape[1]] *= safe_sparse_dot(X, signs.astype(X.dtype, copy=False))
        return features

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def maclaurin_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `RandomMaclaurinFeatures`."""
    inner = np.asarray(safe_sparse_dot(X, Y.T, dense_output=True), dtype=np.float64)
    if fitted.kernel == "exponential":
        return np.exp(fitted.gamma_ * inner)
    return (fitted.gamma_ * inner + fitted.coef0) ** fitted.degree

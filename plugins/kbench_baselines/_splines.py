"""Additive splines: scikit-learn's SplineTransformer."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import SplineTransformer
from sklearn.utils.validation import check_is_fitted

from kbench.parameters import check_choice, check_integer
from kbench_baselines._base import BaselineMap


class SplineFeatures(BaselineMap):
    """B-splines of each input by itself: scikit-learn's SplineTransformer.

    A linear learner on them is an additive model: a sum of smooth functions of one input each.
    Take it where inputs act one by one and their effects should be read from the model, or as the
    baseline that shows whether a kernel gains by interactions. It has
    ``n_knots + degree - 1`` columns per input.

    Parameters
    ----------
    n_knots : int, default 5
        Number of knots of each input, >= 2.
    degree : int, default 3
        Degree of the pieces; 0 is a histogram, 1 is piecewise linear.
    knots : {"quantile", "uniform"}, default "quantile"
        Knots at quantiles of the training inputs, or equally spaced between their ends. An input
        whose quantiles are equal has equally spaced knots.

    Attributes
    ----------
    knots_ : ndarray, shape (n_knots, n_features)
        The knots.
    splines_ : SplineTransformer
        The fitted map of scikit-learn.

    Notes
    -----
    The splines of an input add up to 1. Beyond the training inputs they are constant.

    References
    ----------
    P. H. C. Eilers and B. D. Marx, Flexible smoothing with B-splines and penalties, Statistical
    Science 11 (1996).

    Examples
    --------
    >>> phi = SplineFeatures(n_knots=3, degree=1).fit_transform([[0.0], [1.0], [2.0], [4.0]])
    >>> phi.sum(axis=1)
    array([1., 1., 1., 1.])
    """

    _accept_sparse = False

    def __init__(self, n_knots=5, *, degree=3, knots="quantile"):
        self.n_knots = n_knots
        self.degree = degree
        self.knots = knots

    def _fit(self, X):
        check_integer(self.n_knots, "n_knots", least=2)
        check_integer(self.degree, "degree", least=0)
        check_choice(self.knots, "knots", ("quantile", "uniform"))
        self.knots_ = self._places(X)
        self.splines_ = SplineTransformer(
            n_knots=self.n_knots, degree=self.degree, knots=self.knots_
        ).fit(X)
        return self.splines_.n_features_out_

    def _places(self, X):
        """Knots of all inputs, strictly increasing, shape (n_knots, n_features)."""
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        high = np.where(high > low, high, low + np.maximum(1.0, np.abs(low)))
        uniform = np.linspace(low, high, self.n_knots)
        if self.knots == "uniform":
            return uniform
        quantiles = np.quantile(X.astype(np.float64), np.linspace(0, 1, self.n_knots), axis=0)
        return np.where((np.diff(quantiles, axis=0) > 0).all(axis=0), quantiles, uniform)

    def _transform(self, X):
        # as `extrapolation="constant"`, which fails for degree 0
        inside = np.clip(X, self.knots_[0], self.knots_[-1])
        return self.splines_.transform(inside).astype(X.dtype, copy=False)

    def get_feature_names_out(self, input_features=None):
        """Names of the splines, such as ``x0_sp_0``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the inputs; those seen in ``fit`` by default.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if input_features is None:
            input_features = names
        elif names is not None and list(input_features) != list(names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return self.splines_.get_feature_names_out(input_features)

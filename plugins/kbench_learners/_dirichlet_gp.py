"""Gaussian process classification as regression on transformed labels, on explicit features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kbench.parameters import check_integer, check_number
from kbench_learners._estimator import Estimator, class_numbers

LABELS = "labels"

# A covariance matrix of this size for each class takes about a second.
_MAX_COLUMNS = 6000

_BLOCK_ENTRIES = 4_000_000


class DirichletGPClassifier(ClassifierMixin, Estimator):
    r"""Gaussian processes on the logarithms of Dirichlet-distributed class probabilities.

    A label is one observation of a Dirichlet distribution with parameters :math:`\alpha`, and
    :math:`\alpha + 1` for the class that was seen. Its components are gamma variables, whose
    logarithms are taken as normal with

    .. math:: v_{ik} = \log(1 + 1 / \alpha_{ik}), \quad
              \tilde y_{ik} = \log \alpha_{ik} - v_{ik} / 2,

    so that each class is a linear regression of :math:`\tilde y_k` on the features, with normal
    weights and noise of the known variances :math:`v_{ik}`. It is solved in closed form. Take it
    for class probabilities by an explicit feature map without an iterative fit; its errors are
    about those of ridge regression on the labels.

    Parameters
    ----------
    alpha : float, default 0.01
        Parameter :math:`\alpha` of a class that was not seen, positive. The smaller it is, the
        more a label says.
    weight_variance : float or "labels", default "labels"
        Variance of each coefficient before the data are seen: the variance of a function value
        where features have length 1. By default the variance of all transformed labels.
    n_draws : int, default 1000
        Draws of the function values of a row, of which the mean of the softmax is the
        probability. All rows have the same normal variables, so that a prediction does not
        depend on the other rows.
    random_state : int, RandomState or None, default None
        Draws these variables.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    coef_ : ndarray, shape (n_classes, n_features)
        Mean of the posterior.
    prior_mean_ : float
        Mean of all transformed labels, from which the functions deviate.
    weight_variance_ : float
        The variance that was used.

    Raises
    ------
    ValueError
        For parameters out of range, one class, or more than 6,000 features.

    Notes
    -----
    A class has two noise variances, that of its rows and that of the others. With Z the features
    and :math:`Z_k` those of the class, the precision of its weights is
    :math:`I / s + Z'Z / v_0 + (1 / v_1 - 1 / v_0) Z_k'Z_k`, so that the products of all classes
    cost two Gram matrices, and a class one Cholesky factor.

    References
    ----------
    D. Milios, R. Camoriano, P. Michiardi, L. Rosasco and M. Filippone, Dirichlet-based Gaussian
    processes for large-scale calibrated classification, NeurIPS 2018, section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DirichletGPClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1).tolist()
    [[1.0, 0.0, 0.0]]
    """

    _takes_sparse = False

    def __init__(self, alpha=0.01, weight_variance=LABELS, n_draws=1000, random_state=None):
        self.alpha = alpha
        self.weight_variance = weight_variance
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(self, X, y):
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Features.
        y : array-like, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
            The fitted classifier.

        Raises
        ------
        ValueError
            If a parameter is out of range, there is one class only, or there are more than
            6,000 features.
        """
        self._fit_checked(X, y)
        return self

    def predict_proba(self, X):
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            Rows sum to 1.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        out = np.empty((len(X), len(self.classes_)))
        step = max(1, _BLOCK_ENTRIES // max(self._normals.size, X.shape[1]))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            mean, deviation = self._function(X[rows])
            drawn = mean[:, None, :] + deviation[:, None, :] * self._normals
            out[rows] = softmax(drawn, axis=2).mean(axis=1)
        return out

    def predict(self, X):
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", above=0)
        check_integer(self.n_draws, "n_draws", least=1)
        given = self.weight_variance
        if not (isinstance(given, str) and given == LABELS):
            check_number(given, "weight_variance", above=0, otherwise=repr(LABELS))

    def _training_data(self, X, y):
        X, y = self._validated(X, y)
        codes = class_numbers(self, y)
        if X.shape[1] > _MAX_COLUMNS:
            raise ValueError(
                f"{type(self).__name__} factorises a matrix of the columns for each class, up to "
                f"{_MAX_COLUMNS:,}, and there are {X.shape[1]:,}; take fewer features"
            )
        return X, codes

    def _fit(self, Z, codes) -> None:
        n_classes, p = len(self.classes_), Z.shape[1]
        seen, other = _log_gamma(self.alpha + 1.0), _log_gamma(self.alpha)
        # of the n n_classes transformed labels, a share of 1 / n_classes is that of a seen class
        share = 1.0 / n_classes
        self.prior_mean_ = share * seen.mean + (1.0 - share) * other.mean
        spread = share * (1.0 - share) * (seen.mean - other.mean) ** 2
        given = self.weight_variance
        self.weight_variance_ = spread if isinstance(given, str) else float(given)
        gram, total = Z.T @ Z, Z.sum(axis=0)
        more = 1.0 / seen.variance - 1.0 / other.variance
        self.coef_ = np.empty((n_classes, p))
        self._factors = np.empty((n_classes, p, p))
        for k in range(n_classes):
            own = Z[codes == k]
            precision = gram / other.variance + more * (own.T @ own)
            precision.flat[:: p + 1] += 1.0 / self.weight_variance_
            sums = own.sum(axis=0)
            moments = (seen.mean - self.prior_mean_) / seen.variance * sums
            moments += (other.mean - self.prior_mean_) / other.variance * (total - sums)
            factor = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
            half = solve_triangular(factor, moments, lower=True, check_finite=False)
            self.coef_[k] = solve_triangular(factor, half, lower=True, trans="T")
            self._factors[k] = factor
        rng = check_random_state(self.random_state)
        self._normals = rng.standard_normal((self.n_draws, n_classes))

    def _function(self, Z) -> tuple[np.ndarray, np.ndarray]:
        """Return means and deviations of the functions at each row, shape (rows, n_classes)."""
        mean = self.prior_mean_ + Z @ self.coef_.T
        deviation = np.empty_like(mean)
        for k, factor in enumerate(self._factors):
            half = solve_triangular(factor, Z.T, lower=True, check_finite=False)
            deviation[:, k] = np.sqrt(np.einsum("ij,ij->j", half, half))
        return mean, deviation


class _Label(NamedTuple):
    """Mean and variance of the logarithm of a gamma variable, taken as normal."""

    mean: float
    variance: float


def _log_gamma(shape: float) -> _Label:
    variance = float(np.log1p(1.0 / shape))
    return _Label(float(np.log(shape)) - variance / 2.0, variance)

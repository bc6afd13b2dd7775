"""Ridge regression on the labels, in the space of a kernel."""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import Precomputed, resolve_kernel
from kbench_learners._reduction import chosen_classes, encoded

_CHUNK_ENTRIES = 2**20


def ridge_coefficients(K, targets, alpha, fit_intercept):
    """Solve ``(K + alpha I) a + b = targets`` with, for a bias, ``sum(a) = 0``.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        Gram matrix; its diagonal is overwritten.
    targets : ndarray, shape (n, n_targets)
        Values to fit.
    alpha : float
        Positive.
    fit_intercept : bool
        Whether b is free or 0.

    Returns
    -------
    a : ndarray, shape (n, n_targets)
        Dual coefficients.
    b : ndarray, shape (n_targets,)
        Biases, the minimisers without penalty.
    """
    n = len(K)
    K.flat[:: n + 1] += alpha
    right = np.column_stack([targets, np.ones(n)]) if fit_intercept else targets
    try:
        solved = cho_solve(cho_factor(K, check_finite=False), right, check_finite=False)
    except LinAlgError:
        warnings.warn(
            f"the Gram matrix plus alpha={alpha} is not positive definite; "
            "the solution may be no minimum",
            ConvergenceWarning,
            stacklevel=3,
        )
        solved = solve(K, right, assume_a="sym")
    if not fit_intercept:
        return solved, np.zeros(targets.shape[1])
    a, u = solved[:, :-1], solved[:, -1]
    b = a.sum(axis=0) / u.sum()
    return a - u[:, None] * b, b


class KernelRidgeClassifier(ClassifierMixin, BaseEstimator):
    """Least squares on labels -1 and 1 in the space of a kernel.

    ``a = (K + alpha I)^-1 y`` and ``f(x) = sum_i a_i k(x_i, x)`` (Balcan's
    lecture on kernel methods, "Kernels, discussion"), with a bias that is not
    penalised. More than two classes: one against the rest, the largest wins.
    The Gram matrix of the training rows is formed.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    alpha : float, default 1.0
        Positive weight of the penalty.
    fit_intercept : bool, default True
        Whether there is a bias.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    kernel_ : Kernel
        The kernel, its bandwidth set.
    X_fit_ : array or CSR matrix, shape (n_samples, n_features_in_)
        Training rows (their numbers with a precomputed kernel).
    dual_coef_ : ndarray, shape (n_problems, n_samples)
        The coefficients a.
    intercept_ : ndarray, shape (n_problems,)
        Biases.

    References
    ----------
    C. Saunders, A. Gammerman and V. Vovk, Ridge regression learning algorithm in dual variables,
    ICML 1998.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> KernelRidgeClassifier("gaussian", alpha=0.1).fit(X, [0, 1, 1, 0]).predict(X)
    array([0, 1, 1, 0])
    """

    def __init__(self, kernel="gaussian", alpha=1.0, fit_intercept=True):
        self.kernel = kernel
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X, y):
        """Solve the linear system.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel.
        y : array, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
            The fitted classifier.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        if not isinstance(self.alpha, Real) or not 0 < self.alpha < np.inf:
            raise ValueError(f"alpha={self.alpha!r}: it must be a positive finite number")
        self.classes_, codes = encoded(y, type(self).__name__)
        if len(self.classes_) == 2:
            targets = np.where(codes == 1, 1.0, -1.0)[:, None]
        else:
            targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        self.kernel_ = resolve_kernel(self.kernel).resolve(X)
        self.X_fit_ = self.kernel_.take(X, np.arange(X.shape[0]))
        precomputed = isinstance(self.kernel_, Precomputed)
        K = self.kernel_(X, self.X_fit_ if precomputed else None)
        a, b = ridge_coefficients(K, targets, float(self.alpha), self.fit_intercept)
        self.dual_coef_, self.intercept_ = a.T, b
        return self

    def decision_function(self, X):
        """Score rows; positive for the second of two classes.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray, shape (n_samples,), or (n_samples, n_classes) for more than two
            Scores.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = np.tile(self.intercept_, (X.shape[0], 1))
        step = max(1, _CHUNK_ENTRIES // self.dual_coef_.shape[1])
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            scores[rows] += self.kernel_(X[rows], self.X_fit_) @ self.dual_coef_.T
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        return chosen_classes(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        return tags

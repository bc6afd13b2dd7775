"""Exact recursive feature machines: kernel ridge regression in a learned metric."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import Gaussian, Matern, median_distance
from kbench.parameters import check_choice, check_integer, check_number
from kbench_learned._map import standardised_targets
from kbench_learned._metric import diagonal_of, root
from kbench_learned._ridge import PENALTIES
from kbench_learned._rounds import folds_of

KERNELS = ("laplace", "gaussian")
_PARTS = 5
_BLOCK_ROWS = 512


class _RecursiveFeatureMachine(BaseEstimator):
    """Parameters and fit of both tasks."""

    def __init__(
        self,
        kernel="laplace",
        bandwidth_factor=1.0,
        metric="full",
        rounds=5,
        regularization=1e-4,
        max_rows=10_000,
        random_state=None,
    ):
        self.kernel = kernel
        self.bandwidth_factor = bandwidth_factor
        self.metric = metric
        self.rounds = rounds
        self.regularization = regularization
        self.max_rows = max_rows
        self.random_state = random_state

    def _learn(self, X: np.ndarray, targets: np.ndarray, strata: np.ndarray) -> None:
        check_choice(self.kernel, "kernel", KERNELS)
        check_number(self.bandwidth_factor, "bandwidth_factor", above=0)
        check_choice(self.metric, "metric", ("full", "diagonal"))
        check_integer(self.rounds, "rounds", least=0)
        check_number(self.regularization, "regularization", least=0)
        check_integer(self.max_rows, "max_rows", least=1)
        if len(X) > self.max_rows:
            raise ValueError(
                f"a recursive feature machine takes time cubic in the rows, and there are "
                f"{len(X):,}; the parameter max_rows allows {self.max_rows:,}"
            )
        self.mean_ = X.mean(axis=0)
        X = X - self.mean_
        transform = np.eye(X.shape[1])
        rng = np.random.RandomState(0 if self.random_state is None else self.random_state)
        parts = min(_PARTS, max(1, len(X) // 2))
        fold = folds_of(strata, parts, 1, rng)[0] if parts > 1 else None
        self.errors_, best = [], (np.inf, transform, PENALTIES[len(PENALTIES) // 2])
        for number in range(self.rounds + 1 if fold else 0):
            error, penalty, slopes = self._round(X, targets, fold, transform, number)
            self.errors_.append(error)
            if error < best[0]:
                best, self.round_ = (error, transform, penalty), number
            matrix = np.zeros_like(transform) if slopes is None else slopes
            if self.metric == "diagonal":
                matrix = diagonal_of(matrix, [])
            if not np.trace(matrix) > 0:
                break
            transform = root(matrix, self.metric, 0, self.regularization)
        if not fold:
            self.round_ = 0
        _, self.transform_, penalty = best
        self.X_fit_ = X @ self.transform_
        self.kernel_ = self._resolved(self.X_fit_)
        self.intercept_ = targets.mean(axis=0)
        K = self.kernel_(self.X_fit_, self.X_fit_)
        K.flat[:: len(K) + 1] += penalty
        self.dual_coef_ = np.linalg.solve(K, targets - self.intercept_)

    def _round(self, X, targets, fold, transform, number):
        """Return error and penalty on held-out rows, and the average gradient outer product."""
        Z, held_out = X[fold.fit] @ transform, X[fold.held_out] @ transform
        kernel, mean = self._resolved(Z), targets[fold.fit].mean(axis=0)
        values, vectors = eigh(kernel(Z, Z), overwrite_a=True, check_finite=False)
        values = np.maximum(values, 0.0)
        moments = vectors.T @ (targets[fold.fit] - mean)
        cross = kernel(held_out, Z) @ vectors
        errors = [
            np.mean(
                (cross @ (moments / (values + p)[:, None]) + mean - targets[fold.held_out]) ** 2
            )
            for p in PENALTIES
        ]
        at = int(np.argmin(errors))
        if number == self.rounds:
            return np.sqrt(errors[at]), PENALTIES[at], None
        coef = vectors @ (moments / (values + PENALTIES[at])[:, None])
        inner = np.zeros_like(transform)
        for start in range(0, len(Z), _BLOCK_ROWS):
            block = kernel.input_gradient(Z[start : start + _BLOCK_ROWS], Z, coef.T)
            for gradients in block:
                inner += gradients.T @ gradients
        return np.sqrt(errors[at]), PENALTIES[at], transform @ (inner / len(Z)) @ transform.T

    def _resolved(self, Z):
        bandwidth = self.bandwidth_factor * median_distance(Z)
        if self.kernel == "laplace":  # exp(-|x - z| / bandwidth)
            return Matern(bandwidth=bandwidth, nu=0.5)
        return Gaussian(bandwidth=bandwidth)

    def _values(self, X) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        parts = []
        for start in range(0, len(X), 4 * _BLOCK_ROWS):
            Z = (X[start : start + 4 * _BLOCK_ROWS] - self.mean_) @ self.transform_
            parts.append(self.kernel_(Z, self.X_fit_) @ self.dual_coef_ + self.intercept_)
        return np.concatenate(parts)


class RecursiveFeatureMachineRegressor(RegressorMixin, _RecursiveFeatureMachine):
    """Exact recursive feature machine: kernel ridge regression in a learned metric.

    Each round fits kernel ridge regression, averages the outer products of its gradients, and
    fits again in that metric [1]_. It is the method that `LearnedMetricMap` approximates by
    explicit features. Time is cubic in the rows and memory quadratic.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}, default "laplace"
        ``exp(-|x - z| / b)`` with the Euclidean norm, or ``exp(-|x - z|^2 / (2 b^2))``.
    bandwidth_factor : float, default 1.0
        b is this multiple of the median distance of the transformed rows.
    metric : {"full", "diagonal"}, default "full"
        Form of the metric.
    rounds : int, default 5
        Rounds; that with the smallest error of a held-out fifth of the rows is kept, with its
        penalty.
    regularization : float, default 1e-4
        This multiple of the mean of the metric's diagonal is added to it.
    max_rows : int, default 10000
        Refuse more training rows.
    random_state : int or None, default None
        Draws the held-out rows.

    Attributes
    ----------
    transform_ : ndarray, shape (n_features, n_features)
        Root of the learned metric.
    errors_ : list of float
        Root mean squared error of held-out rows after 0, 1, ... rounds, in units of the
        deviation of the targets.
    round_ : int
        The round that was kept.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, Mechanism for feature
       learning in neural networks and backpropagation-free machine learning models, Science 383
       (2024).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(150, 4))
    >>> model = RecursiveFeatureMachineRegressor("gaussian").fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.95)
    True
    """

    def fit(self, X, y):
        """Fit the machine.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Training inputs.
        y : array-like, shape (n_samples,)
            Targets.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._location, self._scale = y.mean(), y.std() or 1.0
        targets, strata = standardised_targets(y)
        self._learn(X, targets, strata)
        return self

    def predict(self, X):
        """Predict the targets.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        return self._values(X)[:, 0] * self._scale + self._location


class RecursiveFeatureMachineClassifier(ClassifierMixin, _RecursiveFeatureMachine):
    """Exact recursive feature machine on labels, each class against the rest.

    See `RecursiveFeatureMachineRegressor`.

    Parameters
    ----------
    kernel, bandwidth_factor, metric, rounds, regularization, max_rows, random_state
        As there.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    transform_, errors_, round_
        As there.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(RecursiveFeatureMachineClassifier(rounds=2).fit(X, y).score(X, y) > 0.95)
    True
    """

    def fit(self, X, y):
        """Fit the machine.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Training inputs.
        y : array-like, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        targets, strata = standardised_targets(codes)
        # margins are those of labels -1 and 1
        shares = np.bincount(codes) / len(codes)
        shares = shares[1:] if len(shares) == 2 else shares
        self._centre, self._spread = 2 * shares - 1, 2 * np.sqrt(shares * (1 - shares))
        self._learn(X, targets, strata)
        return self

    def decision_function(self, X):
        """Score the classes.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,) for two classes or (n_samples, n_classes)
        """
        values = self._values(X) * self._spread + self._centre
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        scores = self.decision_function(X)
        number = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[number]

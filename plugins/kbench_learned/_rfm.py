"""Exact recursive feature machines: kernel ridge regression in a learned metric."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import Gaussian, Matern, median_distance
from kbench.parameters import check_parameters, choice, integer, number
from kbench_learned._metric import Form
from kbench_learned._ridge import Targets, encode_labels, encode_numbers, make_folds

PENALTIES = np.logspace(-7, 2, 10)
"""Penalties, in units of the kernel's value at distance 0."""

_START = 4
"""Number of the penalty that is tried first."""

_BLOCK_ROWS = 512


@dataclass(eq=False, repr=False)
class _RecursiveFeatureMachine(BaseEstimator):
    """Parameters and fit of both tasks."""

    kernel: str = choice("matern-1/2", ("matern-1/2", "gaussian"))
    bandwidth_factor: float = number(1.0, above=0)
    metric: str = choice("full", ("full", "diagonal"))
    rounds: int = integer(5, least=0)
    regularization: float = number(1e-4, least=0)
    max_rows: int = integer(10_000, least=1)
    random_state: int | np.random.RandomState | None = None

    def _learn(self, X: np.ndarray, targets: Targets) -> None:
        check_parameters(self)
        if len(X) > self.max_rows:
            raise ValueError(
                f"a recursive feature machine takes time cubic in the rows, and there are "
                f"{len(X):,}; the parameter max_rows allows {self.max_rows:,}"
            )
        self.mean_, self.targets_ = X.mean(axis=0), targets
        X, y = X - self.mean_, targets.columns
        form = Form(self.metric, self.regularization, X.shape[1], np.ptp(X, axis=0) > 0, [])
        transform, penalty = np.eye(X.shape[1]), _START
        self.errors_, self.round_ = [], 0
        best = np.inf, transform, penalty
        rng = np.random.RandomState(0 if self.random_state is None else self.random_state)
        for fold in make_folds(targets.strata, rng)[:1]:
            for each in range(self.rounds + 1):
                Z, Z_test = X[fold.fit] @ transform, X[fold.held_out] @ transform
                kernel = self._resolved(Z)
                held_out = Z_test, y[fold.held_out]
                error, penalty, coef = _best(kernel, Z, y[fold.fit], *held_out, penalty)
                self.errors_.append(error)
                if error < best[0]:
                    best, self.round_ = (error, transform, penalty), each
                if each == self.rounds:
                    break
                matrix = form.of(transform @ _outer_product(kernel, Z, coef) @ transform.T)
                if not np.trace(matrix) > 0:
                    break
                transform = form.root(matrix)
        _, self.transform_, penalty = best
        self.X_fit_ = X @ self.transform_
        self.kernel_ = self._resolved(self.X_fit_)
        self.dual_coef_ = _ridge(self.kernel_(self.X_fit_, self.X_fit_), PENALTIES[penalty], y)

    def _resolved(self, Z):
        bandwidth = self.bandwidth_factor * median_distance(Z)
        if self.kernel == "matern-1/2":  # exp(-|x - z| / bandwidth)
            return Matern(bandwidth=bandwidth, nu=0.5)
        return Gaussian(bandwidth=bandwidth)

    def _values(self, X) -> np.ndarray:
        """Predict the columns of the targets, in their own units."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        parts = []
        for start in range(0, len(X), 4 * _BLOCK_ROWS):
            Z = (X[start : start + 4 * _BLOCK_ROWS] - self.mean_) @ self.transform_
            parts.append(self.kernel_(Z, self.X_fit_) @ self.dual_coef_)
        return self.targets_.original(np.concatenate(parts))


def _best(kernel, Z, y, Z_test, y_test, start: int) -> tuple[float, int, np.ndarray]:
    """Return the smallest error of held-out rows, the number of its penalty, and coefficients.

    Penalties are tried by steps from `start` to where both neighbours are worse: each is a solve
    of cubic time.
    """
    K, cross, mean = kernel(Z, Z), kernel(Z_test, Z), y.mean(axis=0)
    tried: dict[int, float] = {}
    best, at = (np.inf, start, np.zeros_like(y)), start
    while True:
        for i in {at - 1, at, at + 1} & set(range(len(PENALTIES))) - tried.keys():
            coef = _ridge(K, PENALTIES[i], y - mean)
            tried[i] = float(np.sqrt(np.mean((cross @ coef + mean - y_test) ** 2)))
            if tried[i] < best[0]:
                best = tried[i], i, coef
        if best[1] == at:
            return best
        at = best[1]


def _ridge(K: np.ndarray, penalty: float, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of kernel ridge regression; NaN where K is singular to rounding."""
    shifted = K.copy()
    shifted.flat[:: len(K) + 1] += penalty
    try:
        return cho_solve(cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False), y)
    except LinAlgError:
        return np.full_like(y, np.nan)


def _outer_product(kernel, Z: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Average the outer products of the gradients at all rows, in blocks."""
    inner = np.zeros((Z.shape[1],) * 2)
    for start in range(0, len(Z), _BLOCK_ROWS):
        for gradients in kernel.input_gradient(Z[start : start + _BLOCK_ROWS], Z, coef.T):
            inner += gradients.T @ gradients
    return inner / len(Z)


class RecursiveFeatureMachineRegressor(RegressorMixin, _RecursiveFeatureMachine):
    """Exact recursive feature machine: kernel ridge regression in a learned metric.

    Each round fits kernel ridge regression, averages the outer products of its gradients, and
    fits again in that metric [1]_. It is the method that `LearnedMetricMap` approximates by
    explicit features. Time is cubic in the rows and memory quadratic.

    Parameters
    ----------
    kernel : {"matern-1/2", "gaussian"}, default "matern-1/2"
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
        More training rows raise a ValueError.
    random_state : int or None, default None
        Seed of the held-out rows.

    Attributes
    ----------
    transform_ : ndarray, shape (n_features, n_features)
        Root of the learned metric.
    errors_ : list of float
        Root mean squared error of held-out rows after 0, 1, ... rounds, in units of the
        standard deviation of the targets.
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
        self._learn(X, encode_numbers(np.asarray(y)))
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
        return self._values(X)[:, 0]


class RecursiveFeatureMachineClassifier(ClassifierMixin, _RecursiveFeatureMachine):
    """Recursive feature machine: one-vs-rest kernel ridge regression with a learned metric.

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
        self.classes_ = np.unique(y)
        self._learn(X, encode_labels(np.asarray(y)))
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
        values = self._values(X)
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

"""Empirical risk minimisation of equation 5: the non-convex problem itself."""

import warnings
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.parameters import check_parameters, integer, number
from kbench_zero_one._classifier import RandomisedClassifier
from kbench_zero_one._theory import sigmoid


def project(W):
    """Project each row on the unit ball."""
    return W / np.maximum(1.0, np.linalg.norm(W, axis=1))[:, None]


def risk(W, X, signs, L):
    """Return the mean error of sigmoid(<w, x>) and its gradient, for each row w of `W`.

    Labels are `signs` -1 and 1, so that |phi(a) - y| = phi(-s a); L is the Lipschitz constant.
    """
    wrong = sigmoid(-(W @ X.T) * signs, L)
    return wrong.mean(axis=1), (-4 * L * wrong * (1 - wrong) * signs) @ X / len(X)


def minimise_risk(X, signs, L, starts, tol=1e-6, max_iter=500):
    """Minimise the risk by projected gradient descent from several starts at once.

    Steps of Barzilai and Borwein, halved until the risk falls as Armijo's rule requires.
    `starts` are directions in the unit ball, shape (n_starts, n_features). A start is done
    when a unit step, projected, moves by less than `tol`. Returns the last directions, their
    risks, the lengths of projected unit steps from them, and the number of steps.
    """
    W = project(np.asarray(starts, dtype=float))
    value, gradient = risk(W, X, signs, L)
    step = np.ones(len(W))
    for n_iter in range(max_iter + 1):
        residual = np.linalg.norm(project(W - gradient) - W, axis=1)
        live = np.flatnonzero(residual > tol)
        if not len(live) or n_iter == max_iter:
            break
        trial_step = step[live].copy()
        for _ in range(40):
            trial = project(W[live] - trial_step[:, None] * gradient[live])
            moved = trial - W[live]
            new_value, new_gradient = risk(trial, X, signs, L)
            bad = new_value > value[live] + 1e-4 * np.sum(gradient[live] * moved, axis=1)
            if not bad.any():
                break
            trial_step[bad] /= 2
        curvature = np.sum((new_gradient - gradient[live]) * moved, axis=1)
        squared = np.sum(moved**2, axis=1)
        step[live] = np.where(
            curvature > 1e-12 * squared, squared / np.maximum(curvature, 1e-300), 2 * trial_step
        ).clip(1e-6, 1e6)
        better = new_value <= value[live]
        rows = live[better]
        W[rows], value[rows], gradient[rows] = (
            trial[better],
            new_value[better],
            new_gradient[better],
        )
        if not better.any():
            break
    return W, value, residual, n_iter


@dataclass(eq=False, repr=False)
class SigmoidHalfspace(RandomisedClassifier):
    """A sigmoid of a halfspace, x -> 1 / (1 + exp(-4 L <w, x>)) with ||w|| <= 1.

    The class H_sig of Shalev-Shwartz, Shamir and Sridharan (IJCAI 2011), equation 4, with
    which their algorithm competes. ``fit`` minimises the mean error ``|h(x_i) - y_i|`` over the
    unit ball (equation 5), a non-convex problem, by descent from several starts: the best
    of them, not a certified minimum. With `weights` nothing is learned: for data with
    a known best halfspace w*, it gives the reference line h_sig(w*).

    Parameters
    ----------
    L : float, default 3.0
        Lipschitz constant, positive.
    weights : sequence of float, optional
        w, taken as it is, filled up with zeros; it must lie in the unit ball.
    n_starts : int, default 20
        Starts: the difference of the class means, then random directions.
    tol : float, default 1e-6
        Length of the projected gradient at which a descent ends.
    max_iter : int, default 500
        Steps of each descent.
    random_state : int, RandomState instance or None, default None
        Random directions.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        Labels; the second is y = 1.
    coef_ : ndarray, shape (n_features,)
        w.
    objective_ : float
        Mean error on the training set.
    converged_ : bool
        The best descent ended at a stationary point.
    n_iter_ : int
        Steps of the longest descent.
    n_features_in_ : int
        Number of features.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or there are not exactly two classes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-0.9, 0.2], [-0.9, -0.2], [0.9, 0.2], [0.9, -0.2]])
    >>> SigmoidHalfspace(L=3.0, random_state=0).fit(X, [0, 0, 1, 1]).coef_.round(1) + 0.0
    array([1., 0.])
    """

    L: float = number(3.0, above=0)
    weights: object = None
    _: KW_ONLY
    n_starts: int = integer(20, least=1)
    tol: float = 1e-6
    max_iter: int = 500
    random_state: int | np.random.RandomState | None = None

    def fit(self, X, y):
        """Minimise equation 5, or take the given weights.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels of exactly two classes.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. y has "
                f"{len(self.classes_)} class(es); a halfspace needs exactly 2"
            )
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        if self.weights is not None:
            n_features, weights = X.shape[1], np.asarray(self.weights, dtype=float)
            fits = weights.ndim == 1 and 1 <= len(weights) <= n_features
            if not fits or not np.linalg.norm(weights) <= 1.0 + 1e-9:
                raise ValueError(
                    f"weights must have 1 to {n_features} numbers and lie in the unit ball, "
                    f"got {self.weights!r}"
                )
            self.coef_ = np.pad(weights, (0, n_features - len(weights)))
            self.objective_ = float(risk(self.coef_[None], X, signs, self.L)[0][0])
            self.converged_, self.n_iter_ = True, 1
            return self
        starts = check_random_state(self.random_state).standard_normal((self.n_starts, X.shape[1]))
        starts[0] = X[signs > 0].mean(axis=0) - X[signs < 0].mean(axis=0)
        starts /= np.maximum(np.linalg.norm(starts, axis=1), 1e-12)[:, None]
        W, risks, residual, self.n_iter_ = minimise_risk(
            X, signs, self.L, starts, self.tol, self.max_iter
        )
        best = int(np.argmin(risks))
        self.coef_, self.objective_ = W[best], float(risks[best])
        self.converged_ = bool(residual[best] <= self.tol)
        if not self.converged_:
            warnings.warn(
                f"projected gradient {residual[best]:.1e} above tol={self.tol:.1e} after "
                f"at most {self.max_iter} steps",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X):
        """Return the inner products <w, x>.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.coef_

    def predict_proba(self, X):
        """Return the probabilities of the randomised rule, the sigmoid and one minus it.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, 2)
        """
        p = sigmoid(self.decision_function(X), self.L)
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        """Predict the more probable label.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        positive = self.decision_function(X) > 0  # raises NotFittedError
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

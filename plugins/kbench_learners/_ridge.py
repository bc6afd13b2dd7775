"""Ridge regression on class indicators, along a path of alpha."""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench_learners._design import MAX_FACTOR_COLUMNS, MAX_FACTOR_ROWS, Design
from kbench_learners._directions import cholesky_solve
from kbench_learners._products import dense_where_quicker, inner_products
from kbench_learners._reduction import chosen_classes, encoded

_CHUNK_ENTRIES = 2_000_000


class PathRidgeClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by ridge regression on indicators of -1 and 1.

    The solution is that of ``sklearn.linear_model.RidgeClassifier``: one
    least-squares target for each class (one for two classes), an L2 penalty
    and an intercept that is not penalised. Here one Gram matrix, of the columns
    or of the rows, whichever is smaller, serves all values of `alpha`.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty.
    tol : float, default 1e-6
        Relative residual of conjugate gradients, which are used where rows and
        columns are both too many for a factorisation (4,000 and 3,000).
    max_iter : int, default 2000
        Bound of their iterations.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (n_targets, n_features)
    intercept_ : ndarray, shape (n_targets,)
    n_iter_ : int
        `max_iter` where it was exhausted, else 1.
    converged_ : bool
        False where conjugate gradients did not reach `tol`.

    References
    ----------
    A. E. Hoerl and R. W. Kennard, Ridge regression: biased estimation for nonorthogonal problems,
    Technometrics 12 (1970).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = PathRidgeClassifier().fit_path(X, y, [0.1, 10.0])
    >>> [fitted.alpha for fitted in path]
    [0.1, 10.0]
    """

    def __init__(self, alpha=1.0, tol=1e-6, max_iter=2000):
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X, y):
        """Fit for the value `alpha`.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `alpha` is not positive or `y` has one class only.
        """
        return self._fit_path(X, y, [self.alpha], [self])[0]

    def fit_path(self, X, y, values):
        """Fit for every value of `alpha`, faster than one by one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        values : sequence of float
            Values of `alpha`, in any order.

        Returns
        -------
        list of PathRidgeClassifier
            Fitted clones, in the order of `values`.
        """
        return self._fit_path(X, y, values, [clone(self).set_params(alpha=a) for a in values])

    def _fit_path(self, X, y, values, estimators):
        for alpha in values:
            if not (isinstance(alpha, Real) and 0.0 < alpha < np.inf):
                raise ValueError(f"alpha={alpha!r}: must be a finite number > 0")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        classes, codes = encoded(y, "PathRidgeClassifier")
        Y = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        Y = Y[:, 1:] if len(classes) == 2 else Y
        names = getattr(self, "feature_names_in_", None)
        path = ridge_path(dense_where_quicker(X), Y, values, self.tol, self.max_iter)
        for estimator, (W, b, converged) in zip(estimators, path, strict=True):
            estimator.classes_ = classes
            estimator.n_features_in_ = X.shape[1]
            if names is not None:
                estimator.feature_names_in_ = names
            estimator.coef_, estimator.intercept_, estimator.converged_ = W.T.copy(), b, converged
            estimator.n_iter_ = 1 if converged else self.max_iter
            if not converged:
                warnings.warn(
                    f"PathRidgeClassifier did not converge at alpha={estimator.alpha:g}: "
                    f"{self.max_iter} iterations did not reach tol={self.tol:g}",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        return estimators

    def decision_function(self, X):
        """Score the classes.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        raw = np.asarray(X @ self.coef_.T) + self.intercept_
        return raw.ravel() if raw.shape[1] == 1 else raw

    def predict(self, X):
        """Predict the class with the highest score.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        return chosen_classes(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def ridge_path(X, Y, alphas, tol=1e-6, max_iter=2000):
    """Solve ``min |Y - X W - b|^2 + alpha |W|^2`` for every alpha.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
    Y : ndarray, shape (n_samples, n_targets)
    alphas : sequence of float
    tol : float, default 1e-6
        Relative residual, where iterated.
    max_iter : int, default 2000
        Bound of the iterations.

    Yields
    ------
    W : ndarray, shape (n_features, n_targets)
    b : ndarray, shape (n_targets,)
    converged : bool
    """
    n, p = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    target = Y.mean(axis=0)
    centred = Y - target
    if p <= n and p <= MAX_FACTOR_COLUMNS:
        G = _column_gram(X, mean)
        moments = X.T @ centred
        for alpha in alphas:
            W = _shifted_solve(G, moments, alpha)
            yield W, target - mean @ W, True
    elif n <= MAX_FACTOR_ROWS:
        K = _row_gram(X, mean)
        for alpha in alphas:
            # The rows of the solution sum to zero with those of the targets.
            beta = _shifted_solve(K, centred, alpha)
            W = X.T @ beta - np.outer(mean, beta.sum(axis=0))
            yield W, target - mean @ W, True
    else:
        W = np.zeros((p, Y.shape[1]))
        moments = X.T @ centred
        for alpha in alphas:
            W, converged = _iterated(X, mean, moments, alpha, W, tol, max_iter)
            yield W, target - mean @ W, converged


def _column_gram(X, mean):
    """Return ``(X - mean)' (X - mean)``, over blocks of rows."""
    n, p = X.shape
    if sp.issparse(X):
        G = np.triu(Design(X).gram())
        G += np.triu(G, 1).T
        G -= n * np.outer(mean, mean)
        return G
    G = np.zeros((p, p))
    step = max(1, _CHUNK_ENTRIES // p)
    for start in range(0, n, step):
        block = X[start : start + step] - mean
        G += block.T @ block
    return G


def _row_gram(X, mean):
    """Return ``(X - mean) (X - mean)'``."""
    if not sp.issparse(X):
        block = X - mean
        return block @ block.T
    K = inner_products(X)
    row = X @ mean
    return K - row[:, None] - row + mean @ mean


def _shifted_solve(G, B, alpha):
    """Solve ``(G + alpha I) W = B`` with `G` positive semidefinite."""
    H = G.copy()
    H.flat[:: len(H) + 1] += alpha
    W = cholesky_solve(H, B)
    if W is None:  # alpha is below the rounding error of G
        values, vectors = eigh(G)
        floor = len(G) * np.finfo(float).eps * values[-1]
        inverse = np.where(values > floor, 1.0 / (np.maximum(values, floor) + alpha), 0.0)
        W = vectors @ (inverse[:, None] * (vectors.T @ B))
    return W


def _iterated(X, mean, moments, alpha, start, tol, max_iter):
    """Solve by conjugate gradients, one target after the other."""
    p = X.shape[1]

    def product(v):
        z = X @ v - mean @ v
        return X.T @ z - mean * z.sum() + alpha * v

    operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
    W = np.empty_like(start)
    unfinished = 0
    for k in range(W.shape[1]):
        W[:, k], info = cg(operator, moments[:, k], x0=start[:, k], rtol=tol, maxiter=max_iter)
        unfinished += info != 0
    return W, unfinished == 0

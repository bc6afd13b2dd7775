"""Ridge regression on class indicators, along a path of alpha."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg

from kbench.parameters import check_number
from kbench_learners._design import MAX_FACTOR_COLUMNS, MAX_FACTOR_ROWS, Design
from kbench_learners._directions import cholesky_solve
from kbench_learners._linear import LinearClassifier
from kbench_learners._path_classifier import PathClassifier
from kbench_learners._products import dense_where_quicker, inner_products
from kbench_learners._reduction import binary_problems

_CHUNK_ENTRIES = 2_000_000


class PathRidgeClassifier(LinearClassifier, PathClassifier):
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

    _path = "alpha"

    def __init__(self, alpha=1.0, tol=1e-6, max_iter=2000):
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", above=0)

    def _fit_together(self, X, codes, estimators) -> None:
        problems = binary_problems(codes, len(self.classes_), "ovr")
        Y = np.column_stack([signs for _, signs in problems])
        alphas = [estimator.alpha for estimator in estimators]
        path = ridge_path(dense_where_quicker(X), Y, alphas, self.tol, self.max_iter)
        for estimator, (W, b, converged) in zip(estimators, path, strict=True):
            estimator.coef_, estimator.intercept_, estimator.converged_ = W.T.copy(), b, converged
            estimator.n_iter_ = 1 if converged else self.max_iter

    def _complaints(self) -> list[str]:
        return [
            f"PathRidgeClassifier did not converge at alpha={self.alpha:g}: "
            f"{self.max_iter} iterations did not reach tol={self.tol:g}"
        ]


def ridge_path(X, Y, alphas, tol=1e-6, max_iter=2000):
    """Solve ``min |Y - X W - b|^2 + alpha |W|^2`` for every alpha.

    Yields W, shape (n_features, n_targets), b, and whether the solution has converged.
    `tol` is the relative residual of iterated solutions, `max_iter` bounds their iterations.
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
            # The rows of the solution sum to zero, as those of the targets do.
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

"""Ridge regression on targets or on class indicators, along a path of alpha."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils.metaestimators import available_if

from kbench.arrays import diagonal, like, namespace, to_numpy
from kbench.parameters import choice, integer, number
from kbench_learners._design import (
    MAX_FACTOR_COLUMNS,
    MAX_FACTOR_ROWS,
    Design,
    dense_where_quicker,
    inner_products,
)
from kbench_learners._estimator import (
    SCHEMES,
    LinearClassifier,
    LinearRegressor,
    WeightedPathMixin,
    binary_problems,
    check_classes,
    class_shares,
    clones_along,
    row_weights,
)
from kbench_learners._newton import cholesky_solver

_CHUNK_ENTRIES = 2_000_000

# So many Cholesky factorisations take no longer than an eigendecomposition: it took as long as 6
# to 11 of 1,024 to 4,096 columns.
_FEW_ALPHAS = 6

# Scatter matrices of all classes may take up to 1 GiB; else each pair computes its own.
_MAX_SCATTER_ENTRIES = 2**27


class _PathRidge(WeightedPathMixin):
    """Parameters and the path of ridge regression, on labels or on targets."""

    _path = "alpha"

    takes_any_namespace = True

    @available_if(
        lambda self: (
            getattr(self, "multiclass", "ovr") == "ovr" and not getattr(self, "balanced", False)
        )
    )
    def fit_sums(self, sums, values):
        """Fit for several values of `alpha`, given sums over rows instead of the rows.

        Parameters
        ----------
        sums : object
            Sums as they are described for `kbench.Learner`.
        values : sequence of float
            Values of `alpha`, in any order.

        Returns
        -------
        list of estimators
            Fitted clones, in the order of `values`.
        """
        if not sums.n > 0:
            raise ValueError("all values of sample_weight are zero")
        moments, target, mean = sums.moments, sums.target_mean, to_numpy(sums.mean)
        fitted = clones_along(self, "alpha", values)
        for each in fitted:
            each.n_features_in_, each.n_iter_, each.converged_ = len(mean), 1, True
        if sums.classes is not None:
            check_classes(self, sums.classes)
            # indicators become targets -1 and 1, of two classes those of the second
            columns = slice(1, 2) if len(sums.classes) == 2 else slice(None)
            moments, target = 2.0 * moments[:, columns], 2.0 * target[columns] - 1.0
            for each in fitted:
                each.classes_ = sums.classes
        has_many = namespace(sums.zz) is np and len(values) > _FEW_ALPHAS
        solve = _solutions if has_many else _factored_solutions
        for each, W in zip(fitted, solve(sums.gram, moments, values), strict=True):
            each._set_solution(W, target - mean @ W)
        return fitted

    def _fit_along(self, path, estimators, weight, *data) -> None:
        """Fit the estimators by a function that yields what each has, as `ridge_path` does."""
        alphas = [estimator.alpha for estimator in estimators]
        solutions = path(*data, alphas, self.tol, self.max_iter, weight, self._row_share)
        for estimator, (W, b, converged) in zip(estimators, solutions, strict=True):
            estimator.converged_ = converged
            estimator.n_iter_ = 1 if converged else self.max_iter
            estimator._set_solution(W, b)

    def _complaints(self) -> list[str]:
        return [
            f"{type(self).__name__} did not converge at alpha={self.alpha:g}: "
            f"{self.max_iter} iterations did not reach tol={self.tol:g}"
        ]


@dataclass(eq=False, repr=False)
class PathRidgeClassifier(_PathRidge, LinearClassifier):
    """Classification by ridge regression on class indicators -1 and 1.

    The solution is that of ``sklearn.linear_model.RidgeClassifier``: one
    least-squares target for each class (one for two classes), an L2 penalty
    and an intercept that is not penalised. Here one Gram matrix, of the columns
    or of the rows, whichever is smaller, serves all values of `alpha`.

    With "ovo" there is one such problem for each pair of classes, on the rows of
    both. Where a pair has at least as many rows as columns, its Gram matrix of
    the columns is a sum of the scatter matrices of both classes, which are
    computed once for all pairs.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty.
    multiclass : {"ovr", "ovo"}, default "ovr"
        One least-squares problem for each class against the rest, or for each
        pair of classes, which vote.
    balanced : bool, default False
        Weight the rows of a class by the inverse of its frequency, so that all classes have the
        same weight.
    tol : float, default 1e-6
        Relative residual of conjugate gradients, which are used if rows and
        columns are both too many for a factorisation (4,000 and 3,000).
    max_iter : int, default 2000
        Maximum number of their iterations.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    coef_ : ndarray, shape (n_problems, n_features)
        One problem for two classes; else one for each class, or for each pair
        (0, 1), (0, 2), ..., (1, 2), ... with "ovo", positive for the first.
    intercept_ : ndarray, shape (n_problems,)
    n_iter_ : int
        `max_iter` where it was exhausted, else 1.
    converged_ : bool
        False if conjugate gradients did not reach `tol`.

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

    alpha: float = number(1.0, above=0)
    multiclass: str = choice("ovr", SCHEMES)
    balanced: bool = False
    tol: float = number(1e-6, above=0)
    max_iter: int = integer(2000, least=1)

    def _fit_together(self, X, codes, estimators, sample_weight) -> None:
        weight = row_weights(sample_weight, len(codes))
        if self.balanced:
            shares = class_shares(codes, weight)
            # no row of a class whose rows have no weight counts
            balanced = 1.0 / (len(shares) * np.where(shares > 0, shares, np.inf)[codes])
            weight = balanced if weight is None else balanced * weight
        X, n_classes = dense_where_quicker(X), len(self.classes_)
        if n_classes > 2 and self.multiclass == "ovo":
            self._fit_along(pairwise_path, estimators, weight, X, codes, n_classes)
        else:
            problems = binary_problems(codes, n_classes, "ovr")
            Y = np.column_stack([signs for _, signs in problems])
            self._fit_along(ridge_path, estimators, weight, X, Y)

    def _set_solution(self, W, b) -> None:
        self.coef_, self.intercept_ = W.T.copy(), b


@dataclass(eq=False, repr=False)
class PathRidge(_PathRidge, LinearRegressor):
    """Ridge regression.

    The solution is that of ``sklearn.linear_model.Ridge``: squared errors, an L2 penalty,
    and an intercept that is not penalised. As in `PathRidgeClassifier`, one Gram matrix
    serves all values of `alpha`.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty.
    tol : float, default 1e-6
        Relative residual of conjugate gradients, which are used if rows and
        columns are both too many for a factorisation (4,000 and 3,000).
    max_iter : int, default 2000
        Maximum number of their iterations.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    intercept_ : float
    n_iter_ : int
        `max_iter` where it was exhausted, else 1.
    converged_ : bool
        False if conjugate gradients did not reach `tol`.

    References
    ----------
    A. E. Hoerl and R. W. Kennard, Ridge regression: biased estimation for nonorthogonal problems,
    Technometrics 12 (1970).

    Examples
    --------
    >>> PathRidge(alpha=1e-9).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    >>> path = PathRidge().fit_path([[0.0], [1.0]], [1.0, 2.0], [0.1, 10.0])
    >>> [fitted.alpha for fitted in path]
    [0.1, 10.0]
    """

    alpha: float = number(1.0, above=0)
    tol: float = number(1e-6, above=0)
    max_iter: int = integer(2000, least=1)

    def _fit_together(self, X, y, estimators, sample_weight) -> None:
        weight = row_weights(sample_weight, len(y))
        self._fit_along(ridge_path, estimators, weight, dense_where_quicker(X), y[:, None])

    def _set_solution(self, W, b) -> None:
        self.coef_, self.intercept_ = W[:, 0].copy(), float(b[0])


def ridge_path(X, Y, alphas, tol=1e-6, max_iter=2000, weight=None, share=1.0):
    """Solve ``min sum_i weight_i |Y_i - X_i W - b|^2 + alpha |W|^2`` for every alpha.

    Yields W, shape (n_features, n_targets), b, and whether the solution has converged.
    `tol` is the relative residual of iterated solutions, `max_iter` bounds their iterations.
    Without `weight`, shape (n_samples,), all rows count as 1. A `share` of the rows is fitted in
    the way of all rows.
    """
    n, p = X.shape[0] / share, X.shape[1]
    mean, target = weighted_mean(X, weight), weighted_mean(Y, weight)
    centred = Y - target
    if p <= n and p <= MAX_FACTOR_COLUMNS:
        G = column_gram(X, mean, weight, share)
        moments = X.T @ _weigh(centred, weight)
        for alpha in alphas:
            W = _shifted_solve(G, moments, alpha)
            yield W, target - mean @ W, True
    elif n <= MAX_FACTOR_ROWS:
        root = None if weight is None else np.sqrt(weight)
        K = row_gram(X, mean, root)
        scaled = _weigh(centred, root)
        for alpha in alphas:
            beta = _weigh(_shifted_solve(K, scaled, alpha), root)
            W = X.T @ beta - np.outer(mean, beta.sum(axis=0))
            yield W, target - mean @ W, True
    else:
        W = np.zeros((p, Y.shape[1]))
        moments = X.T @ _weigh(centred, weight)
        for alpha in alphas:
            W, converged = _iterate(X, mean, moments, alpha, W, tol, max_iter, weight)
            yield W, target - mean @ W, converged


def pairwise_path(X, codes, n_classes, alphas, tol=1e-6, max_iter=2000, weight=None, share=1.0):
    """Solve `ridge_path` on the rows of each pair of classes, with targets 1 and -1.

    Yields W, shape (n_features, n_pairs), b, and whether all have converged, for every alpha.
    `codes` are labels 0..n_classes-1; the first class of a pair has the target 1.
    """
    p = X.shape[1]
    fits = p <= MAX_FACTOR_COLUMNS and n_classes * p**2 <= _MAX_SCATTER_ENTRIES
    scatters = {}
    if fits and p <= 2 * len(codes) / share / n_classes:  # else pairs have fewer rows, on average
        scatters = {k: _Scatter.of(X, codes == k, weight) for k in range(n_classes)}
    paths = []
    for (i, j), (rows, signs) in zip(
        combinations(range(n_classes), 2), binary_problems(codes, n_classes, "ovo"), strict=True
    ):
        if scatters and p <= len(rows) / share:
            path = _path_of_pair(scatters[i], scatters[j], alphas)
        else:
            part = None if weight is None else weight[rows]
            path = ridge_path(X[rows], signs[:, None], alphas, tol, max_iter, part, share)
        paths.append(list(path))
    for solutions in zip(*paths, strict=True):
        W = np.column_stack([coef for coef, _, _ in solutions])
        b = np.concatenate([intercept for _, intercept, _ in solutions])
        yield W, b, all(converged for _, _, converged in solutions)


@dataclass(frozen=True)
class _Scatter:
    """Total weight, mean and scatter matrix of the rows of a class."""

    weight: float
    mean: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of(cls, X, members, weight) -> "_Scatter":
        rows = np.flatnonzero(members)
        part = None if weight is None else weight[rows]
        X = X[rows]
        mean = weighted_mean(X, part)
        return cls(
            float(len(rows) if part is None else part.sum()), mean, column_gram(X, mean, part)
        )


def _path_of_pair(first: _Scatter, second: _Scatter, alphas) -> Iterator[tuple]:
    """Solve the ridge problem of two classes for every alpha."""
    total = (first.weight + second.weight) or 1.0  # no row of either may count
    mean = (first.weight * first.mean + second.weight * second.mean) / total
    target = np.array([(first.weight - second.weight) / total])
    between = first.weight * second.weight / total
    difference = first.mean - second.mean
    G = first.matrix + second.matrix + between * np.outer(difference, difference)
    moments = 2.0 * between * difference[:, None]
    for alpha in alphas:
        W = _shifted_solve(G, moments, alpha)
        yield W, target - mean @ W, True


def weighted_mean(A, weight=None) -> np.ndarray:
    """Return the mean of the rows of an array or a sparse matrix; 0 if all weights are."""
    if weight is None:
        return np.asarray(A.mean(axis=0)).ravel()
    return np.asarray(A.T @ weight).ravel() / (weight.sum() or 1.0)


def _weigh(A, weight):
    """Return rows times their weights."""
    return A if weight is None else weight[:, None] * A


def column_gram(X, mean, weight=None, share=1.0):
    """Return ``(X - mean)' D (X - mean)`` with the weights on the diagonal, over blocks of rows.

    Blocks of a `share` of the rows have this share of the values.
    """
    n, p = X.shape
    if sp.issparse(X):
        G = np.triu(Design(X).gram(weights=weight))
        G += np.triu(G, 1).T
        G -= (n if weight is None else weight.sum()) * np.outer(mean, mean)
        return G
    G = np.zeros((p, p))
    step = max(1, int(share * _CHUNK_ENTRIES) // p)
    for start in range(0, n, step):
        block = X[start : start + step] - mean
        if weight is not None:
            block *= np.sqrt(weight[start : start + step, None])
        G += block.T @ block
    return G


def row_gram(X, mean, root=None):
    """Return ``R (X - mean) (X - mean)' R`` with the roots of the weights on R's diagonal."""
    if sp.issparse(X):
        K = inner_products(X)
        row = X @ mean
        K = K - row[:, None] - row + mean @ mean
        return K if root is None else root[:, None] * K * root
    block = _weigh(X - mean, root)
    return block @ block.T


def _shifted_solve(G, B, alpha):
    """Solve ``(G + alpha I) W = B`` with `G` positive semidefinite."""
    if solve := cholesky_solver(G, G.diagonal() + alpha):
        return solve(B)
    # alpha is below the rounding error of G
    values, vectors = eigh(G)
    floor = len(G) * np.finfo(float).eps * values[-1]
    inverse = np.where(values > floor, 1.0 / (np.maximum(values, floor) + alpha), 0.0)
    return vectors @ (inverse[:, None] * (vectors.T @ B))


def _iterate(X, mean, moments, alpha, start, tol, max_iter, weight):
    """Solve by conjugate gradients, one target after the other."""
    p = X.shape[1]

    def product(v):
        z = X @ v - mean @ v
        if weight is not None:
            z *= weight
        return X.T @ z - mean * z.sum() + alpha * v

    operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
    W = np.empty_like(start)
    unfinished = 0
    for k in range(W.shape[1]):
        W[:, k], info = cg(operator, moments[:, k], x0=start[:, k], rtol=tol, maxiter=max_iter)
        unfinished += info != 0
    return W, unfinished == 0


def _solutions(G, moments, alphas):
    """Solve ``(G + alpha I) W = moments`` for every alpha, with `G` positive semidefinite."""
    values, vectors = eigh(G, driver="evd", check_finite=False)
    projected = vectors.T @ moments
    for alpha in alphas:
        yield vectors @ (_inverse(values, alpha)[:, None] * projected)


def _inverse(values, alpha):
    """Return the inverse eigenvalues with `alpha` added, given them in rising order.

    Directions that have no variance have no moment either, but for rounding errors: 0.
    """
    floor = len(values) * np.finfo(float).eps * max(values[-1], 0.0)
    shifted = np.maximum(values, 0.0) + alpha
    return np.where(shifted > floor, 1.0 / shifted, 0.0)


def _factored_solutions(G, moments, alphas):
    """Solve like `_solutions` in the namespace of `G`; return arrays of the host.

    A Cholesky factorisation for each alpha is quicker on a device, and for few values on the host,
    than one eigendecomposition, which is left for values below the rounding error of `G`.
    """
    xp, p = namespace(G), G.shape[0]
    floor = p * np.finfo(float).eps * diagonal(G).sum()
    decomposed = None
    for alpha in alphas:
        solve = cholesky_solver(G, diagonal(G) + alpha) if alpha > floor else None
        if solve is not None:
            yield to_numpy(solve(moments))
            continue
        if decomposed is None:
            values, vectors = xp.linalg.eigh(G)
            decomposed = to_numpy(values), vectors, vectors.T @ moments
        values, vectors, projected = decomposed
        yield to_numpy(vectors @ (like(_inverse(values, alpha)[:, None], G) * projected))

"""Linear support vector regression with the squared epsilon-insensitive loss."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from kbench.parameters import integer, number
from kbench_learners._design import Design, dense_where_quicker
from kbench_learners._estimator import LinearRegressor, WeightedPathMixin, row_weights
from kbench_learners._newton import ActiveRows, minimise


@dataclass(eq=False, repr=False)
class LinearSVR(WeightedPathMixin, LinearRegressor):
    r"""Linear support vector regression, fitted along a regularisation path of C.

    .. math:: \min_{w, b} \tfrac12 (\|w\|^2 + b^2)
              + C \sum_i \max(0, |y_i - w^\top x_i - b| - \varepsilon)^2

    The solution is that of ``sklearn.svm.LinearSVR`` with the squared loss, by the semismooth
    Newton method of `LinearSVM`. Along the path each C starts from the solution of the next
    smaller one.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    epsilon : float, default 0.1
        Largest error that costs nothing.
    tol : float, default 1e-6
        Duality gap, relative to the objective, at which the problem counts as solved.
    max_iter : int, default 300
        Maximum number of Newton steps for each C.
    fit_intercept : bool, default True
        Whether there is an intercept, which is penalised like the coefficients.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    intercept_ : float
    objective_ : float
        Value of the problem at its solution.
    n_iter_ : int
        Newton steps.
    converged_ : bool
        Whether `tol` was reached.

    References
    ----------
    C.-H. Ho and C.-J. Lin, Large-scale linear support vector regression, JMLR 13 (2012).

    Examples
    --------
    >>> svr = LinearSVR(C=1000.0, epsilon=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> svr.predict([[3.0]]).round(2), svr.converged_
    (array([7.]), True)
    """

    _path = "C"
    _order = "C"  # rows are read as contiguous vectors

    C: float = number(1.0, above=0)
    epsilon: float = number(0.1, least=0)
    tol: float = number(1e-6, above=0)
    max_iter: int = integer(300, least=1)
    fit_intercept: bool = True

    def _fit_together(self, X, y, estimators, sample_weight) -> None:
        weight = row_weights(sample_weight, len(y))
        p, bias = X.shape[1], float(self.fit_intercept)
        epsilon: float | np.ndarray = float(self.epsilon)
        if weight is not None:  # a row times the root of its weight, and its column of ones
            root = np.sqrt(weight)
            X, y, epsilon = _scale(X, root, bias), root * y, root * epsilon
        design = Design(dense_where_quicker(X), 0.0 if weight is not None else bias)
        working = design.reduced()
        hessian = ActiveRows(working)
        w, ones = np.zeros(working.shape[1]), np.ones(len(y))
        for estimator in sorted(estimators, key=lambda estimator: estimator.C):
            loss = _EpsilonInsensitive(2.0 * estimator.C, y, epsilon)
            solution = minimise(working, ones, loss, w, hessian, self.tol, self.max_iter)
            w = solution.w
            full = w if working is design else working.expand(w[:, None], design)[:, 0]
            estimator.coef_ = full[:p].copy()
            estimator.intercept_ = float(full[p]) if bias else 0.0
            estimator.objective_ = solution.objective
            estimator.n_iter_, estimator.converged_ = max(1, solution.n_iter), solution.converged

    def _complaints(self) -> list[str]:
        return [
            f"LinearSVR did not converge at C={self.C:g}, epsilon={self.epsilon:g} in "
            f"{self.n_iter_} steps; scale the inputs, lower C or raise max_iter"
        ]


class _EpsilonInsensitive:
    """``psi_i(m) = sigma / 2 max(0, |y_i - m| - epsilon_i)^2``."""

    def __init__(self, sigma: float, y: np.ndarray, epsilon: float | np.ndarray) -> None:
        self.sigma, self.y = sigma, y
        self.epsilon = np.broadcast_to(epsilon, y.shape)

    def _excess(self, m, part=slice(None)):
        """Return the errors beyond epsilon, with their signs."""
        error = self.y[part] - m
        return np.sign(error) * np.maximum(np.abs(error) - self.epsilon[part], 0.0)

    def dual(self, m, part=slice(None)):
        """Return ``-psi'(m)`` of the margins of some rows, by default all."""
        return self.sigma * self._excess(m, part)

    def value(self, m):
        """Return the sum of psi."""
        excess = self._excess(m)
        return 0.5 * self.sigma * float(excess @ excess)

    def curvature(self, m):
        """Return the rows with curvature and ``psi''`` there."""
        return np.flatnonzero(self._excess(m)), self.sigma

    def bend(self, m, d, part):
        """Return ``sum psi''(m) d^2`` over some rows."""
        moved = d[self._excess(m, part) != 0.0]
        return self.sigma * float(moved @ moved)


def _scale(X, root, bias):
    """Return rows times `root`, beside a column of these if there is an intercept."""
    rows = sp.diags_array(root) @ X if sp.issparse(X) else root[:, None] * X
    if not bias:
        return rows
    column = root[:, None]
    return sp.hstack([rows, column], format="csr") if sp.issparse(X) else np.hstack([rows, column])

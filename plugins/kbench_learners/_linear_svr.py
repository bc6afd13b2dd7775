"""Linear support vector regression with the squared epsilon-insensitive loss."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVR as _LinearSVR

from kbench.parameters import check_integer, check_number
from kbench_learners._estimator import row_weights
from kbench_learners._linear import LinearRegressor


class LinearSVR(LinearRegressor):
    r"""Linear support vector regression.

    .. math:: \min_{w, b} \tfrac12 (\|w\|^2 + b^2)
              + C \sum_i \max(0, |y_i - w^\top x_i - b| - \varepsilon)^2,

    solved in the primal by the trust-region Newton method of ``sklearn.svm.LinearSVR``.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    epsilon : float, default 0.1
        Largest error that costs nothing.
    tol : float, default 1e-4
        Norm of the gradient, relative to that at zero, at which to stop.
    max_iter : int, default 1000
        Bound of the Newton steps.
    fit_intercept : bool, default True
        Whether there is an intercept, which is penalised like the coefficients.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    intercept_ : float
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

    def __init__(self, C=1.0, epsilon=0.1, tol=1e-4, max_iter=1000, fit_intercept=True):
        self.C = C
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept

    def _check_parameters(self) -> None:
        check_number(self.C, "C", above=0)
        check_number(self.epsilon, "epsilon", least=0)
        check_number(self.tol, "tol", above=0)
        check_integer(self.max_iter, "max_iter", least=1)

    def _fit(self, X, y, sample_weight) -> None:
        solver = _LinearSVR(
            C=self.C,
            epsilon=self.epsilon,
            tol=self.tol,
            max_iter=self.max_iter,
            fit_intercept=self.fit_intercept,
            loss="squared_epsilon_insensitive",
            dual=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # ours says what to do
            solver.fit(X, y, row_weights(sample_weight, len(y)))
        self.coef_ = solver.coef_.ravel()
        self.intercept_ = float(solver.intercept_[0]) if self.fit_intercept else 0.0
        self.n_iter_ = int(solver.n_iter_)
        self.converged_ = self.n_iter_ < self.max_iter

    def _complaints(self) -> list[str]:
        return [
            f"LinearSVR did not converge at C={self.C:g}, epsilon={self.epsilon:g} in "
            f"{self.max_iter} steps; scale the inputs, lower C or raise max_iter"
        ]

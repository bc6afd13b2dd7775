"""Ridge regression on targets or on labels, in the space of a kernel."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve
from sklearn.exceptions import ConvergenceWarning

from kbench.parameters import choice, number
from kbench_learners._estimator import SCHEMES, MarginClassifier, Regressor, binary_problems
from kbench_learners._kernel_machine import KernelMixin, kernel_sums


def ridge_coefficients(K, targets, alpha: float, fit_intercept: bool):
    """Solve ``(K + alpha I) a + b = targets`` with, for a bias, ``sum(a) = 0``.

    Returns dual coefficients a of the shape of `targets`, (n, n_targets), and biases b, the
    minimisers without penalty. The diagonal of the Gram matrix `K` is overwritten.
    """
    n = len(K)
    K.flat[:: n + 1] += alpha
    right = np.column_stack([targets, np.ones(n)]) if fit_intercept else targets
    try:
        solution = cho_solve(cho_factor(K, check_finite=False), right, check_finite=False)
    except LinAlgError:
        warnings.warn(
            f"the Gram matrix plus alpha={alpha} is not positive definite; "
            "the solution may not be a minimum",
            ConvergenceWarning,
            stacklevel=4,
        )
        solution = solve(K, right, assume_a="sym")
    if not fit_intercept:
        return solution, np.zeros(targets.shape[1])
    a, u = solution[:, :-1], solution[:, -1]
    b = a.sum(axis=0) / u.sum()
    return a - u[:, None] * b, b


@dataclass(eq=False, repr=False)
class _KernelRidge(KernelMixin):
    """Parameters and solution of kernel ridge regression, on labels or on targets."""

    kernel: object = "gaussian"
    alpha: float = number(1.0, above=0)
    fit_intercept: bool = True

    def _solution(self, X, targets):
        """Set the training rows; return dual coefficients, one row per target, and biases."""
        self.X_fit_, K = self._training_gram(X)
        a, b = ridge_coefficients(K, targets, float(self.alpha), self.fit_intercept)
        return a.T, b


@dataclass(eq=False, repr=False)
class KernelRidgeClassifier(_KernelRidge, MarginClassifier):
    """Classification by kernel ridge regression on labels -1 and 1.

    ``a = (K + alpha I)^-1 y`` and ``f(x) = sum_i a_i k(x_i, x)`` (Balcan's
    lecture on kernel methods, "Kernels, discussion"), with a bias that is not
    penalised. The Gram matrix of the training rows is formed.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    alpha : float, default 1.0
        Positive weight of the penalty.
    fit_intercept : bool, default True
        Whether there is a bias.
    multiclass : {"ovr", "ovo"}, default "ovr"
        One least-squares problem for each class against the rest, which share a
        factorisation, or for each pair of classes, which vote.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    kernel_ : Kernel
        The kernel, its bandwidth set.
    X_fit_ : array or CSR matrix, shape (n_samples, n_features_in_)
        Training rows (their numbers with a precomputed kernel).
    dual_coef_ : ndarray, shape (n_problems, n_samples)
        Dual coefficients; with "ovo", 0 for rows outside the pair of classes.
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

    multiclass: str = choice("ovr", SCHEMES)

    def _fit(self, X, codes) -> None:
        problems = list(binary_problems(codes, len(self.classes_), self.multiclass))
        if all(len(rows) == len(codes) for rows, _ in problems):
            targets = np.column_stack([signs for _, signs in problems])
            self.dual_coef_, self.intercept_ = self._solution(X, targets)
        else:
            self._fit_pairs(X, problems)

    def _fit_pairs(self, X, problems) -> None:
        self.X_fit_, K = self._training_gram(X)
        self.dual_coef_ = np.zeros((len(problems), len(K)))
        self.intercept_ = np.zeros(len(problems))
        for problem, (rows, signs) in enumerate(problems):
            part = K[np.ix_(rows, rows)]
            a, b = ridge_coefficients(part, signs[:, None], float(self.alpha), self.fit_intercept)
            self.dual_coef_[problem, rows], self.intercept_[problem] = a[:, 0], b[0]

    def _margins(self, X) -> np.ndarray:
        return kernel_sums(self.kernel_, X, self.X_fit_, self.dual_coef_, self.intercept_)


class KernelRidgeRegressor(_KernelRidge, Regressor):
    """Kernel ridge regression.

    ``a = (K + alpha I)^-1 (y - b)`` and ``f(x) = sum_i a_i k(x_i, x) + b``, with a bias b that
    is not penalised. The predictions are the means of a Gaussian process whose noise has the
    variance `alpha`. The Gram matrix of the training rows is formed.

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
    kernel_ : Kernel
        The kernel, its bandwidth set.
    X_fit_ : array or CSR matrix, shape (n_samples, n_features_in_)
        Training rows (their numbers with a precomputed kernel).
    dual_coef_ : ndarray, shape (n_samples,)
        The coefficients a.
    intercept_ : float
        The bias.

    References
    ----------
    C. Saunders, A. Gammerman and V. Vovk, Ridge regression learning algorithm in dual variables,
    ICML 1998.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 6.0, 13)[:, None]
    >>> sine = KernelRidgeRegressor("gaussian", alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> sine.predict([[np.pi / 2]]).round(2)
    array([1.])
    """

    def _fit(self, X, y) -> None:
        a, b = self._solution(X, y[:, None])
        self.dual_coef_, self.intercept_ = a[0], float(b[0])

    def _predicted(self, X) -> np.ndarray:
        coef, intercept = self.dual_coef_[None], np.array([self.intercept_])
        return kernel_sums(self.kernel_, X, self.X_fit_, coef, intercept)[:, 0]

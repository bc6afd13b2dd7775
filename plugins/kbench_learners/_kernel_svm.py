"""Support vector machines on any kernel, with and without bias."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from kbench.parameters import check_integer, check_number
from kbench_learners._box_qp import solve_box_qp
from kbench_learners._kernel_machine import KernelMixin, kernel_sums
from kbench_learners._reduction import MarginClassifier, binary_problems


class KernelSVM(KernelMixin, MarginClassifier):
    """Support vector machine with the hinge loss on any kernel.

    Minimises ``1/2 ||w||^2 + C sum_i max(0, 1 - y_i (w . phi(x_i) + b))``.
    With a bias it is scikit-learn's ``SVC`` (libsvm) on the Gram matrix.
    Without, which libsvm cannot do, b = 0 and the dual has only bounds: an
    interior point method solves it to a small duality gap, whatever the scale
    of the kernel, in time cubic in the number of rows (a second for 2,000).
    The Gram matrix of the training rows is formed.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    C : float, default 1.0
        Positive weight of the loss.
    fit_intercept : bool, default True
        Whether there is a bias b; it is not penalised.
    multiclass : {"ovo", "ovr"}, default "ovo"
        One classifier for each pair of classes, which vote, or for each class
        against the rest.
    tol : float, default 1e-4
        libsvm's tolerance on the optimality conditions with a bias; the
        duality gap relative to the objective without.
    max_iter : int, default 1,000,000
        Steps of libsvm at most (Newton steps at most 200 without a bias).

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    kernel_ : Kernel
        The kernel, its bandwidth set.
    support_ : ndarray of int, shape (n_support,)
        Rows that are support vectors of some problem.
    support_vectors_ : array or CSR matrix, shape (n_support, n_features_in_)
        These rows (their numbers with a precomputed kernel).
    dual_coef_ : ndarray, shape (n_problems, n_support)
        ``y_i alpha_i``; of a pair of classes the first is positive, of two
        classes the second.
    intercept_ : ndarray, shape (n_problems,)
        Biases; 0 without.
    converged_ : bool
        Every problem was solved to `tol`; otherwise there is a
        ConvergenceWarning.
    n_iter_ : int
        Steps, the most of any problem.

    References
    ----------
    C. Cortes and V. Vapnik, Support-vector networks, Machine Learning 20 (1995); C.-C. Chang and
    C.-J. Lin, LIBSVM: A library for support vector machines, ACM TIST 2 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> svm = KernelSVM("gaussian", C=10.0, fit_intercept=False).fit(X, [0, 1, 1, 0])
    >>> svm.predict(X), svm.intercept_
    (array([0, 1, 1, 0]), array([0.]))
    """

    def __init__(
        self,
        kernel="gaussian",
        C=1.0,
        fit_intercept=True,
        multiclass="ovo",
        tol=1e-4,
        max_iter=1_000_000,
    ):
        self.kernel = kernel
        self.C = C
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        check_number(self.C, "C", above=0)
        check_number(self.tol, "tol", above=0)
        check_integer(self.max_iter, "max_iter", least=1)

    def _fit(self, X, codes) -> None:
        _, K = self._training_gram(X)
        solve = self._with_bias if self.fit_intercept else self._without_bias
        self.n_iter_, self._unsolved = 0, []
        coefficients, intercepts = [], []
        for rows, signs in binary_problems(codes, len(self.classes_), self.multiclass):
            whole = len(rows) == len(K)
            solution, intercept = solve(K if whole else K[np.ix_(rows, rows)], signs)
            coefficients.append(np.zeros(len(K)))
            coefficients[-1][rows] = solution
            intercepts.append(intercept)
        coefficients = np.array(coefficients)
        self.converged_ = not self._unsolved
        self.intercept_ = np.array(intercepts)
        self.support_ = np.flatnonzero(coefficients.any(axis=0))
        self.dual_coef_ = coefficients[:, self.support_]
        self.support_vectors_ = self.kernel_.take(X, self.support_)

    def _with_bias(self, K, signs):
        svc = SVC(kernel="precomputed", C=self.C, tol=self.tol, max_iter=self.max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(K, signs)
        steps = int(np.max(svc.n_iter_))
        self.n_iter_ = max(self.n_iter_, steps)
        if svc.fit_status_ != 0:
            self._unsolved.append(f"libsvm stopped after max_iter={steps} steps")
        solution = np.zeros(len(K))
        solution[svc.support_] = svc.dual_coef_[0]
        return solution, float(svc.intercept_[0])

    def _without_bias(self, K, signs):
        Q = K * signs
        Q *= signs[:, None]
        solution = solve_box_qp(Q, float(self.C), self.tol, min(200, self.max_iter))
        self.n_iter_ = max(self.n_iter_, solution.n_iter)
        if not solution.gap <= self.tol:
            self._unsolved.append(
                f"the relative duality gap is {solution.gap:.2g} > tol={self.tol} "
                f"after {solution.n_iter} steps"
            )
        return solution.a * signs, 0.0

    def _complaints(self) -> list[str]:
        advice = f"scale the inputs, or choose a smaller C={self.C}"
        return [f"{reason}; {advice}" for reason in self._unsolved]

    def _margins(self, X) -> np.ndarray:
        coef, intercept = self.dual_coef_, self.intercept_
        return kernel_sums(self.kernel_, X, self.support_vectors_, coef, intercept)

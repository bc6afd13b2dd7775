"""Support vector machines on any kernel, with and without bias."""

from __future__ import annotations

import numpy as np

from kbench.kernels import resolve_kernel
from kbench.parameters import check_choice, check_integer, check_number
from kbench_learners._box_qp import solve_box_qp
from kbench_learners._kernel_machine import KernelMixin, kernel_sums
from kbench_learners._libsvm import Machines, machines_along, needs_no_gram, own_kernel
from kbench_learners._path import PathClassifier
from kbench_learners._reduction import SCHEMES, binary_problems


class KernelSVM(KernelMixin, PathClassifier):
    """Support vector machine with the hinge loss on any kernel.

    Minimises ``1/2 ||w||^2 + C sum_i max(0, 1 - y_i (w . phi(x_i) + b))``.
    With a bias it is scikit-learn's ``SVC`` (libsvm).
    Without, which libsvm cannot do, b = 0 and the dual has only bounds: an
    interior point method solves it to a small duality gap, whatever the scale
    of the kernel, in time cubic in the number of rows (a second for 2,000).

    The Gram matrix of the training rows is formed once, for all pairs of
    classes and all C of a path. The Gaussian, linear and polynomial kernels
    are left to libsvm, which computes the values that it needs, for a single
    fit of rows of up to 128 columns, where that is quicker, and wherever the
    Gram matrix would be larger than 1 GiB.

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
    tol : float, default 1e-3
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

    _path = "C"

    def __init__(
        self,
        kernel="gaussian",
        C=1.0,
        fit_intercept=True,
        multiclass="ovo",
        tol=1e-3,
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
        check_choice(self.multiclass, "multiclass", SCHEMES)

    def _fit_together(self, X, codes, estimators) -> None:
        kernel = resolve_kernel(self.kernel).resolve(X)
        rising = sorted(estimators, key=lambda estimator: estimator.C)
        values = [float(estimator.C) for estimator in rising]
        solve = self._with_bias if self.fit_intercept else self._without_bias
        for estimator, machines in zip(rising, solve(kernel, X, codes, values), strict=True):
            estimator.kernel_ = kernel
            estimator.converged_, estimator.n_iter_ = machines.converged, machines.n_iter
            estimator.support_ = machines.support
            estimator.dual_coef_ = machines.coef
            estimator.intercept_ = machines.intercept
            estimator.support_vectors_ = kernel.take(X, machines.support)

    def _with_bias(self, kernel, X, codes, values):
        n_machines = 1 if self.multiclass == "ovo" else len(self.classes_)
        parameters = {"tol": self.tol, "max_iter": self.max_iter}
        if needs_no_gram(kernel, X, n_machines * len(values)):
            parameters |= own_kernel(kernel)
        else:
            X, parameters = kernel(X), {"kernel": "precomputed", **parameters}
        return machines_along(values, X, codes, self.multiclass, parameters)

    def _without_bias(self, kernel, X, codes, values):
        K = kernel(X)
        for C in values:
            yield self._machines_without_bias(K, codes, C)

    def _machines_without_bias(self, K, codes, C) -> Machines:
        problems = list(binary_problems(codes, len(self.classes_), self.multiclass))
        coef, steps, solved = np.zeros((len(problems), len(K))), 0, True
        for number, (rows, signs) in enumerate(problems):
            Q = K * signs if len(rows) == len(K) else K[np.ix_(rows, rows)] * signs
            Q *= signs[:, None]
            solution = solve_box_qp(Q, C, self.tol, min(200, self.max_iter))
            coef[number, rows] = solution.a * signs
            steps, solved = max(steps, solution.n_iter), solved and solution.gap <= self.tol
        support = np.flatnonzero(coef.any(axis=0))
        return Machines(support, coef[:, support], np.zeros(len(problems)), steps, bool(solved))

    def _complaints(self) -> list[str]:
        return [
            f"KernelSVM did not converge to tol={self.tol:g} in {self.n_iter_} steps; scale the "
            f"inputs, or choose a smaller C={self.C}"
        ]

    def _margins(self, X) -> np.ndarray:
        coef, intercept = self.dual_coef_, self.intercept_
        return kernel_sums(self.kernel_, X, self.support_vectors_, coef, intercept)

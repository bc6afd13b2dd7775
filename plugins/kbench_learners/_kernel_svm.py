"""Support vector machines on any kernel, with and without bias."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import Precomputed, resolve_kernel
from kbench_learners._box_qp import solve_box_qp
from kbench_learners._reduction import binary_problems, chosen_classes, class_scores, encoded

_CHUNK_ENTRIES = 2**20


class KernelSVM(ClassifierMixin, BaseEstimator):
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

    def fit(self, X, y):
        """Solve the problem of each pair or class.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel.
        y : array, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self
            The fitted classifier.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < value < np.inf:
                raise ValueError(f"{name}={value!r}: it must be a positive finite number")
        if not isinstance(self.max_iter, Integral) or self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r}: it must be an integer of at least 1")
        self.classes_, codes = encoded(y, type(self).__name__)
        self.kernel_ = resolve_kernel(self.kernel).resolve(X)
        everything = self.kernel_.take(X, np.arange(X.shape[0]))
        K = self.kernel_(X, everything if isinstance(self.kernel_, Precomputed) else None)
        solve = self._with_bias if self.fit_intercept else self._without_bias
        self.converged_, self.n_iter_ = True, 0
        coefficients, intercepts = [], []
        for rows, signs in binary_problems(codes, len(self.classes_), self.multiclass):
            whole = len(rows) == len(K)
            solved, intercept = solve(K if whole else K[np.ix_(rows, rows)], signs)
            coefficients.append(np.zeros(len(K)))
            coefficients[-1][rows] = solved
            intercepts.append(intercept)
        coefficients = np.array(coefficients)
        self.intercept_ = np.array(intercepts)
        self.support_ = np.flatnonzero(coefficients.any(axis=0))
        self.dual_coef_ = coefficients[:, self.support_]
        self.support_vectors_ = self.kernel_.take(X, self.support_)
        return self

    def _with_bias(self, K, signs):
        svc = SVC(kernel="precomputed", C=self.C, tol=self.tol, max_iter=self.max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(K, signs)
        steps = int(np.max(svc.n_iter_))
        self._note(svc.fit_status_ == 0, steps, f"libsvm stopped after max_iter={steps} steps")
        solved = np.zeros(len(K))
        solved[svc.support_] = svc.dual_coef_[0]
        return solved, float(svc.intercept_[0])

    def _without_bias(self, K, signs):
        Q = K * signs
        Q *= signs[:, None]
        solution = solve_box_qp(Q, float(self.C), self.tol, min(200, self.max_iter))
        self._note(
            solution.gap <= self.tol,
            solution.n_iter,
            f"the relative duality gap is {solution.gap:.2g} > tol={self.tol} "
            f"after {solution.n_iter} steps",
        )
        return solution.a * signs, 0.0

    def _note(self, converged: bool, steps: int, why: str) -> None:
        self.n_iter_ = max(self.n_iter_, steps)
        if not converged:
            self.converged_ = False
            warnings.warn(
                f"{why}; scale the inputs, or choose a smaller C={self.C}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def decision_function(self, X):
        """Score rows; positive for the second of two classes.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray, shape (n_samples,), or (n_samples, n_classes) for more than two
            Scores.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        margins = np.tile(self.intercept_, (X.shape[0], 1))
        step = max(1, _CHUNK_ENTRIES // max(1, len(self.support_)))
        for start in range(0, X.shape[0] if len(self.support_) else 0, step):
            rows = slice(start, start + step)
            margins[rows] += self.kernel_(X[rows], self.support_vectors_) @ self.dual_coef_.T
        return class_scores(margins, len(self.classes_), self.multiclass)

    def predict(self, X):
        """Predict labels.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels.
        """
        return chosen_classes(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        return tags

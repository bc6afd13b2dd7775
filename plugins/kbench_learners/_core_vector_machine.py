"""The core vector machine of Tsang, Kwok and Cheung."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import resolve_kernel
from kbench_learners._core_vectors import core_set, decisions
from kbench_learners._reduction import binary_problems, chosen_classes, class_scores, encoded


class CoreVectorMachine(ClassifierMixin, BaseEstimator):
    r"""Kernel classifier on a small core set of the training points.

    A support vector machine with squared hinge and penalised intercept,

    .. math:: \min_{w, b} \tfrac12 (\|w\|^2 + b^2)
              + \tfrac{C}{2} \sum_i \max(0, 1 - y_i f(x_i))^2,

    solved as a smallest enclosing ball (Tsang, Kwok and Cheung, "Core vector
    machines: fast SVM training on very large data sets", JMLR 6, 2005,
    Algorithm 1).

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss.
    kernel : str, Kernel or callable, default "gaussian"
        A kernel with a constant diagonal; the Gaussian one with the median
        bandwidth by default.
    tol : float, default 1e-6
        How far a point may lie outside the ball, relative to its radius. The
        radius hardly depends on the classifier, and so 1e-3 can stop long
        before that is any good: see `gap_`.
    max_core_size : int, default 5000
        Largest core set of a binary problem; time grows with its cube.
    multiclass : {"ovo", "ovr"}, default "ovo"
        One classifier for each pair of classes, which vote, as in the authors'
        program; or one for each class against the rest.
    random_state : int, RandomState or None, default 0
        Draws the first points and the samples.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    kernel_ : Kernel
        With all its numbers set.
    support_ : ndarray of int, shape (n_support,)
        Rows with a coefficient in any binary problem.
    dual_coef_ : ndarray, shape (n_support, n_problems)
    core_sizes_ : ndarray of int, shape (n_problems,)
    excess_ : float
        Largest distance of a point outside its ball, relative to the radius.
    gap_ : float
        Largest relative duality gap of a binary problem, on all its points.
    converged_ : bool
        Whether `excess_` is within `tol`.
    n_iter_ : int
        Largest number of rounds.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> machine = CoreVectorMachine(C=100.0).fit(X, y)
    >>> machine.converged_, machine.score(X, y) > 0.95
    (True, True)
    """

    def __init__(
        self,
        C=1.0,
        kernel="gaussian",
        tol=1e-6,
        max_core_size=5000,
        multiclass="ovo",
        random_state=0,
    ):
        self.C = C
        self.kernel = kernel
        self.tol = tol
        self.max_core_size = max_core_size
        self.multiclass = multiclass
        self.random_state = random_state

    def fit(self, X, y):
        """Fit one core set for each binary problem.

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
            If a parameter is out of range, the diagonal of the kernel is not
            constant, or `y` has one class only.
        """
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0.0 < value < np.inf):
                raise ValueError(f"{name}={value!r}: must be a finite number > 0")
        if not (isinstance(self.max_core_size, Integral) and self.max_core_size >= 10):
            raise ValueError(f"max_core_size={self.max_core_size!r}: must be an integer >= 10")
        kernel = resolve_kernel(self.kernel)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        self.classes_, codes = encoded(y, "CoreVectorMachine")
        n_classes = len(self.classes_)
        self.kernel_ = kernel.resolve(X)
        diagonal = self.kernel_.diag(X)
        if np.ptp(diagonal) > 1e-8 * np.abs(diagonal).max():
            raise ValueError(
                f"kernel={self.kernel!r}: k(x, x) must be the same for all x; "
                "kbench.kernels.normalized(kernel) makes it so"
            )
        rng = check_random_state(self.random_state)
        columns, cores = [], []
        for rows, signs in binary_problems(codes, n_classes, self.multiclass):
            core = core_set(self.kernel_, X[rows], signs, self.C, self.tol, self.max_core_size, rng)
            column = np.zeros(X.shape[0])
            column[rows[core.index]] = core.coef
            columns.append(column)
            cores.append(core)
        coef = np.column_stack(columns)
        self.support_ = np.flatnonzero(coef.any(axis=1))
        self.dual_coef_ = coef[self.support_]
        self._support_vectors = self.kernel_.take(X, self.support_)
        self.core_sizes_ = np.array([len(core.index) for core in cores])
        self.excess_ = max(core.excess for core in cores)
        self.gap_ = max(core.gap for core in cores)
        self.n_iter_ = max(core.n_iter for core in cores)
        self.converged_ = all(core.converged for core in cores)
        if not self.converged_:
            warnings.warn(
                f"CoreVectorMachine did not converge: a point lies {self.excess_:.1e} of the "
                f"radius outside the ball (tol={self.tol:g}) with {self.core_sizes_.max()} core "
                f"vectors; raise max_core_size={self.max_core_size} or lower C={self.C:g}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

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
        margins = decisions(self.kernel_, X, self._support_vectors, self.dual_coef_)
        return class_scores(margins, len(self.classes_), self.multiclass)

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

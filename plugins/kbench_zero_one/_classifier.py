"""The randomised rule, and the 0-1 and hinge learners over the same ball, as estimators."""

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.kernels import resolve_kernel
from kbench.parameters import check_number, check_parameters, choice, integer, number
from kbench_zero_one._kernel import UnitBall, ZeroOneKernel
from kbench_zero_one._solver import dual_values_at_full_rank, minimise_over_ball, pivoted_cholesky


class RandomisedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that draws labels from `predict_proba`, with its exact expected error."""

    def label_probabilities(self, X):
        """Return how likely the rule is to draw each label; kbench scores it without a draw.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self.predict_proba(X)

    def expected_error(self, X, y):
        """Return the expected 0-1 error of drawing labels, exactly: no draw is made.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels.

        Returns
        -------
        float
            The mean of |h(x) - y| (equation 1) with the probability h in [0, 1]. A label
            that was not in the training set is always an error.
        """
        return float(np.mean(1.0 - self._probability_of(y, X)))

    def _probability_of(self, y, X) -> np.ndarray:
        """Return the probability of each row's label, shape (n_samples,)."""
        return np.sum(self.predict_proba(X) * (np.asarray(y)[:, None] == self.classes_), axis=1)


@dataclass(eq=False, repr=False)
class _BallClassifier(RandomisedClassifier):
    """A loss, minimised over the ball ||v||^2 <= B of a kernel's feature space.

    A subclass defines the loss in `_problem`, and in `_transfer` the probability of the
    positive class, before clipping, as a function of <v, psi(x)>.
    """

    B: float = 64.0
    nu: float = 0.5
    base_kernel: object = None
    _: KW_ONLY
    kernel: object = "zero-one"
    rank: int = integer(500, least=1)
    tol: float = number(1e-6, above=0)
    rule: str = choice("randomised", ("randomised", "threshold"))
    scale: bool = True
    certify: bool = True
    max_iter: int = integer(100, least=1)
    random_state: int | np.random.RandomState | None = None

    def fit(self, X, y):
        """Solve equation 9, once for two classes and once per class for more.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, the inputs leave the unit ball and
            `scale` is False, the base kernel exceeds 1, there is one class only, or
            something is not finite.
        """
        (solution,) = self._solve(X, y, [self.B])
        return self._set_fitted(solution)

    def fit_path(self, X, y, values):
        """Fit once per value of B, factoring the Gram matrix once.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels.
        values : sequence of float
            Values of B.

        Returns
        -------
        list of fitted classifiers
            In the order of `values`; each is what ``fit`` with that B returns.
        """
        shared, values = clone(self), list(values)
        fitted = []
        for B, solution in zip(values, shared._solve(X, y, values), strict=True):
            model = copy(shared)
            model.B = B
            fitted.append(model._set_fitted(solution))
        return fitted

    def _solve(self, X, y, values):
        """Set the attributes that do not depend on B; return the problems' solutions per B."""
        for B in values:
            check_number(B, "B", above=0)
        check_parameters(self)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least 2 classes, got one class, {self.classes_[0]!r}")
        kernel = ZeroOneKernel(self.nu, self.base_kernel)  # checks both, even if they are ignored
        if not isinstance(self.kernel, str) or self.kernel != "zero-one":
            kernel = resolve_kernel(self.kernel)
        self.ball_ = UnitBall.fit(X, kernel, self.scale)
        X = self.ball_.inside(X)
        self.kernel_ = kernel.resolve(X)
        factor = pivoted_cholesky(self.kernel_, X, self.rank)
        self.landmarks_ = X[factor.pivots]
        self.rank_ = len(factor.pivots)

        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        problems = [self._problem(codes == k) for k in positives]
        solved = [
            minimise_over_ball(factor, *problem, B, self.tol, self.max_iter)
            for B in values
            for problem in problems
        ]
        V = np.stack([s.v for s in solved], axis=1)
        coef = solve_triangular(factor.G[factor.pivots], V, lower=True, trans=1).T
        full_rank_duals = np.full(len(solved), np.nan)
        if self.certify:
            full_rank_duals = dual_values_at_full_rank(
                self.kernel_,
                X,
                factor,
                duals=np.array([s.dual for s in solved]),
                b=np.stack([s.b for s in solved], axis=1),
                B=np.repeat(values, len(problems)),
            )
        rows = list(zip(solved, coef, full_rank_duals, strict=True))
        return [rows[i : i + len(problems)] for i in range(0, len(rows), len(problems))]

    def _set_fitted(self, solution):
        """Set the fitted attributes from the solutions of all problems with one B."""
        solved, coef, full_rank_duals = zip(*solution, strict=True)

        def per_problem(values):
            return float(values[0]) if len(values) == 1 else np.array(values, dtype=float)

        self.dual_coef_ = np.array(coef)
        self.objective_ = per_problem([s.objective for s in solved])
        self.duality_gap_ = per_problem([s.objective - s.dual for s in solved])
        self.kernel_gap_ = per_problem(
            [s.objective - dual for s, dual in zip(solved, full_rank_duals, strict=True)]
        )
        self.norm_ = per_problem([np.linalg.norm(s.v) for s in solved])
        self.n_iter_ = max(s.n_iter for s in solved)
        self.converged_ = all(s.converged for s in solved)
        if not self.converged_:
            warnings.warn(
                f"duality gap {np.max(self.duality_gap_):.1e} above tol={self.tol:.1e} after "
                f"{self.n_iter_} iterations (B={self.B:g}, rank {self.rank_})",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _values(self, X):
        """Return h(x) before clipping, shape (n_samples, n_problems)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        X = self.ball_.inside(X, clip=True)
        rows = max(1, 2**22 // max(1, len(self.landmarks_)))
        return np.concatenate(
            [
                self._transfer(self.kernel_(X[i : i + rows], self.landmarks_) @ self.dual_coef_.T)
                for i in range(0, len(X), rows)
            ]
        )

    def decision_function(self, X):
        """Return the distance of the predictor from the threshold.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,) or (n_samples, n_classes)
            h(x) - 1/2, unclipped; one column per class for more than two.
        """
        values = self._values(X) - 0.5
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_proba(self, X):
        """Return the probabilities of the randomised rule.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            ``[<v, psi(x)>]`` clipped to [0, 1], and one minus that (section 3). For
            more than two classes the clipped values are divided by their sum; where
            all are 0, every class is as likely.
        """
        h = np.clip(self._values(X), 0.0, 1.0)
        if len(self.classes_) == 2:
            return np.hstack([1.0 - h, h])
        total = h.sum(axis=1, keepdims=True)
        return np.divide(h, total, out=np.full_like(h, 1.0 / h.shape[1]), where=total > 0)

    def predict(self, X):
        """Predict labels by the rule.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples,)
            For ``rule="randomised"`` one draw per row from `predict_proba`, the same
            in each call if `random_state` is a number; for ``rule="threshold"`` the
            positive class where h(x) >= 1/2, or the class with the largest h(x).
        """
        if self.rule == "threshold":
            h = self._values(X)
            codes = (h[:, 0] >= 0.5).astype(int) if h.shape[1] == 1 else np.argmax(h, axis=1)
            return self.classes_[codes]
        probability = self.predict_proba(X)
        drawn = check_random_state(self.random_state).uniform(size=(len(probability), 1))
        # the first class whose cumulative probability passes the draw
        codes = np.sum(np.cumsum(probability[:, :-1], axis=1) <= drawn, axis=1)
        return self.classes_[codes]

    @available_if(lambda self: self.rule == "randomised")
    def label_probabilities(self, X):
        """Return how likely the randomised rule is to draw each label.

        The threshold rule draws none and lacks this method.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return super().label_probabilities(X)

    def score(self, X, y, sample_weight=None):
        """Return the accuracy of the rule in use; for the randomised one, the expected accuracy.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Inputs.
        y : array-like, shape (n_samples,)
            Labels.
        sample_weight : array-like, shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            Cross-validation thus chooses B for each rule by the error of that rule.
        """
        if self.rule == "threshold":
            return super().score(X, y, sample_weight)
        return float(np.average(self._probability_of(y, X), weights=sample_weight))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.rule == "randomised"
        return tags


class ZeroOneKernelClassifier(_BallClassifier):
    """Kernel classifier for the 0-1 loss, by a convex problem over the 0-1 loss kernel.

    The algorithm of Shalev-Shwartz, Shamir and Sridharan (IJCAI 2011): among the
    predictors h(x) = <v, psi(x)> with ||v||^2 <= B it finds the one with the smallest
    mean absolute error ``|h(x_i) - y_i|``, y_i in {0, 1} (equations 8 and 9), psi being the
    feature map of the kernel 1 / (1 - nu <x, x'>) (equation 6), and predicts 1 with
    probability h(x) clipped to [0, 1]. With B large enough the result is nearly as good
    as the best sigmoid of a halfspace (Theorem 2), and for any B as the best predictor
    p(<w, x>), p in P_B (Lemma 1 and Theorem 3).

    Parameters
    ----------
    B : float, default 64.0
        Squared radius of the ball, positive. The bound of Lemma 2 is astronomically large; B is
        meant to be chosen by cross-validation.
    nu : float, default 0.5
        Parameter of the kernel, strictly between 0 and 1.
    base_kernel : Kernel, str or callable, optional
        The kernel whose predictors are to be learned, at most 1 in absolute value; the
        inner product by default.
    kernel : {"zero-one"} or Kernel, str, callable, default "zero-one"
        The kernel of the ball. "zero-one" is ``ZeroOneKernel(nu, base_kernel)``;
        any other kernel, such as a Gaussian (the question of section 6), is used
        instead and ignores both.
    rank : int, default 500
        Largest rank of the pivoted Cholesky factor of the Gram matrix.
    tol : float, default 1e-6
        Largest accepted duality gap of the mean absolute error.
    rule : {"randomised", "threshold"}, default "randomised"
        Draw from the clipped probability, or predict 1 where h(x) >= 1/2.
    scale : bool, default True
        Divide the inputs by the largest training norm if the base kernel would
        otherwise exceed 1 (for the inner product: only if that norm exceeds 1). Later
        inputs outside the unit ball are projected on it.
    certify : bool, default True
        Measure the cost of the low rank: O(n_samples^2) values of the kernel, in blocks.
    max_iter : int, default 100
        Maximum number of interior point iterations.
    random_state : int, RandomState instance or None, default None
        Seed of the randomised rule.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels; with two, the second is the positive class, y = 1.
    kernel_ : Kernel
        The kernel with every number set.
    landmarks_ : ndarray, shape (rank_, n_features)
        Scaled training inputs in which the predictor is written.
    dual_coef_ : ndarray, shape (1 or n_classes, rank_)
        h(x) = sum_j dual_coef_[j] k(landmarks_[j], x).
    objective_ : float or ndarray, shape (n_classes,)
        Mean absolute training error at the solution, a scalar for two classes.
    duality_gap_ : float or ndarray, shape (n_classes,)
        `objective_` is at most this far above the optimum over the span of the landmarks.
    kernel_gap_ : float or ndarray, shape (n_classes,)
        `objective_` is at most this far above the optimum with the kernel itself, the
        cost of the low rank included; NaN unless `certify`.
    norm_ : float or ndarray, shape (n_classes,)
        ||v||, at most sqrt(B); less where the ball is inactive.
    rank_, n_iter_ : int
        Rank used, Newton steps made (the most of all classes).
    converged_ : bool
        Every duality gap is at most `tol`.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    v lies in the span of the landmarks' images, on which every psi(x_i) is projected;
    its values on the training inputs are those of the kernel itself, hence
    `objective_` is an upper bound of the optimum at full rank. The dual point b of the
    low-rank problem gives the lower bound (1/m)(b'y - sqrt(B) sqrt(b'Kb)); `kernel_gap_`
    is the difference. More than two classes are fitted one against the rest, on one
    factor. See `_solver` for the method.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, (200, 2))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> model = ZeroOneKernelClassifier(B=1000.0, random_state=0).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-6), bool(model.norm_**2 <= 1000.1)
    (True, True)
    >>> model.expected_error(X, y) < 0.2
    True
    """

    @staticmethod
    def _problem(positive):
        """Write |y - h| as the maximum of b (y - h) over b in [-1, 1]."""
        target = positive.astype(float)
        return target, -np.ones_like(target), np.ones_like(target)

    @staticmethod
    def _transfer(values):
        return values


class ZeroOneHingeClassifier(_BallClassifier):
    """Kernel classifier with hinge loss over the ball of the 0-1 loss kernel, for comparison.

    Section 6 of Shalev-Shwartz, Shamir and Sridharan (IJCAI 2011) says that a support
    vector machine with their kernel can give similar guarantees. The reason is short.
    Let f = 2h - 1, h the clipped probability of label 1 and s = 2y - 1; then ::

        |clip(h) - y|  <=  max(0, 1 - s f) / 2  <=  |h - y|,

    so half the hinge loss also bounds the error of the randomised rule, and never from
    further above than the absolute error does.

    Parameters
    ----------
    B, nu, base_kernel, kernel, rank, tol, rule, scale, certify, max_iter, random_state
        As for `ZeroOneKernelClassifier`; the ball ||v||^2 <= B is that of f. The
        probability of the randomised rule is (1 + f)/2 clipped to [0, 1], the
        threshold is f >= 0.

    Attributes
    ----------
    objective_, duality_gap_, kernel_gap_, norm_ : float or ndarray, shape (n_classes,)
        As for `ZeroOneKernelClassifier`, of the mean hinge loss.
    classes_, kernel_, landmarks_, dual_coef_, rank_, n_iter_, converged_, n_features_in_
        As for `ZeroOneKernelClassifier`, of f.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-0.5], [-0.3], [0.3], [0.5]])
    >>> ZeroOneHingeClassifier(B=100.0, rule="threshold").fit(X, [0, 0, 1, 1]).predict(X)
    array([0, 0, 1, 1])
    """

    @staticmethod
    def _problem(positive):
        """Write max(0, 1 - s f) as the maximum of b (s - f) over b between 0 and s."""
        target = np.where(positive, 1.0, -1.0)
        return target, np.minimum(target, 0.0), np.maximum(target, 0.0)

    @staticmethod
    def _transfer(values):
        return (1.0 + values) / 2


def certificates(fitted, X, y):
    """Measure errors, gaps, rank and norm of a learner over the ball.

    ``expected_zero_one_error`` is that of the randomised rule, exactly, the mean of
    ``|h(x) - y|`` on test data, whichever rule is in use. ``duality_gap``, ``kernel_gap``
    and ``squared_norm`` are the largest of the fit, ``rank`` is its rank.
    """
    return {
        "expected_zero_one_error": fitted.expected_error(X, y),
        "duality_gap": float(np.max(fitted.duality_gap_)),
        "kernel_gap": float(np.max(fitted.kernel_gap_)),
        "squared_norm": float(np.max(fitted.norm_) ** 2),
        "rank": float(fitted.rank_),
    }

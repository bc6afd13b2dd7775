"""Support vector machines on any kernel, with and without bias."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from kbench.kernels import Gaussian, Linear, Polynomial, resolve_kernel
from kbench.parameters import choice, integer, number
from kbench_learners._estimator import SCHEMES, PathClassifier, binary_problems
from kbench_learners._kernel_machine import KernelMixin, kernel_sums

_MAX_GRAM_ENTRIES = 2**27
"""A larger Gram matrix, more than 1 GiB, is not formed where libsvm has the kernel."""

_CACHE_MIB = 200
"""Kernel values that libsvm keeps: the others are computed again in each step."""

_MAX_DENSE_COLUMNS = 128
"""Up to so many columns libsvm's own kernel is quicker than a Gram matrix for one fit.

libsvm computes only the kernel values that it needs, one by one, and a Gram matrix costs
less a value, the more columns there are. Measured with 1,800 rows of 10 classes, CPU seconds
of both: 0.03 and 0.05 with 64 columns, 0.05 and 0.05 with 256, 0.20 and 0.09 with 1,024, at
the median bandwidth; at a quarter of it the Gram matrix is quicker from 64 columns on.
"""


@dataclass(frozen=True)
class Machines:
    """Solutions of all binary problems at one value of C.

    `coef` are ``y_i alpha_i``, shape (n_problems, n_support), of the rows `support`, in
    rising order.
    """

    support: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    n_iter: int
    converged: bool


def own_kernel(kernel) -> dict | None:
    """Return the parameters of `SVC` for a kernel that libsvm has, None for another."""
    if type(kernel) is Gaussian:
        return {"kernel": "rbf", "gamma": 0.5 / kernel.bandwidth**2}
    if type(kernel) is Linear:
        return {"kernel": "linear"}
    if type(kernel) is Polynomial:
        return {"kernel": "poly", "gamma": 1.0, "coef0": kernel.offset, "degree": kernel.degree}
    return None


def needs_no_gram(kernel, X, n_fits: int, row_share: float = 1.0) -> bool:
    """Return True if the kernel of libsvm is faster, or a Gram matrix would be too large.

    `n_fits` is how often a Gram matrix of the rows would be used. They are `row_share` of all
    rows, whose Gram matrix decides.
    """
    if own_kernel(kernel) is None:
        return False
    quick = not sp.issparse(X) and X.shape[1] <= _MAX_DENSE_COLUMNS
    return (n_fits == 1 and quick) or (X.shape[0] / row_share) ** 2 > _MAX_GRAM_ENTRIES


def machines_along(
    Cs: Sequence[float], X, codes, scheme: str, parameters: dict
) -> Iterator[Machines]:
    """Yield the solutions for each of the rising values `Cs`.

    `parameters` are those of `SVC` without C; `X` is a Gram matrix if they declare it.
    A solution in which no ``alpha_i`` reaches C is one for all larger C too: it fulfils the
    same optimality conditions.
    """
    largest, previous = np.inf, 0.0
    for C in Cs:
        if largest >= previous:
            machines = _solve(SVC(C=C, **parameters), X, codes, scheme)
            largest, previous = np.abs(machines.coef).max(initial=0.0), C * (1 - 1e-12)
        yield machines


def _solve(svc: SVC, X, codes, scheme: str) -> Machines:
    n_classes = int(codes.max()) + 1
    if n_classes == 2 or scheme == "ovo":
        return _one_against_one(_fit_pair(svc, X, codes), n_classes)
    coef, intercept, steps, solved = np.zeros((n_classes, X.shape[0])), [], 0, True
    for k in range(n_classes):
        _fit_pair(svc, X, codes == k)
        coef[k, svc.support_] = svc.dual_coef_[0]
        intercept.append(svc.intercept_[0])
        steps, solved = max(steps, int(svc.n_iter_.max())), solved and svc.fit_status_ == 0
    support = np.flatnonzero(coef.any(axis=0))
    return Machines(support, coef[:, support], np.array(intercept), steps, solved)


def _fit_pair(svc: SVC, X, targets) -> SVC:
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with quiet, config_context(assume_finite=True):
        return svc.fit(X, targets)


def _one_against_one(svc: SVC, n_classes: int) -> Machines:
    """Return the solutions of all pairs of classes of a fitted `SVC`.

    Its row j - 1 holds the coefficients of the rows of class i < j against class j, and row
    i those of the rows of class j against class i.
    """
    order = np.argsort(svc.support_)
    compact = svc.dual_coef_.toarray() if sp.issparse(svc.dual_coef_) else svc.dual_coef_
    if n_classes == 2:
        coef = compact[:, order]
    else:
        ends = np.cumsum(svc.n_support_)
        members = [slice(*part) for part in zip(ends - svc.n_support_, ends, strict=True)]
        coef = np.zeros((len(svc.intercept_), len(order)))
        for problem, (i, j) in enumerate(combinations(range(n_classes), 2)):
            coef[problem, members[i]] = compact[j - 1, members[i]]
            coef[problem, members[j]] = compact[i, members[j]]
        coef = coef[:, order]
    steps = int(np.max(svc.n_iter_))
    return Machines(svc.support_[order], coef, svc.intercept_, steps, svc.fit_status_ == 0)


_PATIENCE = 30  # steps without a smaller gap, after which rounding errors dominate


@dataclass(frozen=True)
class BoxSolution:
    """Solution of ``min 1/2 a' Q a - sum(a)``, ``0 <= a <= C``.

    Dual variables `a` at a bound are there exactly. `gap` is the duality gap relative to
    the primal objective, `n_iter` the number of Newton steps.
    """

    a: np.ndarray
    gap: float
    n_iter: int


def solve_box_qp(Q: np.ndarray, C: float, tol: float, max_iter: int) -> BoxSolution:
    """Solve the dual by a primal-dual interior point method, to a relative gap of `tol`.

    Mehrotra's predictor-corrector steps (Nocedal and Wright, "Numerical
    Optimization", 2006, section 16.6), one Cholesky decomposition each. Neither the
    scale nor the rank of `Q` matters: the barrier's diagonal makes every system definite.

    `Q` is ``y_i y_j k(x_i, x_j)``, shape (n, n), positive semidefinite. The result is the
    best point of all steps.
    """
    n = len(Q)
    scale = float(np.mean(Q.diagonal()))
    if scale <= 0:  # Q = 0: every variable is at its upper bound
        return BoxSolution(np.full(n, C), 0.0, 0)
    Q = Q / scale
    upper = C * scale
    x = np.full(n, min(1.0, upper / 2))  # dual variables, times scale
    s = upper - x  # room above
    z = np.ones(n)  # multiplier of x >= 0
    w = np.ones(n)  # multiplier of x <= upper
    best = BoxSolution(np.zeros(n), np.inf, 0)
    for step in range(1, max_iter + 1):
        margins = Q @ x
        # variables whose multiplier outweighs them are put on their bound
        a = np.where(s / upper < w * 1e-3, upper, np.where(x / upper < z * 1e-3, 0.0, x))
        gap = _relative_gap(Q, a, upper)
        if gap < best.gap:
            best = BoxSolution(np.minimum(a / scale, C), gap, step - 1)
        if gap <= tol or step - best.n_iter > _PATIENCE:
            break
        mu = (x @ z + s @ w) / (2 * n)
        residual = margins - 1 - z + w
        system = Q + np.diag(z / x + w / s)
        try:
            factor = cho_factor(system, check_finite=False)
        except LinAlgError:
            break
        newton = (system, factor)
        # predictor: straight at the solution; corrector: back to the centre
        dx, dz, dw = _direction(newton, residual, x, s, z, w, x * z, s * w)
        t = min(_longest(x, dx), _longest(s, -dx), _longest(z, dz), _longest(w, dw))
        after = ((x + t * dx) @ (z + t * dz) + (s - t * dx) @ (w + t * dw)) / (2 * n)
        target = mu * (after / mu) ** 3
        dx, dz, dw = _direction(
            newton, residual, x, s, z, w, x * z + dx * dz - target, s * w - dx * dw - target
        )
        primal = 0.9995 * min(_longest(x, dx), _longest(s, -dx))
        t = min(primal, 0.9995 * min(_longest(z, dz), _longest(w, dw)), 1.0)
        if not np.isfinite(t) or t <= 0:
            break
        x, s, z, w = x + t * dx, s - t * dx, z + t * dz, w + t * dw
    return BoxSolution(best.a, best.gap, step)


def _direction(newton, residual, x, s, z, w, xz, sw):
    """Solve the Newton system for given complementarity residuals."""
    system, factor = newton
    right = -residual - xz / x + sw / s
    dx = cho_solve(factor, right, check_finite=False)
    # one step of refinement: near the solution the system is ill-conditioned
    dx += cho_solve(factor, right - system @ dx, check_finite=False)
    return dx, -(xz + z * dx) / x, -(sw - w * dx) / s


def _longest(value, direction) -> float:
    """Return the longest step, up to 1, that keeps a vector nonnegative."""
    shrinking = direction < 0
    if not shrinking.any():
        return 1.0
    with np.errstate(over="ignore"):
        return min(1.0, float((-value[shrinking] / direction[shrinking]).min()))


def _relative_gap(Q, a, upper) -> float:
    margins = Q @ a
    quadratic = a @ margins / 2
    primal = quadratic + upper * np.maximum(0.0, 1.0 - margins).sum()
    return float((primal - (a.sum() - quadratic)) / max(primal, np.finfo(float).tiny))


@dataclass(eq=False, repr=False)
class KernelSVM(KernelMixin, PathClassifier):
    """Support vector machine with hinge loss for any kernel.

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
        Maximum number of steps of libsvm (without a bias, at most 200 Newton steps).

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

    kernel: object = "gaussian"
    C: float = number(1.0, above=0)
    fit_intercept: bool = True
    multiclass: str = choice("ovo", SCHEMES)
    tol: float = number(1e-3, above=0)
    max_iter: int = integer(1_000_000, least=1)

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
        cache_mib = _CACHE_MIB * self._row_share**2
        parameters = {"tol": self.tol, "max_iter": self.max_iter, "cache_size": cache_mib}
        if needs_no_gram(kernel, X, n_machines * len(values), self._row_share):
            parameters |= own_kernel(kernel)
        else:
            X, parameters = kernel(X), {"kernel": "precomputed", **parameters}
        return machines_along(values, X, codes, self.multiclass, parameters)

    def _without_bias(self, kernel, X, codes, values):
        K = kernel(X)
        problems = list(binary_problems(codes, len(self.classes_), self.multiclass))
        for C in values:
            coef, steps, solved = np.zeros((len(problems), len(K))), 0, True
            for problem, (rows, signs) in enumerate(problems):
                Q = K * signs if len(rows) == len(K) else K[np.ix_(rows, rows)] * signs
                Q *= signs[:, None]
                solution = solve_box_qp(Q, C, self.tol, min(200, self.max_iter))
                coef[problem, rows] = solution.a * signs
                steps, solved = max(steps, solution.n_iter), solved and solution.gap <= self.tol
            support = np.flatnonzero(coef.any(axis=0))
            yield Machines(support, coef[:, support], np.zeros(len(problems)), steps, bool(solved))

    def _complaints(self) -> list[str]:
        return [
            f"KernelSVM did not converge to tol={self.tol:g} in {self.n_iter_} steps; scale the "
            f"inputs, or choose a smaller C={self.C}"
        ]

    def _margins(self, X) -> np.ndarray:
        coef, intercept = self.dual_coef_, self.intercept_
        share = self._row_share**2  # of the values of all rows
        return kernel_sums(self.kernel_, X, self.support_vectors_, coef, intercept, share)

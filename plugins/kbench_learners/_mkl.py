"""Learning a convex combination of kernels, by alignment or with the largest margin.

The largest margin is found by cutting planes. The support vector machine on
``K = sum_m d_m K_m`` has the optimal value

    J(d) = max { sum_i alpha_i - 1/2 sum_m d_m c' K_m c },  c_i = y_i alpha_i,

over the alpha of its dual, which do not depend on d: J is a maximum of linear functions,
and its minimum over ``d >= 0, sum d = 1`` a linear programme with one row for each alpha
(Lanckriet et al., JMLR 5, 2004; Sonnenburg, Raetsch, Schaefer and Schoelkopf, "Large scale
multiple kernel learning", JMLR 7, 2006, Algorithm 1). A machine that is solved at some d
gives the next row. J of several binary problems is the sum of theirs.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import linprog, nnls
from sklearn.exceptions import ConvergenceWarning

from kbench.kernels import Precomputed, resolve_kernel
from kbench.parameters import choice, integer, number
from kbench_learners._estimator import SCHEMES, PathClassifier
from kbench_learners._kernel_svm import KernelSVM


def margin_weights(
    grams: list[np.ndarray],
    machines: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, float, int]:
    """Minimise J to a relative gap of `tol`, in at most `max_iter` machines.

    Returns the weights, a bound on how far J is above its minimum, relative to it, and the
    number of machines.

    `machines` solves all binary problems for a Gram matrix, and returns the rows of the
    support vectors and their coefficients ``y_i alpha_i``, shape (n_problems, n_support).
    """
    m = len(grams)
    weights = best = np.full(m, 1 / m)
    upper, lower, rows, offsets = np.inf, 0.0, [], []
    for _ in range(max_iter):
        K = sum(weight * gram for weight, gram in zip(weights, grams, strict=True) if weight > 0)
        support, coef = machines(K)
        part = np.ix_(support, support)
        offsets.append(float(np.abs(coef).sum()))
        rows.append([0.5 * float(np.vdot(coef @ gram[part], coef)) for gram in grams])
        value = offsets[-1] - float(weights @ rows[-1])
        if value < upper:
            upper, best = value, weights
        weights, lower = _cutting_plane(np.array(rows), np.array(offsets))
        if upper - lower <= tol * upper:
            break
    return best, max(upper - lower, 0.0) / max(upper, 1e-300), len(rows)


def _cutting_plane(rows, offsets) -> tuple[np.ndarray, float]:
    """Minimise ``max_t offsets_t - rows_t . d`` over the simplex; return d and the minimum."""
    scale = max(float(np.abs(offsets).max()), 1e-300)
    m = rows.shape[1]
    solution = linprog(
        np.append(np.zeros(m), 1.0),
        A_ub=np.column_stack([-rows / scale, -np.ones(len(rows))]),
        b_ub=-offsets / scale,
        A_eq=[np.append(np.ones(m), 0.0)],
        b_eq=[1.0],
        bounds=[(0.0, None)] * m + [(None, None)],
        method="highs-ds",
    )
    weights = np.maximum(solution.x[:m], 0.0)
    return weights / weights.sum(), float(solution.fun) * scale


def centre(K: np.ndarray) -> np.ndarray:
    """Centre a Gram matrix: return that of ``phi(x) - mean phi``."""
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def alignment_weights(grams, targets, method: str) -> np.ndarray:
    """Weigh kernels by their centred alignment with the labels.

    `grams` are Gram matrices of similar scale, `targets` is that of the labels. "alignf"
    is the combination with the largest alignment, from a nonnegative quadratic programme
    (Cortes, Mohri and Rostamizadeh 2012, Proposition 9); "align" are weights proportional
    to the alignment of each kernel; "uniform" are equal ones. They are nonnegative, with sum 1.
    """
    m = len(grams)
    if method == "uniform":
        return np.full(m, 1 / m)
    grams = [centre(K) for K in grams]
    towards = np.array([float(np.vdot(K, targets)) for K in grams])
    if method == "align":
        weights = np.maximum(towards / [max(np.linalg.norm(K), 1e-300) for K in grams], 0)
    else:
        M = np.array([[float(np.vdot(left, right)) for right in grams] for left in grams])
        # kernels may be equal: a ridge far below the entries keeps M definite
        M.flat[:: m + 1] += 1e-10 * max(np.trace(M) / m, 1e-300)
        L = cholesky(M, lower=True)
        # min v'Mv - 2 v'a over v >= 0 is min ||L'v - L^-1 a||
        weights, _ = nnls(L.T, solve_triangular(L, towards, lower=True))
    total = weights.sum()
    return weights / total if total > 0 else np.full(m, 1 / m)


@dataclass(eq=False, repr=False)
class MultipleKernelSVM(PathClassifier):
    r"""Multiple kernel learning: an SVM on a learned convex combination of kernels.

    Learning the kernel as a combination of given ones goes back to Lanckriet et
    al. [1]_, who choose the weights :math:`d` with the largest margin, `method`
    "margin":

    .. math:: \min_{d \geq 0, \sum_m d_m = 1} \; \min_{w, b} \tfrac12 \|w\|^2
              + C \sum_i \max(0, 1 - y_i (w^\top \phi_d(x_i) + b)),

    with the features :math:`\phi_d` of the kernel :math:`\sum_m d_m k_m`. It
    is solved by cutting planes [2]_; of several binary problems, which share
    the weights, the objectives are summed. The other methods weigh the kernels
    by their centred alignment with the labels [3]_, without C, and are
    quicker. Every kernel is divided by its mean diagonal, so that weights can
    be compared. The Gram matrices of all kernels are formed.

    Parameters
    ----------
    kernels : sequence of str, Kernel or callable
        Kernels to combine, at least one; by default "linear", "polynomial" and
        "gaussian".
    method : {"alignf", "align", "uniform", "margin"}, default "alignf"
        The combination with the largest alignment; weights proportional to
        the alignment of each kernel; equal weights; or the combination with the largest
        margin.
    C : float, default 1.0
        Positive weight of the hinge loss.
    fit_intercept : bool, default True
        Whether there is a bias.
    multiclass : {"ovo", "ovr"}, default "ovo"
        As in `KernelSVM`.
    tol : float, default 1e-3
        As in `KernelSVM`; with "margin" also how far the objective may be above
        the smallest one, relative to it.
    max_iter : int, default 200
        Support vector machines at most that "margin" solves to choose the weights.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    weights_ : ndarray, shape (n_kernels,)
        Nonnegative, with sum 1.
    kernel_ : Kernel
        The combination.
    svm_ : KernelSVM
        The classifier on it.
    gap_ : float
        With "margin", a bound on how far the objective is above the smallest one,
        relative to it; else NaN.
    n_iter_ : int
        Support vector machines that were solved to choose the weights; 1 if none.
    converged_ : bool
        Whether the classifier converged, and with "margin" the weights; otherwise there is
        a ConvergenceWarning.

    References
    ----------
    .. [1] G. R. G. Lanckriet, N. Cristianini, P. Bartlett, L. El Ghaoui and M. I. Jordan,
       Learning the kernel matrix with semidefinite programming, JMLR 5 (2004), section 4.4.
    .. [2] S. Sonnenburg, G. Raetsch, C. Schaefer and B. Schoelkopf, Large scale multiple
       kernel learning, JMLR 7 (2006), algorithm 1.
    .. [3] C. Cortes, M. Mohri and A. Rostamizadeh, Algorithms for learning kernels based on
       centered alignment, JMLR 13 (2012).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> MultipleKernelSVM(["linear", "polynomial"]).fit(X, y).weights_.round(2)
    array([0., 1.])
    """

    _path = "C"
    _takes_sparse = False

    kernels: object = ("linear", "polynomial", "gaussian")
    method: str = choice("alignf", ("alignf", "align", "uniform", "margin"))
    C: float = number(1.0, above=0)
    fit_intercept: bool = True
    multiclass: str = choice("ovo", SCHEMES)
    tol: float = number(1e-3, above=0)
    max_iter: int = integer(200, least=1)

    def _svm(self, kernel, tol) -> KernelSVM:
        options = {"fit_intercept": self.fit_intercept, "multiclass": self.multiclass}
        return KernelSVM(kernel, C=self.C, tol=tol, **options)

    def _fit_together(self, X, codes, estimators) -> None:
        kernels = [resolve_kernel(kernel).resolve(X) for kernel in self.kernels]
        if not kernels or any(isinstance(kernel, Precomputed) for kernel in kernels):
            raise ValueError(
                f"kernels must have at least one kernel, none precomputed, got {self.kernels!r}"
            )
        scales = [float(np.mean(kernel.diag(X))) for kernel in kernels]
        if min(scales) <= 0:
            raise ValueError(f"kernels must not be 0 on every row, got {self.kernels!r}")
        grams = [kernel(X) / scale for kernel, scale in zip(kernels, scales, strict=True)]
        scaled = [kernel * (1 / scale) for kernel, scale in zip(kernels, scales, strict=True)]
        if self.method == "margin":
            for estimator in estimators:
                estimator._weigh_by_margin(grams, codes)
        else:
            weights = alignment_weights(grams, (codes[:, None] == codes).astype(float), self.method)
            for estimator in estimators:
                estimator.weights_, estimator.gap_, estimator.n_iter_ = weights, float("nan"), 1
        del grams
        groups: dict[bytes, list[MultipleKernelSVM]] = {}
        for estimator in estimators:
            groups.setdefault(estimator.weights_.tobytes(), []).append(estimator)
        for group in groups.values():
            terms = zip(scaled, group[0].weights_, strict=True)
            kernel = reduce(add, [part * float(weight) for part, weight in terms if weight > 0])
            svms = self._svm(kernel, self.tol).fit_path(
                X, self.classes_[codes], [estimator.C for estimator in group]
            )
            for estimator, svm in zip(group, svms, strict=True):
                estimator.kernel_, estimator.svm_ = kernel, svm
                estimator.converged_ = svm.converged_ and not estimator.gap_ > self.tol

    def _weigh_by_margin(self, grams, codes) -> None:
        svm = self._svm("precomputed", 0.1 * self.tol)

        def machines(K):
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                svm.fit(K, codes)
            return svm.support_, svm.dual_coef_

        found = margin_weights(grams, machines, self.tol, self.max_iter)
        self.weights_, self.gap_, self.n_iter_ = found

    def _complaints(self) -> list[str]:
        if not self.gap_ > self.tol:
            return []  # of the classifier, which has complained
        return [
            f"MultipleKernelSVM did not converge: the objective is up to {self.gap_:.1e} above "
            f"the smallest one (tol={self.tol:g}); raise max_iter={self.max_iter}"
        ]

    def _margins(self, X) -> np.ndarray:
        return self.svm_._margins(X)

"""Learning a convex combination of kernels."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from kbench.kernels import Precomputed, resolve_kernel
from kbench.parameters import check_choice
from kbench_learners._kernel_svm import KernelSVM
from kbench_learners._reduction import MarginClassifier

METHODS = ("alignf", "align", "uniform")


def centred(K: np.ndarray) -> np.ndarray:
    """Centre a Gram matrix: return that of ``phi(x) - mean phi``."""
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def alignment_weights(grams, targets, method: str) -> np.ndarray:
    """Weigh kernels by their centred alignment with the labels.

    `grams` are Gram matrices of similar scale, `targets` is that of the labels. "alignf"
    is the combination with the largest alignment, from a nonnegative quadratic programme
    (Cortes, Mohri and Rostamizadeh 2012, Proposition 9); "align" are weights proportional
    to the alignment of each kernel; "uniform" are equal ones.

    Returns
    -------
    ndarray, shape (n_kernels,)
        Nonnegative, with sum 1.
    """
    m = len(grams)
    if method == "uniform":
        return np.full(m, 1 / m)
    grams = [centred(K) for K in grams]
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


class MultipleKernelSVM(MarginClassifier):
    """Support vector machine on a learned convex combination of kernels.

    Learning the kernel as a combination of given ones goes back to Lanckriet,
    Cristianini, Bartlett, El Ghaoui and Jordan, "Learning the kernel matrix
    with semidefinite programming", JMLR 5 (2004). Here the weights come first,
    from centred alignment with the labels (Cortes, Mohri and Rostamizadeh,
    "Algorithms for learning kernels based on centered alignment", JMLR 13,
    2012), then the classifier. Every kernel is divided by its mean diagonal, so
    that weights can be compared.

    Parameters
    ----------
    kernels : sequence of str, Kernel or callable, \
default ("linear", "polynomial", "gaussian")
        Kernels to combine; at least one.
    method : {"alignf", "align", "uniform"}, default "alignf"
        The combination with the largest alignment; weights proportional to
        each kernel's own; or equal weights.
    C : float, default 1.0
        Positive weight of the hinge loss.
    fit_intercept : bool, default True
        Whether there is a bias.
    multiclass : {"ovo", "ovr"}, default "ovo"
        As in `KernelSVM`.

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
    converged_ : bool
        Of the classifier.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> MultipleKernelSVM(["linear", "polynomial"]).fit(X, y).weights_.round(2)
    array([0., 1.])
    """

    _takes_sparse = False

    def __init__(
        self,
        kernels=("linear", "polynomial", "gaussian"),
        method="alignf",
        C=1.0,
        fit_intercept=True,
        multiclass="ovo",
    ):
        self.kernels = kernels
        self.method = method
        self.C = C
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass

    def _check_parameters(self) -> None:
        check_choice(self.method, "method", METHODS)

    def _fit(self, X, codes) -> None:
        kernels = [resolve_kernel(kernel).resolve(X) for kernel in self.kernels]
        if not kernels or any(isinstance(kernel, Precomputed) for kernel in kernels):
            raise ValueError(
                f"kernels must have at least one kernel, none precomputed, got {self.kernels!r}"
            )
        scales = [float(np.mean(kernel.diag(X))) for kernel in kernels]
        if min(scales) <= 0:
            raise ValueError(f"kernels must not be 0 on every row, got {self.kernels!r}")
        grams = [kernel(X) / scale for kernel, scale in zip(kernels, scales, strict=True)]
        targets = (codes[:, None] == codes).astype(float)
        self.weights_ = alignment_weights(grams, targets, self.method)
        terms = zip(kernels, self.weights_, scales, strict=True)
        self.kernel_ = reduce(
            add, [kernel * (weight / scale) for kernel, weight, scale in terms if weight > 0]
        )
        self.svm_ = KernelSVM(
            self.kernel_, C=self.C, fit_intercept=self.fit_intercept, multiclass=self.multiclass
        ).fit(X, self.classes_[codes])
        self.converged_ = self.svm_.converged_

    def _margins(self, X) -> np.ndarray:
        return self.svm_._margins(X)

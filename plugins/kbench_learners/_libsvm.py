"""libsvm's support vector machines, in the order of `binary_problems`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from kbench.kernels import Gaussian, Linear, Polynomial

_MAX_GRAM_ENTRIES = 2**27
"""A larger Gram matrix, more than 1 GiB, is not formed where libsvm has the kernel."""

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
        parameters = {"gamma": 1.0, "coef0": kernel.offset, "degree": kernel.degree}
        return {"kernel": "poly", **parameters}
    return None


def needs_no_gram(kernel, X, n_fits: int) -> bool:
    """Return True where libsvm's own kernel is quicker, or a Gram matrix would be too large.

    `n_fits` is how often a Gram matrix of the rows would be used.
    """
    if own_kernel(kernel) is None:
        return False
    quick = not sp.issparse(X) and X.shape[1] <= _MAX_DENSE_COLUMNS
    return (n_fits == 1 and quick) or X.shape[0] ** 2 > _MAX_GRAM_ENTRIES


def machines_along(
    Cs: Sequence[float], X, codes, scheme: str, parameters: dict
) -> Iterator[Machines]:
    """Yield the solutions for each of the rising values `Cs`.

    `parameters` are those of `SVC` but for C; `X` is a Gram matrix where they say so.
    A solution in which no ``alpha_i`` reaches C is one for all larger C too: it fulfils the
    same optimality conditions.
    """
    largest, previous = np.inf, 0.0
    for C in Cs:
        if largest >= previous:
            machines = _solved(SVC(C=C, **parameters), X, codes, scheme)
            largest, previous = np.abs(machines.coef).max(initial=0.0), C * (1 - 1e-12)
        yield machines


def _solved(svc: SVC, X, codes, scheme: str) -> Machines:
    n_classes = int(codes.max()) + 1
    if n_classes == 2 or scheme == "ovo":
        return _one_against_one(_fitted(svc, X, codes), n_classes)
    coef, intercept, steps, solved = np.zeros((n_classes, X.shape[0])), [], 0, True
    for k in range(n_classes):
        _fitted(svc, X, codes == k)
        coef[k, svc.support_] = svc.dual_coef_[0]
        intercept.append(svc.intercept_[0])
        steps, solved = max(steps, int(svc.n_iter_.max())), solved and svc.fit_status_ == 0
    support = np.flatnonzero(coef.any(axis=0))
    return Machines(support, coef[:, support], np.array(intercept), steps, solved)


def _fitted(svc: SVC, X, targets) -> SVC:
    with warnings.catch_warnings(), config_context(assume_finite=True):
        warnings.simplefilter("ignore", ConvergenceWarning)
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

"""Ridge regression from sums over rows, by one eigendecomposition for all penalties."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from kbench_learners._estimator import check_classes


def fitted_from_sums(estimator, sums, alphas):
    """Yield a clone of `estimator` for every alpha, with its coefficients and intercepts.

    The clones lack these and `classes_`.
    """
    if not sums.n > 0:
        raise ValueError("all values of sample_weight are zero")
    moments, target = sums.moments, sums.target_mean
    if sums.classes is not None:
        check_classes(estimator, sums.classes)
        # indicators become targets -1 and 1, of two classes those of the second
        columns = [1] if len(sums.classes) == 2 else slice(None)
        moments, target = 2.0 * moments[:, columns], 2.0 * target[columns] - 1.0
    fitted = [clone(estimator).set_params(alpha=alpha) for alpha in alphas]
    for each in fitted:
        each._check_parameters()
        each.n_features_in_ = len(sums.mean)
        each.n_iter_, each.converged_ = 1, True
    solutions = _solutions(sums.gram, moments, alphas)
    for each, W in zip(fitted, solutions, strict=True):
        yield each, W, target - sums.mean @ W


def _solutions(G, moments, alphas):
    """Solve ``(G + alpha I) W = moments`` for every alpha, with `G` positive semidefinite."""
    values, vectors = eigh(G, driver="evd", check_finite=False)
    floor = len(values) * np.finfo(float).eps * max(values[-1], 0.0)
    projected = vectors.T @ moments
    for alpha in alphas:
        # directions that have no variance have no moment either, but for rounding errors
        shifted = np.maximum(values, 0.0) + alpha
        inverse = np.where(shifted > floor, 1.0 / shifted, 0.0)
        yield vectors @ (inverse[:, None] * projected)

"""The scale of a kernel from the distances or lengths in the training data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from kbench.parameters import check_number


def mean_square(X):
    """Mean squared length of the rows of an ndarray or sparse matrix."""
    squares = X.multiply(X).sum() if sp.issparse(X) else np.vdot(X, X)
    return float(squares) / X.shape[0]


def median_distance(X, norm="l2", max_rows=500):
    """Median distance between pairs of rows, Euclidean or Manhattan ("l1").

    Of more rows, a sample of `max_rows` is drawn without replacement. It is the same
    for every map and seed, so that all maps get one bandwidth from one training set.

    Returns
    -------
    float
        The median over all pairs i < j; over pairs at a positive distance
        where more than half are at distance 0; 1.0 where all are.

    Examples
    --------
    >>> import numpy as np
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    if X.shape[0] > max_rows:
        X = X[np.sort(np.random.RandomState(0).permutation(X.shape[0])[:max_rows])]
    if sp.issparse(X):
        # Manhattan distances want short indices, which a sample of rows always has room for
        short = (X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = sp.csr_matrix((X.data.astype(np.float64), *short), shape=X.shape)
    else:
        # far from the origin, expanded squares would cancel
        X = X - X.mean(axis=0, dtype=np.float64)
    square = pairwise_distances(X, metric="manhattan" if norm == "l1" else "euclidean")
    distances = square[np.triu_indices(X.shape[0], k=1)]
    # equal rows are at a distance of rounding errors, not at 0
    positive = distances > 1e-7 * distances.max(initial=0.0)
    if 2 * np.count_nonzero(positive) < positive.size:
        distances = distances[positive]
    return float(np.median(distances)) if distances.size else 1.0


def resolve_gamma(estimator, X, kind):
    """Turn the parameters `gamma` and `gamma_factor` of a map into a number.

    A number is returned as it is. With m the median distance, "median" is
    ``gamma_factor / (2 m^2)`` for "rbf" (the Gaussian kernel whose bandwidth is m)
    and ``gamma_factor / m`` for "l1" and "l2". "norm" is `gamma_factor` over the
    mean squared length of the rows, for "inner".

    The kernel is ``exp(-gamma ||x-z||_2^2)`` for "rbf", and a function of
    ``gamma ||x-z||_1``, ``gamma ||x-z||_2`` or ``gamma x.z`` for the other kinds.
    """
    heuristic = "norm" if kind == "inner" else "median"
    factor, gamma = estimator.gamma_factor, estimator.gamma
    check_number(factor, "gamma_factor", above=0)
    if not (isinstance(gamma, str) and gamma == heuristic):
        check_number(gamma, "gamma", above=0, otherwise=repr(heuristic))
        return float(gamma)
    if kind == "inner":
        return float(factor / (mean_square(X) or 1.0))
    if kind == "rbf":
        return float(factor / (2 * median_distance(X) ** 2))
    return float(factor / median_distance(X, kind))

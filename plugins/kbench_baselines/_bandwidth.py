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


def resolve_bandwidth(estimator, X, metric):
    """Turn the parameters `bandwidth` and `bandwidth_factor` of a map into a number.

    It is the product of both. The `bandwidth` "median" stands for the median distance in
    the metric "l2" or "l1". For "inner", where the kernel is a function of
    ``x.z / bandwidth^2``, "norm" stands for the root mean square length of the rows.
    """
    heuristic = "norm" if metric == "inner" else "median"
    factor, bandwidth = estimator.bandwidth_factor, estimator.bandwidth
    check_number(factor, "bandwidth_factor", above=0)
    if isinstance(bandwidth, str) and bandwidth == heuristic:
        inner = metric == "inner"
        bandwidth = np.sqrt(mean_square(X) or 1.0) if inner else median_distance(X, metric)
    else:
        check_number(bandwidth, "bandwidth", above=0, otherwise=repr(heuristic))
    return float(factor * bandwidth)

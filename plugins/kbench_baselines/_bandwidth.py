"""The scale of a kernel from the distances or lengths in the training data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from kbench.kernels.bandwidths import median_distance
from kbench.parameters import check_number


def mean_square(X):
    """Mean squared length of the rows of an ndarray or sparse matrix."""
    squares = X.multiply(X).sum() if sp.issparse(X) else np.vdot(X, X)
    return float(squares) / X.shape[0]


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
        bandwidth = np.sqrt(mean_square(X) or 1.0) if inner else median_distance(X, metric=metric)
    else:
        check_number(bandwidth, "bandwidth", above=0, otherwise=repr(heuristic))
    return float(factor * bandwidth)

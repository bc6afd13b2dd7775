"""The scale of a kernel from the distances or lengths in the training data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from kbench.kernels.bandwidths import median_distance
from kbench.parameters import check_number


def root_mean_square(X):
    """Root of the mean squared length of the rows of an ndarray or sparse matrix."""
    values = np.asarray(X.data if sp.issparse(X) else X, dtype=np.float64)
    # squares of multiples of the largest value neither overflow nor vanish
    largest = np.abs(values).max(initial=0.0) or 1.0
    return float(largest * np.linalg.norm(values / largest) / np.sqrt(X.shape[0]))


def check_bandwidth(estimator, metric):
    """Check the parameters `bandwidth` and `bandwidth_factor` of a map; return the heuristic."""
    heuristic = "norm" if metric == "inner" else "median"
    check_number(estimator.bandwidth_factor, "bandwidth_factor", above=0)
    bandwidth = estimator.bandwidth
    if not (isinstance(bandwidth, str) and bandwidth == heuristic):
        check_number(bandwidth, "bandwidth", above=0, otherwise=repr(heuristic))
    return heuristic


def resolve_bandwidth(estimator, X, metric):
    """Turn the parameters `bandwidth` and `bandwidth_factor` of a map into a number.

    It is the product of both. The `bandwidth` "median" stands for the median distance in
    the metric "l2" or "l1". For "inner", where the kernel is a function of
    ``x.z / bandwidth^2``, "norm" stands for the root mean square length of the rows.
    """
    heuristic, bandwidth = check_bandwidth(estimator, metric), estimator.bandwidth
    if isinstance(bandwidth, str):
        is_norm = heuristic == "norm"
        bandwidth = (root_mean_square(X) or 1.0) if is_norm else median_distance(X, metric=metric)
    return float(estimator.bandwidth_factor * bandwidth)

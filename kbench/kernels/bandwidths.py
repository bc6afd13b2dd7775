"""Bandwidths: multiples of the median distance of the data, or of a number.

All kernels and feature maps with a bandwidth share two parameters. `bandwidth` is a number,
or ``"median"`` for the median distance between training inputs, in the metric of the kernel.
`bandwidth_factor` multiplies it. Searches are over factors, since these are numbers and mean
the same on all data.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from kbench.kernels.arrays import Matrix, MatrixLike, as_rows, squared_norms
from kbench.parameters import check_number

Metric = Literal["l2", "l1"]


def median_distance(X: MatrixLike, *, metric: Metric = "l2", n_rows: int = 500) -> float:
    """Median distance between two different rows.

    Parameters
    ----------
    X : array or CSR matrix, shape (n_samples, n_features)
        Inputs. Of more than `n_rows` rows a sample is taken, always the same.
    metric : {"l2", "l1"}, default "l2"
        Euclidean or Manhattan distance.
    n_rows : int, default 500
        Size of that sample.

    Returns
    -------
    float
        The median over all pairs of rows; over those that differ where it
        would be 0, and 1.0 where all rows are equal.

    Examples
    --------
    >>> median_distance([[0.0], [1.0], [5.0]])
    4.0
    """
    X = as_rows(X, "X")
    if X.shape[0] > n_rows:
        rows = np.random.default_rng(0).choice(X.shape[0], n_rows, replace=False)
        X = X[np.sort(rows)]
    values = X.data if hasattr(X, "tocsr") else X
    if not np.isfinite(np.sum(values)):
        raise ValueError("X must be finite, got NaN, infinite or too large values")
    # a power of two near the largest value: squares neither overflow nor vanish
    unit = 2.0 ** (int(np.frexp(np.abs(values).max(initial=0.0))[1]) - 1)
    distances = _distances_of_pairs(X.astype(np.float64) / unit, metric)
    median = float(np.median(distances)) if distances.size else 0.0
    if median == 0.0 and distances.any():
        median = float(np.median(distances[distances > 0]))
    return unit * median or 1.0


def _distances_of_pairs(X: Matrix, metric: Metric) -> np.ndarray:
    """Distances of all pairs of rows, exactly 0 for equal ones.

    ``||x||^2 + ||z||^2 - 2 x . z`` leaves rounding errors where rows are equal:
    in data with many repeated rows they would pass for the scale of the data.
    """
    if not hasattr(X, "tocsr"):
        from scipy.spatial.distance import pdist

        return np.asarray(pdist(X, "euclidean" if metric == "l2" else "cityblock"))
    from scipy.sparse import csr_matrix
    from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

    X = csr_matrix(X, dtype=np.float64, copy=True)
    # Manhattan distances want short indices, which a sample of rows has room for
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    upper = np.triu_indices(X.shape[0], k=1)
    if metric == "l1":
        return np.asarray(manhattan_distances(X))[upper]
    squared = np.asarray(euclidean_distances(X, squared=True))[upper]
    norms = squared_norms(X)
    longest = max(np.diff(X.tocsr().indptr).max(initial=0), 8)
    squared[squared <= longest * np.finfo(float).eps * (norms[upper[0]] + norms[upper[1]])] = 0
    return np.asarray(np.sqrt(squared))


def valid_bandwidth(bandwidth: float | str, factor: float) -> tuple[float | str, float]:
    """Check a bandwidth, a positive number or ``"median"``, and its positive factor."""
    check_number(factor, "bandwidth_factor", above=0)
    if isinstance(bandwidth, str) and bandwidth == "median":
        return bandwidth, float(factor)
    check_number(bandwidth, "bandwidth", above=0, otherwise="'median'")
    return float(bandwidth), float(factor)


def bandwidth_number(bandwidth: float | str) -> float:
    """Return the number a bandwidth has; it must have been resolved."""
    if isinstance(bandwidth, str):
        raise ValueError(
            f"bandwidth={bandwidth!r} is not resolved: call kernel.resolve(X) with training inputs"
        )
    return bandwidth

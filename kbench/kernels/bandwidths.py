"""Bandwidths: numbers, or multiples of the median distance of the data."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbench.kernels.arrays import as_rows, squared_norms
from kbench.parameters import check_number

_MEDIAN = re.compile(r"(?:(?P<multiple>[0-9.eE+-]+)\s*\*\s*)?median")


def median_distance(X: Any, *, n_rows: int = 1000) -> float:
    """Median Euclidean distance between two different rows.

    Parameters
    ----------
    X : array or CSR matrix, shape (n_samples, n_features)
        Inputs. Of more than `n_rows` rows a sample is taken, always the same.
    n_rows : int, default 1000
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
    if not np.isfinite(np.sum(X.data if hasattr(X, "tocsr") else X)):
        raise ValueError("X must be finite, got NaN, infinite or too large values")
    distances = _distances_of_pairs(X)
    median = float(np.median(distances)) if distances.size else 0.0
    if median == 0.0 and distances.any():
        median = float(np.median(distances[distances > 0]))
    return median or 1.0


def _distances_of_pairs(X: Any) -> NDArray[Any]:
    """Distances of all pairs of rows, exactly 0 for equal ones.

    ``||x||^2 + ||z||^2 - 2 x . z`` leaves rounding errors where rows are equal:
    in data with many repeated rows they would pass for the scale of the data.
    """
    if not hasattr(X, "tocsr"):
        from scipy.spatial.distance import pdist

        return np.asarray(pdist(X))
    from sklearn.metrics.pairwise import euclidean_distances

    X = X.astype(np.float64)
    upper = np.triu_indices(X.shape[0], k=1)
    squared = np.asarray(euclidean_distances(X, squared=True))[upper]
    norms = squared_norms(X)
    longest = max(np.diff(X.tocsr().indptr).max(initial=0), 8)
    squared[squared <= longest * np.finfo(float).eps * (norms[upper[0]] + norms[upper[1]])] = 0
    return np.asarray(np.sqrt(squared))


def valid_bandwidth(value: float | str) -> float | str:
    """Check a bandwidth: a positive number, ``"median"`` or ``"2*median"``."""
    match = _MEDIAN.fullmatch(value.strip()) if isinstance(value, str) else None
    with contextlib.suppress(ValueError):
        multiple = float(match["multiple"] or 1.0) if match else 0.0
        if 0 < multiple < np.inf:
            return "median" if multiple == 1.0 else f"{multiple:g}*median"
    others = "'median', or a positive multiple such as '2*median'"
    check_number(value, "bandwidth", above=0, otherwise=others)
    return float(value)


def resolved_bandwidth(bandwidth: float | str, X: Any) -> float:
    """Resolve a bandwidth on data."""
    if not isinstance(bandwidth, str):
        return bandwidth
    multiple = bandwidth.removesuffix("median").removesuffix("*")
    return float(multiple or 1.0) * median_distance(X)


def bandwidth_number(bandwidth: float | str) -> float:
    """Return the number a bandwidth has; it must have been resolved."""
    if isinstance(bandwidth, str):
        raise ValueError(
            f"bandwidth={bandwidth!r} is not resolved: call kernel.resolve(X) with training inputs"
        )
    return bandwidth

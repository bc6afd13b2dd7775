"""The bandwidth of a kernel from the distances in the training data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

from kbench_baselines._checks import check_positive


def median_distance(X, norm="l2", max_rows=500):
    """Median distance between pairs of rows.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
        Data.
    norm : {"l2", "l1"}
        Euclidean or Manhattan distance.
    max_rows : int, default 500
        Of more rows than this, so many are drawn without replacement. The draw
        is the same for every map and seed, so that all maps get one bandwidth
        from one training set.

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

    Parameters
    ----------
    estimator : object
        Has `gamma`, a positive number or "median", and `gamma_factor`.
    X : ndarray or CSR matrix, shape (n_samples, n_features)
        Training data.
    kind : {"rbf", "l1", "l2"}
        ``exp(-gamma ||x-z||_2^2)``, a function of ``gamma ||x-z||_1``, or of
        ``gamma ||x-z||_2``.

    Returns
    -------
    float
        A number is returned as it is. With m the median distance, "median" is
        ``gamma_factor / (2 m^2)`` for "rbf" (the Gaussian kernel whose bandwidth
        is m) and ``gamma_factor / m`` for the others.

    Raises
    ------
    ValueError
        If either is not as above.
    """
    check_positive(estimator, "gamma_factor")
    if isinstance(estimator.gamma, str):
        if estimator.gamma != "median":
            raise ValueError(f"gamma must be a number > 0 or 'median', got {estimator.gamma!r}")
        if kind == "rbf":
            return float(estimator.gamma_factor / (2 * median_distance(X) ** 2))
        return float(estimator.gamma_factor / median_distance(X, kind))
    check_positive(estimator, "gamma")
    return float(estimator.gamma)

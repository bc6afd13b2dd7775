"""The scale of the maps' kernels, and the inputs as they are."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.base import OneToOneFeatureMixin
from sklearn.metrics.pairwise import linear_kernel

from kbench.arrays import like, namespace, to_numpy
from kbench.estimators import ExplicitMap, is_lazy, row_blocks
from kbench.kernels import median_distance
from kbench.parameters import number


def dense(X):
    """Return `X` as an ndarray."""
    return X.toarray() if hasattr(X, "toarray") else X


def root_mean_square(X, mean=None):
    """Root of the mean squared length of rows; of dense ones, after `mean` is subtracted."""
    xp = namespace(X)

    def blocks():
        for part in row_blocks(X):
            values = xp.asarray(part.data if sp.issparse(part) else part, dtype=xp.float64)
            yield values if mean is None else values - like(mean, values)

    # squares of multiples of the largest value neither overflow nor vanish
    size = partial(np.max, initial=0.0) if xp is np else xp.max
    norm = np.linalg.norm if xp is np else xp.linalg.vector_norm
    largest = max(float(size(xp.abs(values))) for values in blocks()) or 1.0
    root = math.hypot(*(float(norm(values / largest)) for values in blocks()))
    return float(largest * root / np.sqrt(X.shape[0]))


def column_means(X):
    """Means of the columns in float64."""
    if is_lazy(X):
        return sum(np.asarray(part.sum(axis=0)).ravel() for part in row_blocks(X)) / len(X)
    if (xp := namespace(X)) is not np:
        return to_numpy(xp.mean(xp.astype(X, xp.float64), axis=0))
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


def resolve_bandwidth(estimator, X, metric):
    """Turn the parameters `bandwidth` and `bandwidth_factor` of a map into a number.

    It is the product of both. The `bandwidth` "median" stands for the median distance in
    the metric "l2" or "l1". For "inner", where the kernel is a function of
    ``x.z / bandwidth^2``, "norm" stands for the root mean square length of the rows.
    """
    bandwidth = estimator.bandwidth
    if isinstance(bandwidth, str):
        is_norm = metric == "inner"
        bandwidth = (root_mean_square(X) or 1.0) if is_norm else median_distance(X, metric=metric)
    return float(estimator.bandwidth_factor * bandwidth)


class FitsOnBlocks:
    """Mixin of scikit-learn's maps that are equal after a fit on any block of rows.

    The rows are validated, and only the number of columns is used.
    """

    takes_lazy_rows = True

    def fit(self, X, y=None):
        """Validate the rows, and draw what is random."""
        for part in row_blocks(X):
            super().fit(part)
        return self

    def transform(self, X):
        """Map `X` to features; float32 for float32 inputs, else float64."""
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        Z = super().transform(X)
        # `set_output` may have made a frame of them
        return Z if hasattr(Z, "columns") else Z.astype(dtype, copy=False)


class Identity(OneToOneFeatureMixin, ExplicitMap):
    """The identity map: the unchanged inputs.

    Examples
    --------
    >>> Identity().fit_transform([[1.0, 2.0], [3.0, 4.0]])
    array([[1., 2.],
           [3., 4.]])
    """

    takes_lazy_rows = takes_any_namespace = True
    _accept_sparse = ("csr", "csc")

    def _fit(self, X):
        return X.shape[1]

    def _transform(self, X):
        return X


@dataclass(eq=False, repr=False)
class BandwidthMap(ExplicitMap):
    """A random map whose kernel has a bandwidth; its training data may be lazy rows."""

    takes_lazy_rows = True

    _: KW_ONLY
    bandwidth: float | str = number("median", above=0, otherwise=("median",))
    bandwidth_factor: float = number(1.0, above=0)
    random_state: int | np.random.RandomState | None = None


def linear_gram(fitted, X, Y):
    """Gram matrix of the linear kernel."""
    return linear_kernel(X, Y)

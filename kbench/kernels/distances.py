"""Kernels of distances, and their bandwidths: multiples of the median distance, or numbers.

All kernels and feature maps with a bandwidth share two parameters. `bandwidth` is a number,
or ``"median"`` for the median distance between training inputs, in the metric of the kernel.
`bandwidth_factor` multiplies it. Searches are over factors, since these are numbers and mean
the same on all data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np

from kbench.arrays import (
    Array,
    Matrix,
    MatrixLike,
    check_rows,
    exponential,
    full,
    inverse,
    namespace,
    on_host,
    squared_norms,
    take,
)
from kbench.kernels.base import UnitDiagonal
from kbench.parameters import check_choice, check_number

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
        would be 0, and 1.0 if all rows are equal.

    Examples
    --------
    >>> median_distance([[0.0], [1.0], [5.0]])
    4.0
    """
    X = check_rows(X, "X")
    n = X.shape[0]
    X = on_host(take(X, np.sort(np.random.default_rng(0).choice(n, min(n, n_rows), replace=False))))
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


@dataclass(frozen=True)
class _WithBandwidth(UnitDiagonal):
    """Base of kernels with a bandwidth that may depend on the data."""

    bandwidth: float | str = "median"
    bandwidth_factor: float = field(default=1.0, kw_only=True)

    takes_any_namespace = True
    _metric: ClassVar[Metric] = "l2"

    def __post_init__(self) -> None:
        check_number(self.bandwidth_factor, "bandwidth_factor", above=0)
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "median"):
            check_number(self.bandwidth, "bandwidth", above=0, otherwise="'median'")
            self._set(bandwidth=float(self.bandwidth))
        self._set(bandwidth_factor=float(self.bandwidth_factor))

    def resolve(self, X: MatrixLike) -> Self:
        """Set the bandwidth: a number whose factor is 1."""
        return replace(self, bandwidth=self._scale(X), bandwidth_factor=1.0)

    def _scale(self, X: MatrixLike | None = None) -> float:
        """Return the bandwidth with its factor; without inputs it must be a number."""
        if X is not None and isinstance(self.bandwidth, str):
            return self.bandwidth_factor * median_distance(X, metric=self._metric)
        return self.bandwidth_factor * self._number()

    def _number(self) -> float:
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f"bandwidth={self.bandwidth!r} is not resolved: call kernel.resolve(X) with "
                "training inputs"
            )
        return self.bandwidth


@dataclass(frozen=True)
class Gaussian(_WithBandwidth):
    """``k(x, z) = exp(-||x - z||_2^2 / (2 bandwidth^2))``.

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        Positive, in the unit of the inputs; ``"median"`` is the median
        distance between training inputs.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`; positive.

    Examples
    --------
    >>> Gaussian(bandwidth=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    >>> Gaussian(bandwidth_factor=2.0).resolve([[0.0], [1.0], [5.0]])
    Gaussian(bandwidth=8.0, bandwidth_factor=1.0)
    """

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        return exponential(_minus_distances(X, Y, float(np.sqrt(2)) * self._scale(), squared=True))

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        K = self._gram(X, Y) / -(self._scale() ** 2)
        return np.stack([_along_differences(K * each, X, Y) for each in coef])


@dataclass(frozen=True)
class LaplaceBalcan(_WithBandwidth):
    """``k(x, z) = exp(-||x - z||_2 / (2 bandwidth^2))``, with the Euclidean norm.

    The form of Balcan's lecture on kernel methods, "Kernels: more examples".
    The square of the bandwidth is a distance, so ``"median"`` sets
    ``bandwidth^2`` to the median distance, and `bandwidth_factor` multiplies
    ``bandwidth^2``. scikit-learn's ``laplacian_kernel`` has the L1 norm and
    another scale: that is `Laplace`.

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        Positive; or ``"median"``.
    bandwidth_factor : float, default 1.0
        Multiplies the square of `bandwidth`; positive.

    Examples
    --------
    >>> LaplaceBalcan(bandwidth=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    def _scale(self, X: MatrixLike | None = None) -> float:
        if X is not None and isinstance(self.bandwidth, str):
            return float(np.sqrt(super()._scale(X)))
        return float(np.sqrt(self.bandwidth_factor)) * self._number()

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        return exponential(_minus_distances(X, Y, 2 * self._scale() ** 2))

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        R = _distances(X, Y)
        rate = 0.5 / self._scale() ** 2
        K = -rate * np.exp(-rate * R) * inverse(R)
        return np.stack([_along_differences(K * each, X, Y) for each in coef])


@dataclass(frozen=True)
class Laplace(_WithBandwidth):
    """``k(x, z) = exp(-||x - z||_1 / bandwidth)``: ``laplacian_kernel`` of scikit-learn.

    Its ``gamma`` is ``1 / bandwidth``.

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        Positive, in the unit of the inputs; ``"median"`` is the median
        Manhattan distance between training inputs.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`; positive.

    Examples
    --------
    >>> Laplace(bandwidth=2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    _metric: ClassVar[Metric] = "l1"

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        if namespace(X) is not np:
            return exponential(_manhattan(X, X if Y is None else Y) * (-1.0 / self._scale()))
        from sklearn.metrics.pairwise import laplacian_kernel

        return np.asarray(laplacian_kernel(X, Y, gamma=1 / self._scale()), dtype=X.dtype)

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        K = self._gram(X, Y) / -self._scale()
        gradients = np.empty((len(coef), *X.shape))
        for j in range(X.shape[1]):
            gradients[:, :, j] = coef @ (K * np.sign(X[:, j, None] - Y[:, j])).T
        return gradients


@dataclass(frozen=True)
class Matern(_WithBandwidth):
    """The Matern kernel of half-integer smoothness.

    With ``r = ||x - z||_2 / bandwidth``: ``exp(-r)`` for nu = 1/2,
    ``(1 + sqrt(3) r) exp(-sqrt(3) r)`` for nu = 3/2,
    ``(1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)`` for nu = 5/2.

    Parameters
    ----------
    bandwidth : float or "median", default "median"
        Positive, in the unit of the inputs; ``"median"`` is the median
        distance between training inputs.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`; positive.
    nu : {0.5, 1.5, 2.5}, default 1.5
        Smoothness.

    Examples
    --------
    >>> Matern(bandwidth=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1397]])
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.nu, "nu", (0.5, 1.5, 2.5))

    def _gram(self, X: Matrix, Y: Matrix | None) -> Array:
        D = _minus_distances(X, Y, self._scale() / float(np.sqrt(2 * self.nu)))
        K: np.ndarray = namespace(X).exp(D)
        if self.nu == 1.5:
            # 1 - D in place
            D *= -1.0
            D += 1.0
            K *= D
        elif self.nu == 2.5:
            K *= 1 - D + D * D / 3
        return K

    def _gradient(self, X: np.ndarray, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        rate = np.sqrt(2 * self.nu) / self._scale()
        R = rate * _distances(X, Y)
        # the derivative of k in R, divided by R
        K = -(rate**2) * np.exp(-R) * {0.5: inverse(R), 1.5: 1.0, 2.5: (1 + R) / 3}[self.nu]
        return np.stack([_along_differences(K * each, X, Y) for each in coef])


def _minus_distances(X: Matrix, Y: Matrix | None, unit: float, *, squared: bool = False) -> Array:
    """Return minus distances, or their squares, in a unit; dense rows are shifted to near 0.

    ``|x|^2 + |z|^2 - 2 x.z`` overflows in extreme units, and far from 0 rounding hides distances.
    The root of a rounding error would be 1e-8: such distances are 0.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    rows, matrices = X if Y is None else Y, [X] if Y is None else [X, Y]
    if namespace(X) is not np:
        return _minus_distances_there(X, rows, unit, squared)
    is_sparse = any(hasattr(each, "tocsr") for each in matrices)
    shift = 0.0 if is_sparse else np.median(rows[:: len(rows) // 32 + 1], axis=0)
    D = np.asarray(euclidean_distances(*((e - shift) / unit for e in matrices), squared=True))
    if not squared:
        D[8 * np.finfo(float).eps * D.max(initial=0.0) > D] = 0.0
        np.sqrt(D, out=D)
    return np.asarray(np.negative(D, out=D))


def _minus_distances_there(X: Array, Y: Array, unit: float, squared: bool) -> Array:
    """Return `_minus_distances` of arrays of another namespace, computed in float64."""
    xp, dtype, is_same = namespace(X), X.dtype, X is Y
    X, Y = (xp.astype(each, xp.float64, copy=False) for each in (X, Y))
    # a median that the host does not have to wait for
    some = xp.sort(take(Y, slice(None, None, Y.shape[0] // 32 + 1)), axis=0)
    shift = some[some.shape[0] // 2, :]
    X, Y = (X - shift) / unit, (Y - shift) / unit
    D = X @ (-2.0 * Y).T
    D += squared_norms(X)[:, None]
    D += squared_norms(Y)
    D = xp.clip(D, min=0)
    if is_same:
        D = xp.where(xp.eye(D.shape[0], dtype=xp.bool, device=D.device), 0.0, D)
    if not squared:
        D = xp.sqrt(xp.where(8 * float(np.finfo(float).eps) * xp.max(D) > D, 0.0, D))
    return xp.astype(-D, dtype, copy=False)


def _manhattan(X: Array, Y: Array) -> Array:
    """Return L1 distances of arrays of another namespace than numpy."""
    xp = namespace(X)
    if hasattr(xp, "cdist"):
        return xp.cdist(X, Y, p=1.0)
    D = full((X.shape[0], Y.shape[0]), 0.0, X)
    for j in range(X.shape[1]):
        D += xp.abs(X[:, j][:, None] - Y[:, j])
    return D


def _distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Euclidean distances, exactly 0 for rows that are equal to rounding.

    The direction from one such row to the other is noise, and a kernel with a cusp has a gradient
    of full length along it. Rows that are the same product of matrices may differ by rounding.
    """
    from scipy.spatial.distance import cdist

    R = np.asarray(cdist(X, Y))
    largest = max(np.abs(X).max(initial=0.0), np.abs(Y).max(initial=0.0))
    R[4 * X.shape[1] * np.finfo(float).eps * largest >= R] = 0.0
    return R


def _along_differences(K: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """``sum_j K_ij (X_i - Y_j)`` of each row i."""
    return np.asarray(K.sum(axis=1)[:, None] * X - K @ Y)

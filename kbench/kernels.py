"""Kernel functions and their algebra.

A kernel is a small frozen object: ``k(X, Y)`` is the Gram matrix between the
rows of `X` and of `Y`, ``k.diag(X)`` its diagonal without the rest,
``k.resolve(X)`` the same kernel with every number set (a bandwidth of
``"median"`` becomes a number), ``k.take(X, rows)`` what has to be kept of some
rows to compare others with them later. Kernels compare equal by value, hash,
pickle, and their ``repr`` reads back. Sums, products and multiples of kernels
are kernels::

    >>> k = 0.5 * Gaussian(bandwidth=2.0) + Linear()
    >>> k
    Sum(left=Scaled(kernel=Gaussian(bandwidth=2.0), weight=0.5), right=Linear())
    >>> k([[0.0, 1.0]], [[0.0, 1.0], [2.0, 1.0]]).round(3)
    array([[1.5  , 1.303]])

This module imports numpy only; scikit-learn's pairwise functions, which do the
work, are imported by the first kernel that is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "KERNELS",
    "AdditiveChi2",
    "Chi2",
    "Cosine",
    "Gaussian",
    "Intersection",
    "Kernel",
    "Laplace",
    "LaplaceL1",
    "Linear",
    "Matern",
    "Mercer",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Similarity",
    "Sum",
    "is_psd",
    "median_distance",
    "normalized",
    "resolve_kernel",
]

MEDIAN_ROWS = 1000
"""Rows from which the median distance is taken, at most."""

_MEDIAN = re.compile(r"(?:(?P<multiple>[0-9.eE+-]+)\s*\*\s*)?median")


# ---------------------------------------------------------------------------
# What every kernel is
# ---------------------------------------------------------------------------


class Kernel:
    """Base of all kernels.

    A subclass is a frozen dataclass that computes ``_gram(X, Y)`` (with `Y`
    None for the Gram matrix of `X` with itself) and, where that is cheaper,
    ``diag``. Calls check the shapes that go in and that what comes out is
    finite.
    """

    @property
    def psd(self) -> bool:
        """Every Gram matrix ``k(X)`` is positive semidefinite."""
        return True

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Compute the Gram matrix.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples_X, n_features)
            Rows.
        Y : array or CSR matrix, shape (n_samples_Y, n_features), optional
            Columns; `X` by default.

        Returns
        -------
        ndarray of float64 (float32 for float32 inputs), shape \
(n_samples_X, n_samples_Y)
            ``K[i, j] = k(X[i], Y[j])``.

        Raises
        ------
        ValueError
            If the shapes do not fit, or the result is not finite.
        """
        X = _as_rows(X, "X")
        if Y is not None:
            Y = _as_rows(Y, "Y")
            if X.shape[1] != Y.shape[1]:
                raise ValueError(
                    f"Y has {Y.shape[1]} features; it must have as many as X, {X.shape[1]}"
                )
        K = self._gram(X, Y)
        n_columns = (X if Y is None else Y).shape[0]
        if np.shape(K) != (X.shape[0], n_columns):
            raise ValueError(
                f"kernel={self!r} returned shape {np.shape(K)} for {X.shape[0]} rows "
                f"against {n_columns}; it must return ({X.shape[0]}, {n_columns})"
            )
        # a sum shows a NaN or an infinity without a temporary of the size of K
        if not np.isfinite(np.sum(K)) and not np.isfinite(K).all():
            raise ValueError(
                f"kernel={self!r} returned NaN or infinite values; "
                "its values must be finite (are the inputs too large?)"
            )
        return K

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        raise NotImplementedError

    def diag(self, X: Any) -> NDArray[Any]:
        """Compute ``k(x, x)`` for each row.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, shape (n_samples,)
            The diagonal of ``k(X)``.
        """
        X = _as_rows(X, "X")
        # small blocks: their off-diagonal entries are wasted
        blocks = [
            np.diagonal(self(X[start : start + 32])) for start in range(0, X.shape[0], 32)
        ] or [np.empty(0)]
        return np.concatenate(blocks)

    def resolve(self, X: Any) -> Kernel:
        """Set every number that depends on data.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Training inputs.

        Returns
        -------
        Kernel
            This kernel where nothing is open.
        """
        return self

    def take(self, X: Any, rows: NDArray[Any]) -> Any:
        """Keep what comparing with some rows later needs.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Training inputs.
        rows : ndarray of int, shape (n_rows,)
            Row indices, landmarks for instance.

        Returns
        -------
        array or CSR matrix
            To be passed as `Y`; ``X[rows]`` but for `Precomputed`.
        """
        return X[rows]

    def __add__(self, other: Any) -> Sum:
        if not callable(other):
            return NotImplemented
        return Sum(self, resolve_kernel(other))

    def __mul__(self, other: Any) -> Scaled | Product:
        if isinstance(other, int | float | np.number):
            return Scaled(self, float(other))
        if not callable(other):
            return NotImplemented
        return Product(self, resolve_kernel(other))

    def __rmul__(self, other: Any) -> Scaled | Product:
        return self.__mul__(other)


def _as_rows(X: Any, name: str) -> Any:
    if not hasattr(X, "tocsr"):
        X = np.asarray(X)
        if X.dtype not in (np.float64, np.float32):
            X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimensions; it must have 2, (n_samples, n_features)")
    return X


def _row_sums(X: Any) -> NDArray[Any]:
    return np.asarray(X.sum(axis=1)).ravel()


def _squared_norms(X: Any) -> NDArray[Any]:
    if hasattr(X, "tocsr"):
        return _row_sums(X.multiply(X))
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _inverse_roots(squared: NDArray[Any]) -> NDArray[Any]:
    """``1 / sqrt(s)``, and 0 for 0."""
    inverse = np.zeros_like(squared)
    np.divide(1.0, np.sqrt(squared), out=inverse, where=squared > 0)
    return inverse


def _ones(X: Any) -> NDArray[Any]:
    return np.ones(X.shape[0], dtype=X.dtype)


def _positive(value: Any, name: str) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not (0 < float(value) < np.inf):
        raise ValueError(f"{name}={value!r}: it must be a positive finite number")
    return float(value)


# ---------------------------------------------------------------------------
# Bandwidths
# ---------------------------------------------------------------------------


def median_distance(X: Any, *, n_rows: int = MEDIAN_ROWS) -> float:
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
    from sklearn.metrics.pairwise import euclidean_distances

    X = _as_rows(X, "X")
    if X.shape[0] > n_rows:
        rows = np.random.default_rng(0).choice(X.shape[0], n_rows, replace=False)
        X = X[np.sort(rows)]
    if not np.isfinite(np.sum(X.data if hasattr(X, "tocsr") else X)):
        raise ValueError("X contains NaN, infinite or too large values; they must be finite")
    distances = euclidean_distances(X)[np.triu_indices(X.shape[0], k=1)]
    median = float(np.median(distances)) if distances.size else 0.0
    if median == 0.0 and (distances > 0).any():
        median = float(np.median(distances[distances > 0]))
    return median or 1.0


def _bandwidth(value: float | str) -> float | str:
    """Check a bandwidth: a positive number, ``"median"`` or ``"2*median"``."""
    if isinstance(value, str):
        found = _MEDIAN.fullmatch(value.strip())
        try:
            if found:
                multiple = _positive(float(found["multiple"] or 1.0), "multiple")
                return "median" if multiple == 1.0 else f"{multiple:g}*median"
        except ValueError:
            pass
        raise ValueError(
            f"bandwidth={value!r}: it must be a positive number, 'median', "
            "or a positive multiple such as '2*median'"
        )
    return _positive(value, "bandwidth")


def _length(bandwidth: float | str, X: Any) -> float:
    """Resolve a bandwidth on data."""
    if not isinstance(bandwidth, str):
        return bandwidth
    multiple = bandwidth.removesuffix("median").removesuffix("*")
    return float(multiple or 1.0) * median_distance(X)


def _number(bandwidth: float | str) -> float:
    if isinstance(bandwidth, str):
        raise ValueError(
            f"bandwidth={bandwidth!r} has no value yet: call kernel.resolve(X) with training inputs"
        )
    return bandwidth


# ---------------------------------------------------------------------------
# Kernels of inner products
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear(Kernel):
    """The inner product, ``k(x, z) = x . z``.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import linear_kernel

        return np.asarray(linear_kernel(X, Y))

    def diag(self, X: Any) -> NDArray[Any]:
        """``||x||^2``."""
        return _squared_norms(_as_rows(X, "X"))


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``k(x, z) = (offset + x . z)^degree``.

    Parameters
    ----------
    degree : int, default 2
        Degree, at least 1.
    offset : float, default 1.0
        Nonnegative; 0 is the homogeneous kernel.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        degree = self.degree
        if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree < 1:
            raise ValueError(f"degree={degree!r}: it must be an integer of at least 1")
        if not isinstance(self.offset, int | float | np.number) or not 0 <= self.offset < np.inf:
            raise ValueError(f"offset={self.offset!r}: it must be a nonnegative finite number")
        object.__setattr__(self, "degree", int(degree))
        object.__setattr__(self, "offset", float(self.offset))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import linear_kernel

        return self._power(np.asarray(linear_kernel(X, Y)))

    def _power(self, K: NDArray[Any]) -> NDArray[Any]:
        K += K.dtype.type(self.offset)
        base = K.copy() if self.degree > 2 else K
        # products are many times faster than pow for the degrees in use
        if self.degree <= 8:
            for _ in range(self.degree - 1):
                K *= base
            return K
        return np.asarray(K**self.degree)

    def diag(self, X: Any) -> NDArray[Any]:
        """``(offset + ||x||^2)^degree``."""
        return self._power(_squared_norms(_as_rows(X, "X")))


@dataclass(frozen=True)
class Cosine(Kernel):
    """The cosine of the angle, ``k(x, z) = x . z / (||x|| ||z||)``; 0 for a zero row.

    Examples
    --------
    >>> Cosine()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import linear_kernel

        K = np.asarray(linear_kernel(X, Y))
        K *= _inverse_roots(_squared_norms(X))[:, None]
        K *= _inverse_roots(_squared_norms(X if Y is None else Y))
        return K

    def diag(self, X: Any) -> NDArray[Any]:
        """1, or 0 for a zero row."""
        norms = _squared_norms(_as_rows(X, "X"))
        return (norms > 0).astype(norms.dtype)


# ---------------------------------------------------------------------------
# Kernels of distances
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Gaussian(Kernel):
    """``k(x, z) = exp(-||x - z||_2^2 / (2 bandwidth^2))``.

    Parameters
    ----------
    bandwidth : float or str, default "median"
        Positive, in the unit of the inputs; ``"median"`` is the median
        distance between training inputs, ``"2*median"`` twice that.

    Examples
    --------
    >>> Gaussian(bandwidth=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    >>> Gaussian("2*median").resolve([[0.0], [1.0], [5.0]])
    Gaussian(bandwidth=8.0)
    """

    bandwidth: float | str = "median"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(self.bandwidth))

    def resolve(self, X: Any) -> Gaussian:
        """Set the bandwidth."""
        return Gaussian(_length(self.bandwidth, X))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import rbf_kernel

        return np.asarray(rbf_kernel(X, Y, gamma=0.5 / _number(self.bandwidth) ** 2))

    def diag(self, X: Any) -> NDArray[Any]:
        """Ones."""
        return _ones(_as_rows(X, "X"))


@dataclass(frozen=True)
class Laplace(Kernel):
    """``k(x, z) = exp(-||x - z||_2 / (2 bandwidth^2))``, with the Euclidean norm.

    The form of Balcan's lecture on kernel methods, "Kernels: more examples".
    The square of the bandwidth is a distance, so ``"median"`` sets
    ``bandwidth^2`` to the median distance. scikit-learn's ``laplacian_kernel``
    has the L1 norm and another scale: that is `LaplaceL1`.

    Parameters
    ----------
    bandwidth : float or str, default "median"
        Positive; or ``"median"``, ``"2*median"``.

    Examples
    --------
    >>> Laplace(bandwidth=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    bandwidth: float | str = "median"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(self.bandwidth))

    def resolve(self, X: Any) -> Laplace:
        """Set the bandwidth."""
        if not isinstance(self.bandwidth, str):
            return self
        return Laplace(float(np.sqrt(_length(self.bandwidth, X))))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import euclidean_distances

        D = np.asarray(euclidean_distances(X, Y))
        D *= D.dtype.type(-0.5 / _number(self.bandwidth) ** 2)
        np.exp(D, out=D)
        return D

    def diag(self, X: Any) -> NDArray[Any]:
        """Ones."""
        return _ones(_as_rows(X, "X"))


@dataclass(frozen=True)
class LaplaceL1(Kernel):
    """``k(x, z) = exp(-gamma ||x - z||_1)``, scikit-learn's ``laplacian_kernel``.

    Parameters
    ----------
    gamma : float, optional
        Positive; 1 / n_features by default, as in scikit-learn.

    Examples
    --------
    >>> LaplaceL1(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.gamma is not None:
            object.__setattr__(self, "gamma", _positive(self.gamma, "gamma"))

    def resolve(self, X: Any) -> LaplaceL1:
        """Set gamma to 1 / n_features."""
        if self.gamma is not None:
            return self
        return LaplaceL1(1.0 / _as_rows(X, "X").shape[1])

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import laplacian_kernel

        return np.asarray(laplacian_kernel(X, Y, gamma=self.gamma), dtype=X.dtype)

    def diag(self, X: Any) -> NDArray[Any]:
        """Ones."""
        return _ones(_as_rows(X, "X"))


@dataclass(frozen=True)
class Matern(Kernel):
    """The Matern kernel of half-integer smoothness.

    With ``r = ||x - z||_2 / bandwidth``: ``exp(-r)`` for nu = 1/2,
    ``(1 + sqrt(3) r) exp(-sqrt(3) r)`` for nu = 3/2,
    ``(1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)`` for nu = 5/2.

    Parameters
    ----------
    bandwidth : float or str, default "median"
        Positive, in the unit of the inputs; or ``"median"``, ``"2*median"``.
    nu : {0.5, 1.5, 2.5}, default 1.5
        Smoothness.

    Examples
    --------
    >>> Matern(bandwidth=1.0)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1397]])
    """

    bandwidth: float | str = "median"
    nu: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", _bandwidth(self.bandwidth))
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu={self.nu!r}: it must be 0.5, 1.5 or 2.5")

    def resolve(self, X: Any) -> Matern:
        """Set the bandwidth."""
        return replace(self, bandwidth=_length(self.bandwidth, X))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import euclidean_distances

        R = np.asarray(euclidean_distances(X, Y))
        R *= R.dtype.type(np.sqrt(2 * self.nu) / _number(self.bandwidth))
        K: NDArray[Any] = np.exp(-R)
        if self.nu == 1.5:
            R += 1
            K *= R
        elif self.nu == 2.5:
            K *= 1 + R + R * R / 3
        return K

    def diag(self, X: Any) -> NDArray[Any]:
        """Ones."""
        return _ones(_as_rows(X, "X"))


# ---------------------------------------------------------------------------
# Kernels of histograms
# ---------------------------------------------------------------------------


def _check_nonnegative(kernel: Kernel, *inputs: Any) -> None:
    for X in inputs:
        if X is not None and X.shape[0] and X.min() < 0:
            raise ValueError(
                f"X contains the negative value {X.min():g}; "
                f"{type(kernel).__name__} is defined for nonnegative inputs"
            )


@dataclass(frozen=True)
class AdditiveChi2(Kernel):
    """``k(x, z) = sum_j 2 x_j z_j / (x_j + z_j)`` for nonnegative inputs.

    The positive semidefinite form of Vedaldi and Zisserman, "Efficient
    additive kernels via explicit feature maps" (2012), which scikit-learn's
    ``AdditiveChi2Sampler`` approximates. scikit-learn's
    ``additive_chi2_kernel`` is ``-sum_j (x_j - z_j)^2 / (x_j + z_j)``, only
    conditionally positive semidefinite.

    Examples
    --------
    >>> AdditiveChi2()([[1.0, 3.0]], [[1.0, 1.0]])
    array([[2.5]])
    """

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import additive_chi2_kernel

        _check_nonnegative(self, X, Y)
        Y = X if Y is None else Y
        # 2 x z / (x + z) = (x + z)/2 - (x - z)^2 / (2 (x + z))
        K = np.asarray(additive_chi2_kernel(X, Y))
        K += _row_sums(X)[:, None]
        K += _row_sums(Y)
        K *= K.dtype.type(0.5)
        return K

    def diag(self, X: Any) -> NDArray[Any]:
        """``sum_j x_j``."""
        return _row_sums(_as_rows(X, "X"))


@dataclass(frozen=True)
class Chi2(Kernel):
    """``k(x, z) = exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j))``, nonnegative inputs.

    Parameters
    ----------
    gamma : float, default 1.0
        Positive.

    Examples
    --------
    >>> Chi2()([[1.0, 3.0]], [[1.0, 1.0]]).round(4)
    array([[0.3679]])
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", _positive(self.gamma, "gamma"))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import chi2_kernel

        _check_nonnegative(self, X, Y)
        return np.asarray(chi2_kernel(X, Y, gamma=self.gamma))

    def diag(self, X: Any) -> NDArray[Any]:
        """Ones."""
        return _ones(_as_rows(X, "X"))


@dataclass(frozen=True)
class Intersection(Kernel):
    """Histogram intersection, ``k(x, z) = sum_j min(x_j, z_j)``, nonnegative inputs.

    Examples
    --------
    >>> Intersection()([[1.0, 3.0]], [[2.0, 1.0]])
    array([[2.]])
    """

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import manhattan_distances

        _check_nonnegative(self, X, Y)
        Y = X if Y is None else Y
        # min(x, z) = (x + z - |x - z|) / 2
        K = np.asarray(manhattan_distances(X, Y), dtype=X.dtype)
        np.negative(K, out=K)
        K += _row_sums(X)[:, None]
        K += _row_sums(Y)
        K *= K.dtype.type(0.5)
        return K

    def diag(self, X: Any) -> NDArray[Any]:
        """``sum_j x_j``."""
        return _row_sums(_as_rows(X, "X"))


# ---------------------------------------------------------------------------
# Given similarities
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The input is a Gram matrix already.

    ``k(K)`` is `K`, ``k(K, columns)`` the given columns, and
    ``k.take(K, rows)`` the indices `rows`, so that an estimator written as
    ``k(X, k.take(X_train, rows))`` works on Gram matrices too: it is fitted on
    K(train, train) and predicts from K(test, train), as in scikit-learn.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> Precomputed()(K, Precomputed().take(K, [1]))
    array([[1.],
           [3.]])
    """

    def __call__(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return the Gram matrix, or the columns `Y` of it.

        Parameters
        ----------
        X : ndarray, shape (n_samples, n_train)
            Similarities to the training rows.
        Y : ndarray of int, shape (n_columns,), optional
            Training rows to compare with.

        Returns
        -------
        ndarray, shape (n_samples, n_train) or (n_samples, n_columns)
            The similarities.
        """
        X = _as_rows(X, "X")
        if Y is None:
            return np.asarray(X)
        columns = np.asarray(Y)
        if columns.ndim != 1 or columns.dtype.kind not in "iu":
            raise ValueError(
                "kernel=Precomputed() compares with training rows given by their indices, "
                f"not with an array of shape {columns.shape} and dtype {columns.dtype}"
            )
        return np.asarray(X[:, columns])

    def diag(self, X: Any) -> NDArray[Any]:
        """Return the diagonal."""
        return np.asarray(X).diagonal()

    def take(self, X: Any, rows: NDArray[Any]) -> NDArray[Any]:
        """Keep the indices: the similarities to these rows are columns."""
        return np.asarray(rows)


@dataclass(frozen=True)
class Similarity(Kernel):
    """Any function as a similarity; nothing is assumed about its eigenvalues.

    Parameters
    ----------
    function : callable
        ``function(X, Y) -> ndarray (n_samples_X, n_samples_Y)``, or, with
        `pairs`, ``function(x, z) -> float`` of two rows. A method ``diag(X)``
        or ``resolve(X)`` of it is used where there is one.
    pairs : bool, default False
        The function compares two rows, not two matrices.

    Examples
    --------
    >>> Similarity(lambda x, z: min(x[0], z[0]), pairs=True)([[1.0], [3.0]], [[2.0]])
    array([[1.],
           [2.]])
    """

    function: Callable[..., Any]
    pairs: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function={self.function!r}: it must be callable")

    @property
    def psd(self) -> bool:
        """Not known, hence False."""
        return False

    def resolve(self, X: Any) -> Similarity:
        """Resolve the function where it can be."""
        resolve = getattr(self.function, "resolve", None)
        return self if resolve is None else replace(self, function=resolve(X))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        Y = X if Y is None else Y
        if self.pairs:
            K = np.array([[float(self.function(x, z)) for z in Y] for x in X])
            return K.reshape(X.shape[0], Y.shape[0])
        return np.asarray(self.function(X, Y), dtype=np.result_type(X.dtype, np.float32))

    def diag(self, X: Any) -> NDArray[Any]:
        """``function(x, x)`` of each row."""
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(X))
        if self.pairs:
            return np.array([float(self.function(x, x)) for x in _as_rows(X, "X")])
        return super().diag(X)


# ---------------------------------------------------------------------------
# Closure: sums, products and multiples of kernels are kernels
# ---------------------------------------------------------------------------


def _part(kernel: Any) -> Kernel:
    part = resolve_kernel(kernel)
    if isinstance(part, Precomputed):
        raise ValueError("kernel=Precomputed() cannot be combined: combine the Gram matrices")
    return part


@dataclass(frozen=True)
class Sum(Kernel):
    """``k(x, z) = left(x, z) + right(x, z)``, written ``left + right``.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The parts.
    """

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", _part(self.left))
        object.__setattr__(self, "right", _part(self.right))

    @property
    def psd(self) -> bool:
        """Both parts are."""
        return self.left.psd and self.right.psd

    def resolve(self, X: Any) -> Sum:
        """Resolve both parts."""
        return Sum(self.left.resolve(X), self.right.resolve(X))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        return np.asarray(self.left(X, Y) + self.right(X, Y))

    def diag(self, X: Any) -> NDArray[Any]:
        """Sum of the diagonals."""
        return np.asarray(self.left.diag(X) + self.right.diag(X))


@dataclass(frozen=True)
class Product(Kernel):
    """``k(x, z) = left(x, z) right(x, z)``, written ``left * right``.

    Parameters
    ----------
    left, right : Kernel, str or callable
        The parts.
    """

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", _part(self.left))
        object.__setattr__(self, "right", _part(self.right))

    @property
    def psd(self) -> bool:
        """Both parts are (Schur's product theorem)."""
        return self.left.psd and self.right.psd

    def resolve(self, X: Any) -> Product:
        """Resolve both parts."""
        return Product(self.left.resolve(X), self.right.resolve(X))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        return np.asarray(self.left(X, Y) * self.right(X, Y))

    def diag(self, X: Any) -> NDArray[Any]:
        """Product of the diagonals."""
        return np.asarray(self.left.diag(X) * self.right.diag(X))


@dataclass(frozen=True)
class Scaled(Kernel):
    """``weight * kernel(x, z)``, written ``weight * kernel``.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel.
    weight : float
        Nonnegative: a negative multiple of a kernel is none.
    """

    kernel: Kernel
    weight: float

    def __post_init__(self) -> None:
        if not 0 <= self.weight < np.inf:
            raise ValueError(f"weight={self.weight!r}: it must be nonnegative and finite")
        object.__setattr__(self, "kernel", _part(self.kernel))
        object.__setattr__(self, "weight", float(self.weight))

    @property
    def psd(self) -> bool:
        """The kernel is."""
        return self.kernel.psd

    def resolve(self, X: Any) -> Scaled:
        """Resolve the kernel."""
        return Scaled(self.kernel.resolve(X), self.weight)

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        K = self.kernel(X, Y)
        return np.asarray(K * K.dtype.type(self.weight))

    def diag(self, X: Any) -> NDArray[Any]:
        """Multiple of the diagonal."""
        return np.asarray(self.weight * self.kernel.diag(X))


@dataclass(frozen=True)
class Normalized(Kernel):
    """``k(x, z) / sqrt(k(x, x) k(z, z))``: images of unit length.

    0 where the image of a row is the zero vector.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel; its diagonal must be nonnegative.

    Examples
    --------
    >>> Normalized(Polynomial(degree=2))([[1.0, 2.0]], [[3.0, 4.0]]).round(4)
    array([[0.9231]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", _part(self.kernel))

    @property
    def psd(self) -> bool:
        """The kernel is."""
        return self.kernel.psd

    def resolve(self, X: Any) -> Normalized:
        """Resolve the kernel."""
        return Normalized(self.kernel.resolve(X))

    def _inverse_norms(self, X: Any) -> NDArray[Any]:
        squared = np.asarray(self.kernel.diag(X))
        if squared.size and squared.min() < 0:
            raise ValueError(
                f"kernel={self.kernel!r} has k(x, x) = {squared.min():g} < 0 "
                "for some row; it cannot be normalized"
            )
        return _inverse_roots(squared)

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        K = self.kernel(X, Y) * self._inverse_norms(X)[:, None]
        K *= self._inverse_norms(X if Y is None else Y)
        return np.asarray(K)

    def diag(self, X: Any) -> NDArray[Any]:
        """1, or 0 where k(x, x) = 0."""
        squared = self.kernel.diag(X)
        return (squared > 0).astype(squared.dtype)


def normalized(kernel: Kernel | str | Callable[..., Any]) -> Normalized:
    """Normalize a kernel, see `Normalized`."""
    return Normalized(resolve_kernel(kernel))


# ---------------------------------------------------------------------------
# Names, and Mercer's condition
# ---------------------------------------------------------------------------

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "cosine": Cosine,
    "gaussian": Gaussian,
    "laplace": Laplace,
    "laplace-l1": LaplaceL1,
    "matern": Matern,
    "additive-chi2": AdditiveChi2,
    "chi2": Chi2,
    "intersection": Intersection,
    "precomputed": Precomputed,
    "sum": Sum,
    "product": Product,
    "scaled": Scaled,
    "normalized": Normalized,
}
"""The built-in kernels by their names in suite files."""

_ALONE = tuple(name for name in KERNELS if name not in ("sum", "product", "scaled", "normalized"))


def resolve_kernel(kernel: Kernel | str | Callable[..., Any]) -> Kernel:
    """Turn whatever an estimator accepts as ``kernel`` into a kernel object.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel object, the name of a built-in kernel with its defaults, or
        any function ``k(X, Y) -> Gram matrix``.

    Returns
    -------
    Kernel
        Its data-dependent numbers may still be open: see `Kernel.resolve`.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> resolve_kernel("gaussian")
    Gaussian(bandwidth='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _ALONE:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return Similarity(kernel)
    raise ValueError(
        f"kernel={kernel!r}: it must be one of {', '.join(map(repr, _ALONE))}, "
        "a kernel object such as Gaussian(bandwidth=1.0), or a function k(X, Y)"
    )


@dataclass(frozen=True)
class Mercer:
    """What `is_psd` found; true where the matrix is positive semidefinite.

    Parameters
    ----------
    holds : bool
        Symmetric, and no eigenvalue below ``-tolerance``.
    smallest : float
        The smallest eigenvalue of the symmetric part.
    asymmetry : float
        The largest ``|K[i, j] - K[j, i]|``.
    tolerance : float
        What counts as zero.
    """

    holds: bool
    smallest: float
    asymmetry: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.holds


def is_psd(K: ArrayLike, tolerance: float | None = None) -> Mercer:
    """Tell whether a matrix can be a Gram matrix (Mercer's condition).

    Parameters
    ----------
    K : array, shape (n, n)
        The matrix.
    tolerance : float, optional
        What counts as zero; by default n * eps * the largest absolute
        eigenvalue, the size of rounding errors.

    Returns
    -------
    Mercer
        True or false, with the smallest eigenvalue.

    Raises
    ------
    ValueError
        If `K` is not square or not finite.

    Examples
    --------
    >>> bool(is_psd([[1.0, 0.5], [0.5, 1.0]]))
    True
    >>> is_psd([[1.0, 2.0], [2.0, 1.0]]).smallest
    -1.0
    """
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K has shape {K.shape}; it must be square")
    if not np.isfinite(K).all():
        raise ValueError("K contains NaN or infinite values; they must be finite")
    if not K.size:
        return Mercer(True, 0.0, 0.0, 0.0)
    eps = np.finfo(K.dtype).eps if K.dtype.kind == "f" else np.finfo(np.float64).eps
    K = K.astype(np.float64)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    if tolerance is None:
        tolerance = float(len(K) * eps * np.abs(eigenvalues).max())
    asymmetry = float(np.abs(K - K.T).max())
    smallest = float(eigenvalues[0])
    holds = smallest >= -tolerance and asymmetry <= tolerance
    return Mercer(bool(holds), smallest, asymmetry, float(tolerance))

"""Kernels of distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kbench.kernels.arrays import as_rows
from kbench.kernels.bandwidths import bandwidth_number, resolved_bandwidth, valid_bandwidth
from kbench.kernels.base import UnitDiagonal
from kbench.parameters import check_choice, check_number


@dataclass(frozen=True)
class _WithBandwidth(UnitDiagonal):
    """Base of kernels with a bandwidth that may depend on the data."""

    bandwidth: float | str = "median"

    def __post_init__(self) -> None:
        self._set(bandwidth=valid_bandwidth(self.bandwidth))

    def resolve(self, X: Any) -> Self:
        """Set the bandwidth."""
        return replace(self, bandwidth=resolved_bandwidth(self.bandwidth, X))


@dataclass(frozen=True)
class Gaussian(_WithBandwidth):
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

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import rbf_kernel

        return np.asarray(rbf_kernel(X, Y, gamma=0.5 / bandwidth_number(self.bandwidth) ** 2))


@dataclass(frozen=True)
class Laplace(_WithBandwidth):
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

    def resolve(self, X: Any) -> Laplace:
        """Set the bandwidth."""
        if not isinstance(self.bandwidth, str):
            return self
        return Laplace(float(np.sqrt(resolved_bandwidth(self.bandwidth, X))))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import euclidean_distances

        D = np.asarray(euclidean_distances(X, Y))
        D *= D.dtype.type(-0.5 / bandwidth_number(self.bandwidth) ** 2)
        np.exp(D, out=D)
        return D


@dataclass(frozen=True)
class LaplaceL1(UnitDiagonal):
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
            check_number(self.gamma, "gamma", above=0)
            self._set(gamma=float(self.gamma))

    def resolve(self, X: Any) -> LaplaceL1:
        """Set gamma to 1 / n_features."""
        if self.gamma is not None:
            return self
        return LaplaceL1(1.0 / as_rows(X, "X").shape[1])

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import laplacian_kernel

        return np.asarray(laplacian_kernel(X, Y, gamma=self.gamma), dtype=X.dtype)


@dataclass(frozen=True)
class Matern(_WithBandwidth):
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

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.nu, "nu", (0.5, 1.5, 2.5))

    def _gram(self, X: Any, Y: Any) -> NDArray[Any]:
        from sklearn.metrics.pairwise import euclidean_distances

        R = np.asarray(euclidean_distances(X, Y))
        R *= R.dtype.type(np.sqrt(2 * self.nu) / bandwidth_number(self.bandwidth))
        K: NDArray[Any] = np.exp(-R)
        if self.nu == 1.5:
            R += 1
            K *= R
        elif self.nu == 2.5:
            K *= 1 + R + R * R / 3
        return K

"""Kernels of histograms: nonnegative inputs."""

from dataclasses import dataclass

import numpy as np

from kbench.arrays import Array, Matrix, MatrixLike, check_rows, row_sums
from kbench.kernels.base import Kernel, UnitDiagonal
from kbench.parameters import check_number


def _check_nonnegative(kernel: Kernel, *inputs: "Matrix | None") -> None:
    for X in inputs:
        if X is not None and X.shape[0] and X.min() < 0:
            raise ValueError(
                f"X must be nonnegative for {type(kernel).__name__}, got the value {X.min():g}"
            )


def _writeable(X: Matrix) -> Matrix:
    """Copy a read-only array: scikit-learn's compiled chi-squared sums refuse it."""
    return X.copy() if isinstance(X, np.ndarray) and not X.flags.writeable else X


class _HalfOfSums(Kernel):
    """Base of kernels ``(sum_j x_j + sum_j z_j - distance(x, z)) / 2``."""

    def _minus_distances(self, X: Matrix, Y: Matrix) -> Array:
        raise NotImplementedError

    def _gram(self, X: Matrix, Y: "Matrix | None") -> Array:
        _check_nonnegative(self, X, Y)
        Y = X if Y is None else Y
        K = self._minus_distances(X, Y)
        K += row_sums(X)[:, None]
        K += row_sums(Y)
        K *= K.dtype.type(0.5)
        return K

    def diag(self, X: MatrixLike) -> Array:
        """``sum_j x_j``."""
        return row_sums(check_rows(X, "X"))


@dataclass(frozen=True)
class AdditiveChi2(_HalfOfSums):
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

    def _minus_distances(self, X: Matrix, Y: Matrix) -> Array:
        from sklearn.metrics.pairwise import additive_chi2_kernel

        # 2 x z / (x + z) = (x + z)/2 - (x - z)^2 / (2 (x + z))
        return np.asarray(additive_chi2_kernel(_writeable(X), _writeable(Y)))


@dataclass(frozen=True)
class Chi2(UnitDiagonal):
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
        check_number(self.gamma, "gamma", above=0)
        self._set(gamma=float(self.gamma))

    def _gram(self, X: Matrix, Y: "Matrix | None") -> Array:
        from sklearn.metrics.pairwise import chi2_kernel

        _check_nonnegative(self, X, Y)
        return np.asarray(chi2_kernel(_writeable(X), _writeable(Y), gamma=self.gamma))


@dataclass(frozen=True)
class Intersection(_HalfOfSums):
    """Histogram intersection, ``k(x, z) = sum_j min(x_j, z_j)``, nonnegative inputs.

    Examples
    --------
    >>> Intersection()([[1.0, 3.0]], [[2.0, 1.0]])
    array([[2.]])
    """

    def _minus_distances(self, X: Matrix, Y: Matrix) -> Array:
        from sklearn.metrics.pairwise import manhattan_distances

        # min(x, z) = (x + z - |x - z|) / 2
        K = np.asarray(manhattan_distances(X, Y), dtype=X.dtype)
        np.negative(K, out=K)
        return K

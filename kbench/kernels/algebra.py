"""Closure: sums, products and multiples of kernels are kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbench.kernels.base import Kernel, inverse_roots
from kbench.kernels.given import Precomputed
from kbench.kernels.names import resolve_kernel


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
    >>> from kbench.kernels import Polynomial
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
        return inverse_roots(squared)

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

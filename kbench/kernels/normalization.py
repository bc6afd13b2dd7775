"""Normalized kernels: images of unit length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbench.kernels.arrays import inverse_roots, is_positive
from kbench.kernels.base import Kernel, Wrapper, resolve_kernel


@dataclass(frozen=True)
class Normalized(Wrapper):
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
        return is_positive(self.kernel.diag(X))


def normalized(kernel: Kernel | str | Callable[..., Any]) -> Normalized:
    """Normalize a kernel, see `Normalized`."""
    return Normalized(resolve_kernel(kernel))

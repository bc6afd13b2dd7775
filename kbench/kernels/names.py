"""Kernels by name, and whatever else an estimator accepts as ``kernel``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kbench.kernels.base import Kernel
from kbench.kernels.distances import Gaussian, Laplace, LaplaceL1, Matern
from kbench.kernels.given import Precomputed, Similarity
from kbench.kernels.histograms import AdditiveChi2, Chi2, Intersection
from kbench.kernels.inner_products import Cosine, Linear, Polynomial

SIMPLE: dict[str, type[Kernel]] = {
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
}
"""The kernels that have no parts, by their names in suite files."""


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
    if isinstance(kernel, str) and kernel in SIMPLE:
        return SIMPLE[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return Similarity(kernel)
    raise ValueError(
        f"kernel={kernel!r}: it must be one of {', '.join(map(repr, SIMPLE))}, "
        "a kernel object such as Gaussian(bandwidth=1.0), or a function k(X, Y)"
    )

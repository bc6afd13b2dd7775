"""Kernel functions and their algebra.

A kernel is a small frozen object: ``k(X, Y)`` is the Gram matrix between the
rows of `X` and of `Y`, ``k.diag(X)`` its diagonal without the rest,
``k.resolve(X)`` the same kernel with every number set (a bandwidth of
``"median"`` becomes a number), ``k.take(X, rows)`` the data of some rows that a
later comparison with them needs. Kernels compare equal by value, hash,
pickle, and their ``repr`` reads back. Sums, products and multiples of kernels
are kernels::

    >>> k = 0.5 * Gaussian(bandwidth=2.0) + Linear()
    >>> k.left
    Scaled(kernel=Gaussian(bandwidth=2.0, bandwidth_factor=1.0), weight=0.5)
    >>> k([[0.0, 1.0]], [[0.0, 1.0], [2.0, 1.0]]).round(3)
    array([[1.5  , 1.303]])

Imports run one way: `arrays`, `base`, the kernels, this package.

Importing the package imports numpy only; scikit-learn's pairwise functions,
which do the work, are imported by the first kernel that is computed.
"""

from kbench.kernels.base import (
    SIMPLE,
    Kernel,
    Normalized,
    Product,
    Scaled,
    Similarity,
    Sum,
    normalized,
    resolve_kernel,
)
from kbench.kernels.distances import Gaussian, Laplace, LaplaceBalcan, Matern, median_distance
from kbench.kernels.histograms import AdditiveChi2, Chi2, Intersection
from kbench.kernels.inner_products import Cosine, Linear, Polynomial, Precomputed

# filled here, in the order of messages: base cannot import the kernels that import it
SIMPLE.update(
    {
        "linear": Linear,
        "polynomial": Polynomial,
        "cosine": Cosine,
        "gaussian": Gaussian,
        "laplace-balcan": LaplaceBalcan,
        "laplace": Laplace,
        "matern": Matern,
        "additive-chi2": AdditiveChi2,
        "chi2": Chi2,
        "intersection": Intersection,
        "precomputed": Precomputed,
    }
)

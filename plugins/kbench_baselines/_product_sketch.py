"""Polynomial sketches: random features of a polynomial kernel of one degree."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.utils import check_random_state

from kbench.kernels import Gaussian
from kbench.parameters import check_choice, check_integer, check_number
from kbench_baselines._bandwidth import check_bandwidth, resolve_bandwidth
from kbench_baselines._base import BaselineMap
from kbench_baselines._sketches import PROJECTIONS, draw_sketch, real_features, row_blocks


class ProductSketch(BaselineMap):
    """Products of random projections: a sketch of the polynomial kernel.

    ``z_i(x) = D^(-1/2) prod_j (w_ij.x')`` with `degree` random vectors w_ij and
    ``x' = (sqrt(coef0), sqrt(gamma) x)``. Take it where all monomials are too many, as for
    high degrees or many inputs; SRHT projections have the smallest error for
    up to about as many features as inputs. With `complex_to_real`, the vectors are
    complex and the features are real and imaginary parts: less variance at equal columns,
    above all for inputs that are not negative.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    projection : {"rademacher", "srht", "countsketch"}, default "rademacher"
        Independent signs; rows of a randomised Hadamard matrix, where inputs are padded with
        zeros to a power of two; or hashed sums, multiplied by Fourier transforms. Real
        "countsketch" has the law of `PolynomialSketch`.
    complex_to_real : bool, default True
        Whether to draw from 1, -1, i and -i in place of 1 and -1.
    kernel : {"polynomial", "gaussian"}, default "polynomial"
        ``(gamma x.z + coef0)^degree``; or the Gaussian kernel, with
        ``exp(x.z / bandwidth^2)`` replaced by ``(1 + x.z / (degree bandwidth^2))^degree``. That
        is biased, less so for high degrees and wide bandwidths.
    degree : int, default 2
        Degree of the kernel, >= 1.
    gamma, coef0 : float, default 1.0
        Parameters of the polynomial kernel, > 0 and >= 0.
    bandwidth : float or "median", default "median"
        Parameter of the Gaussian kernel; "median" is the median distance between training
        rows (of at most 500 of them).
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of the projections.

    Attributes
    ----------
    bandwidth_ : float or None
        The bandwidth of the Gaussian kernel, its factor included.
    mean_ : ndarray, shape (n_features,)
        Shift of the inputs for the Gaussian kernel, where the series is better near 0.
    sketch_ : callable
        The drawn sketch.

    Notes
    -----
    Inner products average to the kernel. With signs, one of x and z has a variance that the
    terms ``q = |x'|^2 |z'|^2``, ``m = x'.z'`` and ``s = sum_i x'_i^2 z'_i^2`` give. It is
    ``((q + 2 m^2 - 2 s)^degree - m^(2 degree)) / D`` for D real features, and
    ``((q + m^2 - s)^degree / 2 + (2 m^2 - s)^degree / 2 - m^(2 degree)) / D`` for the two parts of
    D complex ones. SRHT has a smaller one within blocks, CountSketch about that of real
    signs.

    References
    ----------
    .. [1] J. Wacker, M. Kanagawa and M. Filippone, Improved random features for dot product
       kernels, arXiv:2201.08712 (2022), section 3 (signs) and section 4 (SRHT).
    .. [2] J. Wacker, R. Ohana and M. Filippone, Complex-to-real sketches for tensor products
       with applications to the polynomial kernel, arXiv:2202.02031 (2022).

    Examples
    --------
    >>> ProductSketch(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _accept_sparse = False

    def __init__(
        self,
        n_components=300,
        *,
        projection="rademacher",
        complex_to_real=True,
        kernel="polynomial",
        degree=2,
        gamma=1.0,
        coef0=1.0,
        bandwidth="median",
        bandwidth_factor=1.0,
        random_state=None,
    ):
        self.n_components = n_components
        self.projection = projection
        self.complex_to_real = complex_to_real
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.random_state = random_state

    def _fit(self, X):
        check_integer(self.n_components, "n_components", least=1)
        check_integer(self.degree, "degree", least=1)
        check_choice(self.projection, "projection", PROJECTIONS)
        check_choice(self.complex_to_real, "complex_to_real", (True, False))
        check_choice(self.kernel, "kernel", ("polynomial", "gaussian"))
        check_number(self.gamma, "gamma", above=0)
        check_number(self.coef0, "coef0", least=0)
        check_bandwidth(self, "l2")
        rng = check_random_state(self.random_state)
        self.bandwidth_, self.mean_ = None, np.zeros(X.shape[1], dtype=X.dtype)
        if self.kernel == "gaussian":
            self.bandwidth_ = resolve_bandwidth(self, X, "l2")
            self.mean_ = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        shape = (self._inputs(X[:1]).shape[1], -(-self.n_components // (1 + self.complex_to_real)))
        self.sketch_ = draw_sketch(
            self.projection, shape, self.degree, self.complex_to_real, rng, X.dtype
        )
        return self.n_components

    def _inputs(self, X):
        """Return x', of which the kernel is a power of the inner product."""
        if self.kernel == "gaussian":
            X, coef0 = (X - self.mean_) / (self.bandwidth_ * np.sqrt(self.degree)), 1.0
        else:
            X, coef0 = X * np.sqrt(self.gamma), self.coef0
        if coef0 == 0:
            return X
        return np.hstack([np.full((len(X), 1), np.sqrt(coef0)), X])

    def _transform(self, X):
        features = np.empty((len(X), self.n_components), dtype=X.dtype)
        for rows in row_blocks(len(X), 2 * max(self.n_components, X.shape[1])):
            part = X[rows]
            drawn = self.sketch_(self._inputs(part).astype(X.dtype))
            features[rows] = real_features(drawn, self.n_components)
            if self.kernel == "gaussian":
                scaled = (part - self.mean_) / X.dtype.type(self.bandwidth_)
                features[rows] *= np.exp(np.einsum("ij,ij->i", scaled, scaled) / -2)[:, None]
        return features


srht_product_sketch = partial(ProductSketch, projection="srht")
countsketch_product_sketch = partial(ProductSketch, projection="countsketch")


def product_sketch_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `ProductSketch`."""
    if fitted.kernel == "gaussian":
        return Gaussian(bandwidth=fitted.bandwidth_)(X, Y)
    return polynomial_kernel(X, Y, degree=fitted.degree, gamma=fitted.gamma, coef0=fitted.coef0)

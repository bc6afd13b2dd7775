"""Maclaurin features with the degrees that minimise the variance of the kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import comb, factorial
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state

from kbench.kernels import Gaussian
from kbench.parameters import check_choice, check_integer, check_number
from kbench_baselines._bandwidth import resolve_bandwidth
from kbench_baselines._base import BaselineMap
from kbench_baselines._degrees import Series, allocate, moments
from kbench_baselines._sketches import PROJECTIONS, draw_sketch, real_features, row_blocks


class OptimizedMaclaurinFeatures(BaselineMap):
    """Maclaurin features with the degrees that minimise the variance on the training inputs.

    The series ``k(x, z) = f(x) f(z) sum_n a_n (x.z)^n`` is cut after a degree. Its constant is one
    exact feature, and each degree n gets a number of features of a polynomial sketch, by its
    share of the variance over pairs of training rows. Take it for dot product kernels, and
    for the Gaussian kernel with a wide bandwidth and few features per input, where its
    error is below that of random Fourier features. With a narrow bandwidth the series is
    too long: it is cut, and the features are biased.

    Parameters
    ----------
    n_components : int, default 300
        Number of features, the constant included.
    kernel : {"gaussian", "exponential", "polynomial"}, default "gaussian"
        ``exp(-||x-z||^2 / (2 bandwidth^2))``, ``exp(x.z / bandwidth^2)``, or
        ``(x.z / bandwidth^2 + coef0)^degree``.
    projection : {"rademacher", "srht", "countsketch"}, default "rademacher"
        As in `ProductSketch`.
    complex_to_real : bool, default True
        As in `ProductSketch`.
    max_degree : int, default 10
        Highest degree of the cut series, >= 2.
    degree : int, default 2
        Degree of the polynomial kernel.
    coef0 : float, default 1.0
        Constant in the polynomial kernel, >= 0.
    bandwidth : float, "median" or "norm", default "median"
        Parameter of the kernel. "median", for the Gaussian kernel only, is the median distance
        between training rows (of at most 500 of them); "norm", for the other kernels only, is
        the root mean square length of the rows.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    n_rows : int, default 1000
        Largest number of training rows whose pairs decide the degrees; of more, so many are
        drawn at random.
    random_state : int, RandomState or None, default None
        Seed of the projections and of these rows.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    mean_ : ndarray, shape (n_features,)
        Shift of the inputs for the Gaussian kernel, which makes its series shorter.
    coefficients_ : ndarray, shape (max_degree + 1,)
        Coefficients a_n.
    counts_ : ndarray of int
        Number of features of the degrees 1, 2, ...; complex ones count once.
    sketches_ : list
        The sketch of each degree.

    Notes
    -----
    Inner products average to the cut series. Numbers of features are chosen for the expected
    variance (signs, SRHT) or a bound of it (CountSketch).

    References
    ----------
    J. Wacker, M. Kanagawa and M. Filippone, Improved random features for dot product kernels,
    arXiv:2201.08712 (2022), section 5.

    Examples
    --------
    >>> map_ = OptimizedMaclaurinFeatures(n_components=5, random_state=0)
    >>> map_.fit_transform([[0.0, 1.0], [2.0, 1.0]]).shape
    (2, 5)
    """

    _accept_sparse = False

    def __init__(
        self,
        n_components=300,
        *,
        kernel="gaussian",
        projection="rademacher",
        complex_to_real=True,
        max_degree=10,
        degree=2,
        coef0=1.0,
        bandwidth="median",
        bandwidth_factor=1.0,
        n_rows=1000,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.projection = projection
        self.complex_to_real = complex_to_real
        self.max_degree = max_degree
        self.degree = degree
        self.coef0 = coef0
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.n_rows = n_rows
        self.random_state = random_state

    def _fit(self, X):
        check_integer(self.n_components, "n_components", least=1)
        check_choice(self.kernel, "kernel", ("gaussian", "exponential", "polynomial"))
        check_choice(self.projection, "projection", PROJECTIONS)
        check_choice(self.complex_to_real, "complex_to_real", (True, False))
        check_integer(self.max_degree, "max_degree", least=2)
        check_integer(self.degree, "degree", least=1)
        check_number(self.coef0, "coef0", least=0)
        check_integer(self.n_rows, "n_rows", least=2)
        rng = check_random_state(self.random_state)
        is_gaussian = self.kernel == "gaussian"
        self.bandwidth_ = resolve_bandwidth(self, X, "l2" if is_gaussian else "inner")
        mean = X.mean(axis=0, dtype=np.float64) if is_gaussian else np.zeros(X.shape[1])
        self.mean_ = mean.astype(X.dtype)
        self.coefficients_ = self._coefficients()
        number = -(-(self.n_components - 1) // (1 + self.complex_to_real))
        self.counts_ = self._allocated(X, number, rng)
        self.sketches_ = [
            draw_sketch(
                self.projection, (X.shape[1], count), order, self.complex_to_real, rng, X.dtype
            )
            for order, count in enumerate(self.counts_, start=1)
        ]
        return self.n_components

    def _coefficients(self):
        order = np.arange(self.max_degree + 1)
        if self.kernel != "polynomial":
            return 1 / factorial(order)
        order = order[: self.degree + 1]
        return comb(self.degree, order) * float(self.coef0) ** (self.degree - order)

    def _allocated(self, X, number, rng):
        """Numbers of features of the degrees, from pairs of training rows."""
        if len(X) > self.n_rows:
            X = X[np.sort(rng.choice(len(X), self.n_rows, replace=False))]
        inputs = self._scaled(X).astype(np.float64)
        if len(inputs) < 2:
            inputs = np.repeat(inputs, 2, axis=0)
        series = Series(self.coefficients_, self._factors(inputs)[:, 0])
        if self.kernel == "gaussian":
            target = rbf_kernel(inputs, gamma=0.5)
        else:
            target = _dot_product_kernel(self, inputs @ inputs.T)
        found = moments(inputs, series, target, self.projection, self.complex_to_real)
        return allocate(found, number)

    def _scaled(self, X):
        return (X - self.mean_) / X.dtype.type(self.bandwidth_)

    def _factors(self, scaled):
        """Factor f of each row, in a column."""
        if self.kernel != "gaussian":
            return np.ones((len(scaled), 1), dtype=scaled.dtype)
        return np.exp(np.einsum("ij,ij->i", scaled, scaled) / -2)[:, None]

    def _transform(self, X):
        features = np.empty((len(X), self._n_features_out), dtype=X.dtype)
        for rows in row_blocks(len(X), 2 * max(features.shape[1], X.shape[1])):
            scaled, first = self._scaled(X[rows]), 1
            features[rows, 0] = np.sqrt(self.coefficients_[0])
            for coefficient, sketch in zip(self.coefficients_[1:], self.sketches_, strict=False):
                drawn = sketch(scaled)
                stop = first + drawn.shape[1] * (1 + self.complex_to_real)
                stop = min(stop, self.n_components)
                part = real_features(drawn, stop - first)
                np.multiply(part, np.sqrt(coefficient), out=features[rows, first:stop])
                first = stop
            features[rows] *= self._factors(scaled)
        return features


def _dot_product_kernel(fitted, inner):
    """Kernel as a function of ``x.z / bandwidth^2``."""
    if fitted.kernel == "exponential":
        return np.exp(inner)
    return (inner + fitted.coef0) ** fitted.degree


srht_maclaurin = partial(OptimizedMaclaurinFeatures, projection="srht")


def optimized_maclaurin_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `OptimizedMaclaurinFeatures`."""
    if fitted.kernel == "gaussian":
        return Gaussian(bandwidth=fitted.bandwidth_)(X, Y)
    inner = np.asarray(X, dtype=np.float64) @ np.asarray(Y, dtype=np.float64).T
    return _dot_product_kernel(fitted, inner / fitted.bandwidth_**2)

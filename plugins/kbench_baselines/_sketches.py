"""Random features of the kernels (x.z)^degree: products of random projections.

`draw_sketch` draws one, and calling it maps a few dense rows. Complex features z have
``E z(x) conj(z(x')) = (x.x')^degree``; the real and imaginary parts side by side have the same
inner products. Wacker, Kanagawa and Filippone, arXiv:2201.08712.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
import scipy.fft
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.utils import check_random_state, gen_batches

from kbench.arrays import (
    empty,
    full,
    host_type,
    like,
    namespace,
    on_device,
    squared_norms,
    take,
    wide,
)
from kbench.kernels import Gaussian
from kbench.parameters import choice, integer, number
from kbench_baselines._base import BandwidthMap, column_means, resolve_bandwidth
from kbench_baselines._primitives import segment_sums, walsh_hadamard


def padded_size(n_features):
    """Smallest power of two that is not below `n_features`.

    Examples
    --------
    >>> [padded_size(d) for d in (1, 2, 3, 1000, 1024)]
    [1, 2, 4, 1024, 1024]
    """
    return 1 << (n_features - 1).bit_length()


def rows_together(size, X):
    """Return the number of rows of `size` numbers to transform at once: numpy's stay in cache."""
    return max(256, 2**24 // size) if namespace(X) is not np else min(256, max(8, 2**16 // size))


PROJECTIONS = ("rademacher", "srht", "countsketch")


def draw_sketch(projection, shape, degree, is_complex, rng, dtype):
    """Draw a sketch; `shape` is (n_features, n_components), with complex features counted once.

    "rademacher": independent random signs. "srht": rows of a randomised Hadamard matrix,
    drawn without replacement within blocks of the padded number of inputs. "countsketch":
    hashed sums, multiplied as polynomials (TensorSketch).
    """
    draw = {"rademacher": _draw_signs, "srht": _draw_hadamard, "countsketch": _draw_counts}
    return draw[projection](shape, degree, is_complex, rng, dtype)


def _signs(rng, shape, is_complex):
    """Uniform draws from 1, -1, or from 1, -1, i, -i."""
    if not is_complex:
        return rng.choice([-1.0, 1.0], size=shape)
    return np.array([1, 1j, -1, -1j])[rng.randint(4, size=shape)]


@dataclass(frozen=True)
class SignSketch:
    """Products of sums with random signs."""

    signs: list[np.ndarray]
    """(n_features, n_components) for each degree; complex ones as real, then imaginary parts."""
    is_complex: bool

    def __call__(self, X):
        features = 1.0
        for signs in self.signs:
            projection = X @ like(signs, X)
            if self.is_complex:
                half = projection.shape[1] // 2
                projection = projection[:, :half] + 1j * projection[:, half:]
            features = features * projection
        features *= features.shape[1] ** -0.5
        return features


def _draw_signs(shape, degree, is_complex, rng, dtype):
    drawn = [_signs(rng, shape, is_complex) for _ in range(degree)]
    if is_complex:
        drawn = [np.hstack([each.real, each.imag]) for each in drawn]
    return SignSketch([each.astype(dtype) for each in drawn], is_complex)


@dataclass(frozen=True)
class HadamardSketch:
    """Products of rows of randomised Hadamard matrices."""

    signs: np.ndarray
    """(degree, 1 or 2, n_blocks, size): diagonals, of complex ones real and imaginary part."""
    rows: np.ndarray
    """(degree, n_components): rows of the stacked blocks."""

    def __call__(self, X):
        degree, parts, n_blocks, size = self.signs.shape
        n_rows, signs = X.shape[0], like(self.signs, X)
        inputs = full((size, n_rows), 0.0, X)
        inputs[: X.shape[1], :] = X.T
        features, stacked = 1.0, [empty((n_blocks * size, n_rows), X) for _ in range(parts)]
        for k in range(degree):
            for part, block in np.ndindex(parts, n_blocks):
                place = slice(block * size, (block + 1) * size)
                stacked[part][place, :] = walsh_hadamard(inputs * signs[k, part, block, :][:, None])
            chosen = [take(each, self.rows[k, :]) for each in stacked]
            features = features * (chosen[0] if parts == 1 else chosen[0] + 1j * chosen[1])
        features *= features.shape[0] ** -0.5
        return features.T


def _draw_hadamard(shape, degree, is_complex, rng, dtype):
    n_features, n_components = shape
    size = padded_size(n_features)
    n_blocks = -(-n_components // size)
    signs = _signs(rng, (degree, 1, n_blocks, size), is_complex)
    if is_complex:
        signs = np.concatenate([signs.real, signs.imag], axis=1)
    # all rows of all blocks but the last
    rows = [
        np.concatenate([block * size + rng.permutation(size) for block in range(n_blocks)])
        for _ in range(degree)
    ]
    return HadamardSketch(signs.astype(dtype), np.stack(rows)[:, :n_components])


@dataclass(frozen=True)
class CountSketch:
    """Hashed sums with signs, multiplied as polynomials: Pham and Pagh (2013)."""

    places: np.ndarray
    """(degree, n_features): the numbers of the sums."""
    signs: np.ndarray
    """(degree, n_features)"""
    n_components: int

    def __call__(self, X):
        xp = namespace(X)
        is_complex = namespace(self.signs).isdtype(self.signs.dtype, "complex floating")
        kind = xp.result_type(X.dtype, xp.complex64) if is_complex else X.dtype
        # a single precision complex type of scipy stays one
        fft = scipy.fft if xp is np else xp.fft
        forward = fft.fft if is_complex else fft.rfft
        signs, columns = like(self.signs, X, kind), np.ascontiguousarray(X.T) if xp is np else X.T
        spectrum = 1.0
        for k in range(signs.shape[0]):
            projection = segment_sums(columns, self.places[k, :], signs[k, :], self.n_components)
            spectrum = spectrum * forward(projection, axis=0)
        if is_complex:
            return fft.ifft(spectrum, axis=0).T
        return fft.irfft(spectrum, n=self.n_components, axis=0).T


def _draw_counts(shape, degree, is_complex, rng, dtype):
    n_features, n_components = shape
    kind = np.result_type(dtype, np.complex64) if is_complex else dtype
    drawn = [
        (rng.randint(n_components, size=n_features), _signs(rng, n_features, is_complex))
        for _ in range(degree)
    ]
    places, signs = (np.stack(each) for each in zip(*drawn, strict=True))
    return CountSketch(places, signs.astype(kind), n_components)


def real_features(features, n_columns):
    """Return the real and imaginary parts of complex features side by side.

    Where the number of columns is odd, the last feature has a real part only, of the same
    expected square: ``E z(x) z(x') = 0``, so that both parts contribute half of the kernel.
    """
    xp = namespace(features)
    if not xp.isdtype(features.dtype, "complex floating"):
        return features
    imaginary = xp.imag(features)[:, : n_columns - features.shape[1]]
    parts = xp.concat([xp.real(features), imaginary], axis=1)
    if n_columns % 2:
        parts[:, features.shape[1] - 1] *= float(np.sqrt(2))
    return parts


def row_blocks(n_rows, width, n_values=2**20):
    """Slices of rows so short that a matrix of `width` columns has about `n_values` values."""
    return list(gen_batches(n_rows, max(1, n_values // max(width, 1))))


@dataclass(eq=False, repr=False)
class ProductSketch(BandwidthMap):
    """Products of random projections: a sketch of the polynomial kernel.

    ``z_i(x) = D^(-1/2) prod_j (w_ij.x')`` with `degree` random vectors w_ij and
    ``x' = (sqrt(coef0), sqrt(gamma) x)``. Use it if all monomials are too many, as for
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

    takes_any_namespace = True
    _accept_sparse = False

    n_components: int = integer(300, least=1)
    _: KW_ONLY
    projection: str = choice("rademacher", PROJECTIONS)
    complex_to_real: bool = choice(True, (True, False))
    kernel: str = choice("polynomial", ("polynomial", "gaussian"))
    degree: int = integer(2, least=1)
    gamma: float = number(1.0, above=0)
    coef0: float = number(1.0, least=0)

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.bandwidth_, self.mean_ = None, like(np.zeros(X.shape[1]), X)
        if self.kernel == "gaussian":
            self.bandwidth_ = resolve_bandwidth(self, X, "l2")
            self.mean_ = like(column_means(X), X)
        n_inputs = X.shape[1] + (self.kernel == "gaussian" or self.coef0 > 0)
        shape = (n_inputs, -(-self.n_components // (1 + self.complex_to_real)))
        self.sketch_ = draw_sketch(
            self.projection, shape, self.degree, self.complex_to_real, rng, host_type(X)
        )
        return self.n_components

    def _inputs(self, X):
        """Return x', of which the kernel is a power of the inner product."""
        if self.kernel == "gaussian":
            scale, coef0 = wide(self.bandwidth_ * np.sqrt(self.degree), X), 1.0
            X = (X - on_device(self.mean_, X)) / scale
        else:
            X, coef0 = X * wide(np.sqrt(self.gamma), X), self.coef0
        if coef0 == 0:
            return X
        return namespace(X).concat([full((X.shape[0], 1), np.sqrt(coef0), X), X], axis=1)

    def _transform(self, X):
        xp = namespace(X)
        features = empty((X.shape[0], self.n_components), X)
        for rows in row_blocks(X.shape[0], 2 * max(self.n_components, X.shape[1])):
            part = take(X, rows)
            drawn = self.sketch_(xp.astype(self._inputs(part), X.dtype))
            features[rows, :] = real_features(drawn, self.n_components)
            if self.kernel == "gaussian":
                scaled = (part - on_device(self.mean_, X)) / like(self.bandwidth_, X)
                features[rows, :] *= xp.exp(squared_norms(scaled) / -2)[:, None]
        return features


srht_product_sketch = partial(ProductSketch, projection="srht")
countsketch_product_sketch = partial(ProductSketch, projection="countsketch")


def product_sketch_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `ProductSketch`."""
    if fitted.kernel == "gaussian":
        return Gaussian(bandwidth=fitted.bandwidth_)(X, Y)
    return polynomial_kernel(X, Y, degree=fitted.degree, gamma=fitted.gamma, coef0=fitted.coef0)

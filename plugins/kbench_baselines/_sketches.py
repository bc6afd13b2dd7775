"""Random features of the kernels (x.z)^degree: products of random projections.

`draw_sketch` draws one, and calling it maps a few dense rows. Complex features z have
``E z(x) conj(z(x')) = (x.x')^degree``; the real and imaginary parts side by side have the same
inner products. Wacker, Kanagawa and Filippone, arXiv:2201.08712.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cache, partial

import numpy as np
import scipy.fft
import scipy.sparse as sp
from scipy.linalg import hadamard
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.utils import check_random_state

from kbench.kernels import Gaussian
from kbench.parameters import choice, integer, number
from kbench_baselines._base import BandwidthMap, column_means, resolve_bandwidth

_LARGEST_FACTOR = 5
"""Exponent of the largest Hadamard matrix that is multiplied as a whole, 2^5 = 32 rows."""


def padded_size(n_features):
    """Smallest power of two that is not below `n_features`.

    Examples
    --------
    >>> [padded_size(d) for d in (1, 2, 3, 1000, 1024)]
    [1, 2, 4, 1024, 1024]
    """
    return 1 << (n_features - 1).bit_length()


def walsh_hadamard(A):
    """Multiply `A` by the Hadamard matrix of its height, in Sylvester's order, without a factor.

    ``H_ab = H_a (x) H_b``, so that each factor of at most 32 rows is one batched matrix
    product. Measured with d = 1,024 this takes as long as compiled butterflies, and a
    fifth of the time of butterflies in numpy. `A` is C-contiguous, and is overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> walsh_hadamard(np.eye(4)[:, :2]).T
    array([[ 1.,  1.,  1.,  1.],
           [ 1., -1.,  1., -1.]])
    """
    size, n_columns = A.shape
    other = np.empty_like(A)
    before = 1
    for factor in _factors(size, A.dtype):
        shape = (before, len(factor), size // (before * len(factor)) * n_columns)
        np.matmul(factor, A.reshape(shape), out=other.reshape(shape))
        A, other = other, A
        before *= len(factor)
    return A


@cache
def _factors(size, dtype):
    """Hadamard matrices of about equal size whose Kronecker product is that of `size`."""
    exponent = size.bit_length() - 1
    number = -(-exponent // _LARGEST_FACTOR)
    exponents = [(exponent + i) // number for i in range(number)]
    return [hadamard(2**each).astype(dtype) for each in exponents]


def rows_together(size):
    """Return the number of rows of `size` numbers to transform at once: they stay in cache."""
    return min(256, max(8, 2**16 // size))


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
            projection = X @ signs.astype(X.dtype, copy=False)
            if self.is_complex:
                half = projection.shape[1] // 2
                projection = projection[:, :half] + 1j * projection[:, half:]
            features = features * projection
        features *= X.dtype.type(features.shape[1] ** -0.5)
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
        inputs = np.zeros((size, len(X)), dtype=X.dtype)
        inputs[: X.shape[1]] = X.T
        features, stacked = 1.0, np.empty((parts, n_blocks * size, len(X)), dtype=X.dtype)
        for k in range(degree):
            for part, block in np.ndindex(parts, n_blocks):
                signs = self.signs[k, part, block].astype(X.dtype)[:, None]
                place = slice(block * size, (block + 1) * size)
                stacked[part, place] = walsh_hadamard(inputs * signs)
            chosen = stacked[:, self.rows[k]]
            features = features * (chosen[0] if parts == 1 else chosen[0] + 1j * chosen[1])
        features *= X.dtype.type(features.shape[0] ** -0.5)
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

    sums: list[sp.csr_matrix]
    """(n_components, n_features) for each degree."""

    def __call__(self, X):
        is_complex = np.iscomplexobj(self.sums[0].data)
        # a single precision complex type stays one
        forward = scipy.fft.fft if is_complex else scipy.fft.rfft
        spectrum = 1.0
        for sums in self.sums:
            kind = np.result_type(X.dtype, np.complex64) if is_complex else X.dtype
            projection = sums.astype(kind, copy=False) @ np.ascontiguousarray(X.T)
            spectrum = spectrum * forward(np.asarray(projection), axis=0)
        if is_complex:
            return scipy.fft.ifft(spectrum, axis=0).T
        return scipy.fft.irfft(spectrum, n=self.sums[0].shape[0], axis=0).T


def _draw_counts(shape, degree, is_complex, rng, dtype):
    n_features, n_components = shape
    kind = np.result_type(dtype, np.complex64) if is_complex else dtype
    sums = []
    for _ in range(degree):
        places = rng.randint(n_components, size=n_features)
        signs = _signs(rng, n_features, is_complex).astype(kind)
        sums.append(sp.csr_matrix((signs, (places, np.arange(n_features))), shape=shape[::-1]))
    return CountSketch(sums)


def real_features(features, n_columns):
    """Return the real and imaginary parts of complex features side by side.

    Where the number of columns is odd, the last feature has a real part only, of the same
    expected square: ``E z(x) z(x') = 0``, so that both parts contribute half of the kernel.
    """
    if not np.iscomplexobj(features):
        return features
    parts = np.hstack([features.real, features.imag[:, : n_columns - features.shape[1]]])
    if n_columns % 2:
        parts[:, features.shape[1] - 1] *= parts.dtype.type(np.sqrt(2))
    return parts


def row_blocks(n_rows, width, n_values=2**20):
    """Slices of rows so short that a matrix of `width` columns has about `n_values` values."""
    step = max(1, n_values // max(width, 1))
    return [slice(first, first + step) for first in range(0, n_rows, step)]


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
        self.bandwidth_, self.mean_ = None, np.zeros(X.shape[1], dtype=X.dtype)
        if self.kernel == "gaussian":
            self.bandwidth_ = resolve_bandwidth(self, X, "l2")
            self.mean_ = column_means(X).astype(X.dtype)
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

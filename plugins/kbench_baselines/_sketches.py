"""Random features of the kernels (x.z)^degree: products of random projections.

`draw_sketch` draws one, and calling it maps a few dense rows. Complex features z have
``E z(x) conj(z(x')) = (x.x')^degree``; the real and imaginary parts side by side have the same
inner products. Wacker, Kanagawa and Filippone, arXiv:2201.08712.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.fft
import scipy.sparse as sp

from kbench_baselines._hadamard import padded_size, walsh_hadamard

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
    """(n_features, n_components) for each degree; of complex ones the real beside the imaginary."""
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

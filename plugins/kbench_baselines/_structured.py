"""Fourier features whose frequencies are products of Hadamard and diagonal matrices."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils import check_random_state, gen_batches

from kbench.arrays import empty, full, like, namespace, take, wide
from kbench.parameters import integer
from kbench_baselines._base import dense
from kbench_baselines._fourier import _FourierMap, fourier_gradient
from kbench_baselines._primitives import walsh_hadamard, waves
from kbench_baselines._sketches import padded_size, rows_together


class _StructuredFourierMap(_FourierMap):
    """Cosines and sines of frequencies that come in square blocks.

    Subclasses have ``_draw(rng, n_blocks, size, X)``, which draws the diagonals, and
    ``_phases(inputs, block)``: the products of the frequencies of a block with inputs in
    columns, of shape (size, n_columns). Inputs were divided by ``_unit()``.
    """

    def _unit(self):
        return self.bandwidth_

    def _padded(self, n_features):
        """Return the number of inputs to pad to a power of two."""
        return n_features

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.bandwidth_ = self._resolve_bandwidth(X)
        self.block_size_ = padded_size(self._padded(X.shape[1]))
        n_blocks = -(-((self.n_components + 1) // 2) // self.block_size_)
        self._draw(rng, n_blocks, self.block_size_, X)
        self.offset_ = rng.uniform(0, 2 * np.pi)
        return self.n_components

    def _transform(self, X):
        n_features, size, half = X.shape[1], self.block_size_, self.n_components // 2
        xp, amplitude = namespace(X), wide(np.sqrt(2.0 / self.n_components), X)
        features = empty((X.shape[0], self.n_components), X)
        for rows in gen_batches(X.shape[0], rows_together(size, X)):
            part = dense(take(X, rows))
            inputs = full((size, part.shape[0]), 0.0, X)
            inputs[:n_features, :] = part.T / float(self._unit())
            for block, start in enumerate(range(0, self.n_components - half, size)):
                phases = self._phases(inputs, block)
                stop = min(start + size, half)
                if start < stop:
                    # in the order of the features, in which numpy is several times faster
                    by_row = phases[: stop - start, :].T
                    by_row = np.ascontiguousarray(by_row) if xp is np else by_row
                    sines = features[rows, half + start : half + stop]
                    waves(by_row, features[rows, start:stop], sines, amplitude)
                if self.n_components % 2 and start <= half < start + size:
                    features[rows, -1] = xp.cos(phases[half - start, :] + self.offset_) * amplitude
        return features

    def _gradient(self, X, coef):
        xp, number = namespace(X), (self.n_components + 1) // 2
        columns = like(np.eye(self.block_size_, X.shape[1]) / self._unit(), X)
        blocks = [self._phases(columns, block) for block in range(self.signs_.shape[0])]
        return fourier_gradient(X, xp.concat(blocks)[:number, :].T, coef, self.offset_)


class FastfoodFeatures(_StructuredFourierMap):
    """Fastfood: Fourier features of the Gaussian kernel in O(d log d) per block.

    ``phi(x) = sqrt(2 / D) (cos(w_1.x), ..., sin(w_1.x), ...)`` with D = `n_components`. The D / 2
    frequencies are rows of blocks ``S H G P H B / (bandwidth sqrt(d))``: H is the Hadamard matrix
    of d rows, B has random signs, P is a permutation, G has normal entries, and S gives each row a
    chi-distributed length. Use it if d is at least a few hundred and the product with
    the frequency matrix dominates. Below that, `OrthogonalFourierFeatures` has the
    smaller error and costs as much.

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency. Frequencies of the last block that are not
        needed are computed and dropped.
    bandwidth : float or "median", default "median"
        Parameter of the kernel ``exp(-||x-z||^2 / (2 bandwidth^2))``; "median" is the
        median distance between training rows (of at most 500 of them).
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of the diagonals and permutations.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    block_size_ : int
        d: the number of inputs, padded with zeros to a power of two.
    signs_, normals_, lengths_ : ndarray, shape (n_blocks, block_size_)
        The diagonals B and G, and S divided by the length of G.
    permutations_ : ndarray of int, shape (n_blocks, block_size_)
        The permutations P.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    Notes
    -----
    Each frequency by itself is normal, so that inner products average to the kernel. Those of
    a block are not independent: the variance is that of independent frequencies and a
    further term that shrinks with d.

    References
    ----------
    Q. Le, T. Sarlos and A. Smola, Fastfood: approximating kernel expansions in loglinear
    time, ICML 2013, the matrix V.

    Examples
    --------
    >>> FastfoodFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    def _draw(self, rng, n_blocks, size, X):
        shape = (n_blocks, size)
        self.signs_ = like(rng.choice([-1.0, 1.0], size=shape), X)
        normals = rng.normal(size=shape)
        lengths = np.sqrt(rng.chisquare(size, size=shape) / size)
        lengths /= np.linalg.norm(normals, axis=1, keepdims=True)
        self.normals_, self.lengths_ = like(normals, X), like(lengths, X)
        self.permutations_ = np.stack([rng.permutation(size) for _ in range(n_blocks)])

    def _phases(self, inputs, block):
        mixed = walsh_hadamard(inputs * _column(self.signs_[block, :], inputs))
        mixed = take(mixed, self.permutations_[block, :])
        mixed *= _column(self.normals_[block, :], inputs)
        mixed = walsh_hadamard(mixed)
        mixed *= _column(self.lengths_[block, :], inputs)
        return mixed


@dataclass(eq=False, repr=False)
class StructuredOrthogonalFeatures(_StructuredFourierMap):
    """Structured orthogonal random features (SORF) of the Gaussian kernel; slightly biased.

    Features as in `FastfoodFeatures`, with frequencies from blocks
    ``H D_1 H D_2 H D_3 / (d bandwidth)``, where the diagonals D have random signs. The rows of a
    block are orthogonal and all of length ``sqrt(d) / bandwidth``. Use it if d is some
    hundreds or more: it is as fast as Fastfood and has the smaller error.

    Parameters
    ----------
    n_components, bandwidth, bandwidth_factor, random_state
        As in `FastfoodFeatures`.
    least_inputs : int, default 64
        Fewer inputs are padded with zeros to this number, which keeps the bias small. With 1,
        inputs are padded to a power of two only, as in the paper.

    Attributes
    ----------
    bandwidth_, block_size_, offset_
        As in `FastfoodFeatures`.
    signs_ : ndarray, shape (n_blocks, 3, block_size_)
        The diagonals D, the last one first.

    Notes
    -----
    The frequencies are not normal at finite d: lengths are constant, and there are finitely
    many directions. The error of the Gram matrix therefore does not go to zero with
    `n_components`. Measured with 16,384 features on normal inputs, relative errors of the Gram
    matrix were .0045 to .0060 with 1 to 32 inputs that are padded to 64, and .557, .259, .113,
    .040 and .018 with 1, 2, 3, 8 and 16 inputs that are not.

    References
    ----------
    F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice and S. Kumar, Orthogonal random
    features, NIPS 2016, section 4; K. Choromanski, M. Rowland and A. Weller, The
    unreasonable effectiveness of structured random orthogonal embeddings, NIPS 2017.

    Examples
    --------
    >>> map_ = StructuredOrthogonalFeatures(n_components=4, random_state=0)
    >>> map_.fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _: KW_ONLY
    least_inputs: int = integer(64, least=1)

    def _padded(self, n_features):
        return max(n_features, self.least_inputs)

    def _draw(self, rng, n_blocks, size, X):
        self.signs_ = like(rng.choice([-1.0, 1.0], size=(n_blocks, 3, size)), X)

    def _phases(self, inputs, block):
        for i in range(3):
            inputs = walsh_hadamard(inputs * _column(self.signs_[block, i, :], inputs))
        return inputs

    def _unit(self):
        # the factor of the product of three Hadamard matrices
        return self.bandwidth_ * self.block_size_


def _column(diagonal, inputs):
    return like(diagonal, inputs)[:, None]

"""Random binning: indicators of the cells of many random grids."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.utils import check_random_state

from kbench.parameters import check_choice, check_integer
from kbench_baselines._bandwidth import resolve_bandwidth
from kbench_baselines._base import BaselineMap


def bin_keys(X, pitch, shift, multipliers, salt=0):
    """64-bit keys for the cells of the rows in one grid, ndarray of uint64.

    Cells have the width `pitch` and begin at `shift`. With random odd numbers as
    `multipliers` (uint64), different cells get different keys up to a chance of
    about 2^-64. All three have shape (n_features,). Keys of several grids are
    independent with a random `salt` in each; without one, the cell at 0 has the same key
    in every grid.
    """
    cells = np.floor((X - shift) / pitch)
    # beyond this, floats do not represent every integer
    np.clip(cells, -(2.0**53), 2.0**53, out=cells)
    keys = cells.astype(np.int64).view(np.uint64) @ multipliers
    keys += np.uint64(salt)
    # low bits of such a sum depend on low bits of the cells only: mix them
    keys ^= keys >> np.uint64(33)
    keys *= np.uint64(0xFF51AFD7ED558CCD)
    keys ^= keys >> np.uint64(33)
    return keys


class RandomBinningFeatures(BaselineMap):
    """Random binning features of the Laplace kernel; sparse.

    Each of `n_grids` random grids contributes one non-zero per row: the cell
    that the row falls in. With pitches from the right distribution, the chance
    that two points share a cell is ``exp(-||x-z||_1 / bandwidth)``.

    Parameters
    ----------
    n_grids : int, default 100
        Number of grids, hence of non-zeros per row.
    columns : {"trained", "hashed"}, default "trained"
        "trained": one column per cell that a training row falls in; a row in
        another cell has no entry for that grid. "hashed": cells are hashed to
        `n_components` columns, with random signs that keep inner products
        unbiased.
    n_components : int, default 16384
        Number of columns where they are hashed.
    bandwidth : float or "median", default "median"
        Parameter of the kernel; "median" is the median Manhattan distance between
        training rows (of at most 500 of them).
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of grids and hashes.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    pitches_, shifts_ : ndarray, shape (n_grids, n_features)
        Width of the cells, and where they begin.
    cells_ : list of ndarray of uint64
        Sorted keys of the cells seen in training, one array per grid ("trained").

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines,
    NIPS 2007, algorithm 2; L. Wu, I. E. H. Yen, J. Chen and R. Yan, Revisiting
    random binning features, KDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> phi = RandomBinningFeatures(n_grids=50, random_state=0).fit_transform(X)
    >>> phi.format, phi.nnz / len(X)
    ('csr', 50.0)
    """

    _accept_sparse = False

    def __init__(
        self,
        n_grids=100,
        *,
        columns="trained",
        n_components=16_384,
        bandwidth="median",
        bandwidth_factor=1.0,
        random_state=None,
    ):
        self.n_grids = n_grids
        self.columns = columns
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.random_state = random_state

    def _fit(self, X):
        check_integer(self.n_grids, "n_grids", least=1)
        check_integer(self.n_components, "n_components", least=1)
        check_choice(self.columns, "columns", ("trained", "hashed"))
        rng = check_random_state(self.random_state)
        self.bandwidth_ = resolve_bandwidth(self, X, "l1")
        shape = (self.n_grids, X.shape[1])
        # the density of pitches is d k''(d) with k(d) = exp(-d / bandwidth)
        self.pitches_ = rng.gamma(2.0, self.bandwidth_, size=shape)
        self.shifts_ = self.pitches_ * rng.uniform(size=shape)
        half = rng.randint(2**63, size=shape, dtype=np.uint64)
        self.multipliers_ = half * np.uint64(2) + np.uint64(1)
        if self.columns == "hashed":
            self.salts_ = rng.randint(2**64, size=self.n_grids, dtype=np.uint64)
            return self.n_components
        self.cells_ = [np.unique(self._keys(X, grid)) for grid in range(self.n_grids)]
        return sum(map(len, self.cells_))

    def _keys(self, X, grid, salt=0):
        drawn = self.pitches_[grid], self.shifts_[grid], self.multipliers_[grid]
        return bin_keys(X, *drawn, salt)

    def _transform(self, X):
        place = np.empty((X.shape[0], self.n_grids), dtype=np.int64)
        value = np.full(place.shape, 1 / np.sqrt(self.n_grids), dtype=X.dtype)
        first = 0
        for grid in range(self.n_grids):
            if self.columns == "trained":
                keys = self._keys(X, grid)
                cells = self.cells_[grid]
                position = np.minimum(np.searchsorted(cells, keys), len(cells) - 1)
                place[:, grid] = first + position
                value[cells[position] != keys, grid] = 0.0
                first += len(cells)
            else:
                keys = self._keys(X, grid, self.salts_[grid])
                place[:, grid] = keys % np.uint64(self.n_components)
                value[keys >> np.uint64(63) == 1, grid] *= -1
        indptr = np.arange(X.shape[0] + 1) * self.n_grids
        features = sp.csr_matrix(
            (value.ravel(), place.ravel(), indptr), shape=(X.shape[0], self._n_features_out)
        )
        features.sum_duplicates()
        features.eliminate_zeros()
        return features


def binning_gram(fitted, X, Y):
    """Gram matrix exp(-||x-z||_1 / bandwidth) of a fitted `RandomBinningFeatures`."""
    return laplacian_kernel(X, Y, gamma=1 / fitted.bandwidth_)

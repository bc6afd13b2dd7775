"""Indicators of the cells of random partitions: grids, Mondrian processes and trees."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_random_state

from kbench.estimators import ExplicitMap, column_ends, row_blocks
from kbench.parameters import choice, integer
from kbench_baselines._base import BandwidthMap, resolve_bandwidth


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


@dataclass(eq=False, repr=False)
class RandomBinningFeatures(BandwidthMap):
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

    n_grids: int = integer(100, least=1)
    _: KW_ONLY
    columns: str = choice("trained", ("trained", "hashed"))
    n_components: int = integer(16_384, least=1)

    def _fit(self, X):
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
        self.cells_ = [np.empty(0, dtype=np.uint64)] * self.n_grids
        for part in row_blocks(X):
            self.cells_ = [
                np.union1d(cells, self._keys(part, grid)) for grid, cells in enumerate(self.cells_)
            ]
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
    """Gram matrix exp(-||x-z||_1 / bandwidth) of a fitted map."""
    return laplacian_kernel(X, Y, gamma=1 / fitted.bandwidth_)


NO_CELL = -1


@dataclass(frozen=True)
class MondrianTree:
    """A tree of cuts. Node i has the children `below[i]` and `above[i]`; leaves have feature -1.

    A child -1 is a cell without a training row. `column` numbers the leaves; it is -1 at cuts.
    """

    feature: np.ndarray
    threshold: np.ndarray
    below: np.ndarray
    above: np.ndarray
    column: np.ndarray

    def columns(self, X):
        """Return the number of the leaf of each row, or -1 in a cell without training rows."""
        node = np.zeros(len(X), dtype=np.intp)
        active = np.flatnonzero(self.feature[node] >= 0)
        while len(active):
            at = node[active]
            values = X[active, self.feature[at]]
            node[active] = np.where(values > self.threshold[at], self.above[at], self.below[at])
            active = active[node[active] != NO_CELL]
            active = active[self.feature[node[active]] >= 0]
        return np.where(node == NO_CELL, NO_CELL, self.column[node])


def grow_mondrian(X, low, high, lifetime, rng):
    """Draw a Mondrian process on a box up to a lifetime, in the cells that have rows of `X`.

    Roy and Teh (2009); Balog et al. (2016). A cell lives for an exponential time with
    the sum of its side lengths as rate. It is then cut at a uniform place across a side that is
    chosen in proportion to its length. All cells of a level are drawn together.
    """
    features, thresholds, children = [], [], []
    low, high = low[None], high[None]
    time = np.zeros(1)
    cell = np.zeros(len(X), dtype=np.intp)  # place in the level; -1 once in a leaf
    n_nodes = 1
    while len(time):
        sides = high - low
        totals = sides.sum(axis=1)
        with np.errstate(divide="ignore"):
            time = time + rng.exponential(size=len(time)) / totals
        is_cut = time < lifetime
        cut = np.flatnonzero(is_cut)
        ends = np.cumsum(sides[cut], axis=1)
        place = rng.uniform(size=len(cut)) * ends[:, -1] if len(cut) else np.empty(0)
        chosen = np.minimum((ends <= place[:, None]).sum(axis=1), X.shape[1] - 1)
        threshold = rng.uniform(low[cut, chosen], high[cut, chosen])
        feature = np.full(len(time), NO_CELL)
        feature[cut] = chosen
        at = np.zeros(len(time))
        at[cut] = threshold
        cell[~is_cut[cell]] = NO_CELL
        start = 0
        for part in row_blocks(X) if len(cut) else ():
            own = cell[start : start + len(part)]
            inside = np.flatnonzero(own != NO_CELL)
            parent = own[inside]
            own[inside] = 2 * parent + (part[inside, feature[parent]] > at[parent])
            start += len(part)
        # children with training rows, in the order of their parents
        kept = np.flatnonzero(np.bincount(cell + 1, minlength=1)[1:])
        child = np.full(2 * len(time), NO_CELL)
        child[kept] = n_nodes + np.arange(len(kept))
        cell = np.append(child, n_nodes + NO_CELL)[cell] - n_nodes
        features.append(feature)
        thresholds.append(at)
        children.append(child.reshape(-1, 2))
        n_nodes += len(kept)
        parents, is_above = kept // 2, kept % 2 == 1
        low, high, time = low[parents], high[parents], time[parents]
        row = np.arange(len(kept))
        low[row[is_above], feature[parents[is_above]]] = at[parents[is_above]]
        high[row[~is_above], feature[parents[~is_above]]] = at[parents[~is_above]]
    feature, child = np.concatenate(features), np.concatenate(children)
    is_leaf = feature == NO_CELL
    column = np.where(is_leaf, np.cumsum(is_leaf) - 1, NO_CELL)
    return MondrianTree(feature, np.concatenate(thresholds), child[:, 0], child[:, 1], column)


@dataclass(eq=False, repr=False)
class MondrianFeatures(BandwidthMap):
    """Mondrian features: cells of random axis-aligned partitions; sparse.

    Each of `n_trees` Mondrian processes cuts the box of the training inputs, and contributes one
    non-zero per row: the cell that the row falls in. Two rows share a cell with the chance
    ``exp(-||x-z||_1 / bandwidth)``. Use it if `RandomBinningFeatures` is the candidate and
    several bandwidths are to be compared: cuts of a wide bandwidth remain cuts of the narrower
    ones. Both maps have the same kernel and, at equal numbers of trees and grids, the
    same variance.

    Parameters
    ----------
    n_trees : int, default 100
        Number of partitions, hence of non-zeros per row.
    bandwidth : float or "median", default "median"
        Parameter of the kernel; "median" is the median Manhattan distance between
        training rows (of at most 500 of them). The lifetime of a process is 1 / bandwidth.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of the cuts.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    trees_ : list of MondrianTree
        The partitions.

    Notes
    -----
    There is one column for each cell that a training row falls in. A row in another cell has
    no entry for that partition. Outside of the box of the training inputs there are no cuts,
    and inner products are above the kernel.

    For rows of the box the variance of an inner product is ``k (1 - k) / n_trees``.

    References
    ----------
    M. Balog, B. Lakshminarayanan, Z. Ghahramani, D. M. Roy and Y. W. Teh, The Mondrian kernel,
    UAI 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> phi = MondrianFeatures(n_trees=50, random_state=0).fit_transform(X)
    >>> phi.format, phi.nnz / len(X)
    ('csr', 50.0)
    """

    _accept_sparse = False
    _whole_values = 2**26
    """Size of training data up to which they are one matrix: passes take ten times as long."""

    n_trees: int = integer(100, least=1)

    def scale_sizes(self, row_share):
        """Scale the size of what is one matrix, to predict the cost of all rows from some."""
        self._whole_values = int(row_share * self._whole_values)

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        X = X[:] if X.shape[0] * X.shape[1] <= self._whole_values else X
        self.bandwidth_ = resolve_bandwidth(self, X, "l1")
        low, high = column_ends(X)
        lifetime = 1 / self.bandwidth_
        self.trees_ = [grow_mondrian(X, low, high, lifetime, rng) for _ in range(self.n_trees)]
        return sum(int(tree.column.max()) + 1 for tree in self.trees_)

    def _transform(self, X):
        columns = np.empty((len(X), self.n_trees), dtype=np.int64)
        first = 0
        for place, tree in enumerate(self.trees_):
            found = tree.columns(X)
            columns[:, place] = np.where(found == NO_CELL, NO_CELL, found + first)
            first += int(tree.column.max()) + 1
        return indicators(columns, self._n_features_out, X.dtype)


def indicators(columns, n_columns, dtype):
    """CSR matrix with 1 / sqrt(k) in the k columns of each row; -1 stands for none."""
    present = columns != NO_CELL
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    values = np.full(int(indptr[-1]), columns.shape[1] ** -0.5, dtype=dtype)
    return sp.csr_matrix((values, columns[present], indptr), shape=(len(columns), n_columns))


@dataclass(eq=False, repr=False)
class RandomTreesFeatures(ExplicitMap):
    """Leaves of totally random trees: scikit-learn's RandomTreesEmbedding; sparse.

    Each tree splits its training rows at random places of random inputs, and contributes the leaf
    that a row falls in. Inner products are the share of trees in which two rows have the same
    leaf: the features are scikit-learn's, divided by ``sqrt(n_trees)``. Use it if inputs have
    different scales, many of them matter little, or there are outliers: cells follow the data, and
    there is no bandwidth. The kernel has no closed form.

    Parameters
    ----------
    n_trees : int, default 100
        Number of trees, hence of non-zeros per row.
    max_depth : int, default 5
        Depth of the trees, hence at most ``2^max_depth`` columns each.
    min_samples_leaf : int, default 1
        Smallest number of training rows in a leaf.
    random_state : int, RandomState or None, default None
        Seed of the splits.

    Attributes
    ----------
    embedding_ : RandomTreesEmbedding
        The fitted map of scikit-learn.

    Notes
    -----
    Inputs are compared in float32, as in all trees of scikit-learn.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, Extremely randomized trees, Machine Learning 63 (2006);
    F. Moosmann, B. Triggs and F. Jurie, Fast discriminative visual codebooks using
    randomized clustering forests, NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> phi = RandomTreesFeatures(n_trees=50, random_state=0).fit_transform(X)
    >>> phi.format, phi.nnz / len(X)
    ('csr', 50.0)
    """

    takes_lazy_rows = True

    n_trees: int = integer(100, least=1)
    _: KW_ONLY
    max_depth: int = integer(5, least=1)
    min_samples_leaf: int = integer(1, least=1)
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.embedding_ = RandomTreesEmbedding(
            self.n_trees,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=rng,
        )
        # as its `fit`, which also embeds all rows
        rows, targets = _all_single(X), rng.uniform(size=X.shape[0])
        super(RandomTreesEmbedding, self.embedding_).fit(rows, targets)
        lefts = (each.tree_.children_left for each in self.embedding_.estimators_)
        leaves = [np.flatnonzero(left < 0) for left in lefts]
        encoder = OneHotEncoder(categories=leaves).fit([[each[0] for each in leaves]])
        self.embedding_.one_hot_encoder_ = encoder
        return sum(map(len, leaves))

    def _transform(self, X):
        features = self.embedding_.transform(_single(X)).astype(X.dtype)
        features *= X.dtype.type(self.n_trees**-0.5)
        return features.tocsr()


def _all_single(X):
    """Return training data in float32 as one matrix."""
    parts = [_single(part) for part in row_blocks(X)]
    stack = sp.vstack if sp.issparse(parts[0]) else np.concatenate
    return stack(parts) if parts[1:] else parts[0]


def _single(X):
    """Return the inputs in float32, with what is too large at its ends."""
    if X.dtype == np.float32:
        return X
    limit = float(np.finfo(np.float32).max)
    if hasattr(X, "tocsr"):
        X = X.copy()
        np.clip(X.data, -limit, limit, out=X.data)
        return X.astype(np.float32)
    return np.clip(X, -limit, limit).astype(np.float32)

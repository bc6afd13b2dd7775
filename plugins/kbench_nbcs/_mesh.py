"""`SimplicialMeshMap`, a scikit-learn transformer."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.sparsefuncs import mean_variance_axis

from kbench.estimators import is_lazy, row_blocks
from kbench.parameters import choice, integer, number
from kbench_nbcs import _mesh_cells
from kbench_nbcs._base import CoordinateMap, dense, index_type, random_frame

try:
    from kbench_nbcs import _mesh_compiled as kernels
except (ImportError, RuntimeError):  # no numba, or no folder it may cache in
    kernels = _mesh_cells

# Values of a chunk of rows: they stay in cache, and are many enough for the table
# of a mesh's vertices to be worth fetching there.
CHUNK_VALUES = 2**16

# Keys of vertices that are collected before equal ones are counted.
BATCH_KEYS = 2**21

# "auto" takes up to this many dimensions as they are, and projects to it.
AUTO_DIMENSION = 16

# Of the integral on either side of its kink, where the Gram matrix needs many.
N_NODES = 16

# A column whose standard deviation is this small beside its mean is constant.
CONSTANT = 1e-12


def vertex_tables(meshes: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Build a hash table of the known vertices of each mesh from its sorted keys.

    A key's upper bits give its slot. Keys are in ascending order, each in the first
    free slot from there, and free slots count as above all keys: a search goes on
    while it sees smaller ones. Columns are numbered mesh by mesh.

    Returns the keys in their slots, of all meshes; the columns of the vertices
    there; the first slot of each mesh; and the shift that makes a slot of a key
    (``key >> shift``).
    """
    all_slots, all_columns, shifts, n_vertices = [], [], [], 0
    for keys in meshes:
        # two to four slots a key: most searches end with the first look
        bits = len(keys).bit_length() + 1
        number = np.arange(len(keys))
        place = (keys >> np.uint64(63 - bits)).view(np.int64) - number
        place = np.maximum.accumulate(place) + number
        slots = np.full(2**bits + len(keys) + 1, _mesh_cells.NO_KEY)
        columns = np.zeros(len(slots), dtype=np.int32)
        slots[place], columns[place] = keys, n_vertices + number
        end = max(2**bits, int(place[-1]) + 1 if len(keys) else 0) + 1
        all_slots.append(slots[:end])
        all_columns.append(columns[:end])
        shifts.append(63 - bits)
        n_vertices += len(keys)
    begin = np.cumsum([0, *(len(slots) for slots in all_slots)])[:-1]
    return np.concatenate(all_slots), np.concatenate(all_columns), begin, np.array(shifts)


def locate(u, multipliers):
    """Barycentric coordinates and vertices of points `u` (n, p) in the triangulated grid.

    `multipliers` are odd random numbers, uint64 of shape (p,). Returns weights,
    int64 of shape (n, p + 1) in units of 2**-47, which sum to 2**47, and keys,
    uint64 of that shape: hashes of the vertices, of which two are equal with a
    chance of about 2**-63.
    """
    n, p = u.shape
    weights = np.empty((n, p + 1), dtype=np.int64)
    keys = np.empty((n, p + 1), dtype=np.uint64)
    kernels.locate(np.ascontiguousarray(u.T), multipliers, weights, keys)
    return weights, keys


def hash_cells(keys, salt, n_columns):
    """Columns and random signs of vertices by their keys, as independent as the salts of meshes.

    The vertex at 0 has the key 0 in every mesh: without a salt, all meshes would share its column.
    """
    keys = (keys + salt) * _mesh_cells.MIXER
    keys ^= keys >> np.uint64(32)
    keys *= _mesh_cells.MIXER
    columns = (keys >> np.uint64(1)) % np.uint64(n_columns)
    return columns.astype(np.intp), np.where(keys >> np.uint64(63), -1.0, 1.0)


def count_cells(batches):
    """Distinct keys in ascending order, and their counts over all batches."""
    total = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    parts, size = [], 0
    for batch in batches:
        parts.append(np.unique(batch, return_counts=True))
        size += len(parts[-1][0])
        if size > max(BATCH_KEYS, len(total[0])):
            total, parts, size = _merge([total, *parts]), [], 0
    return _merge([total, *parts])


def _merge(parts):
    keys = np.concatenate([keys for keys, _ in parts])
    counts = np.concatenate([counts for _, counts in parts])
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    new = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[new], np.add.reduceat(counts, new) if len(new) else counts


@dataclass(eq=False, repr=False)
class SimplicialMeshMap(CoordinateMap):
    """Barycentric coordinates on randomly rotated and shifted regular meshes.

    The cells of a grid are cut into simplices along their diagonals
    (Freudenthal, Kuhn), and a row is described by its barycentric coordinates in
    the one that contains it: p + 1 non-negative values with sum 1, one column
    per vertex that the training rows have met. A linear model on them is
    continuous and piecewise linear in the inputs. Finding the simplex is one
    sort of p numbers.

    Parameters
    ----------
    n_roots : int, default 16
        Number of meshes, each with its own rotation and shift, whose
        coordinates are concatenated. The meshes of a smaller number are the
        first of a larger one.
    pitch : float, default 1.5
        Edge of the grid's cells, in units of ``sqrt(p)`` times the unit that
        `scaling` sets. Divided by 2 for each further level.
    n_levels : int, default 1
        Number of meshes per root, of pitch h, h/2, h/4, ..., with the same
        rotation and origin. A finer level refines all coarser ones; a row
        whose fine vertices have no column may still have coarse ones.
    projection_dim : int, "auto" or None, default "auto"
        The p dimensions of a mesh: that many random orthogonal directions, all
        of the columns (None), or at most 16 ("auto"). A row has p + 1
        non-zeros per mesh.
    rotate : bool, default True
        Rotate each root at random. False takes the columns as axes, or, with a
        projection, p of them drawn for each root.
    scaling : {"standard", "common", "none"}, default "standard"
        Unit of length: the standard deviation of each column, one for all
        columns (the root of their mean variance), or 1.
    columns : {"seen", "hashed"}, default "seen"
        One column per vertex of a simplex that contains a training row; or
        `n_components` columns, to which vertices are hashed with random signs that
        keep inner products unbiased (with ``scaling="none"``, nothing is then learnt
        from data).
    min_count : int, default 1
        Training rows that must meet a vertex to give it a column ("seen").
    n_components : int, default 65536
        Number of columns ("hashed").
    dtype : {"float64", "float32"}, default "float64"
        Type of the output; computations are in double precision.
    random_state : int, RandomState or None, default None
        Seed of rotations, shifts and hashes.

    Attributes
    ----------
    n_vertices_ : int
        Number of columns, root by root and level by level.
    dimension_ : int
        Dimension p of the meshes. Columns that are constant in training are
        ignored and do not count.
    pitch_ : float
        Edge of the coarsest cells in the unit of `scaling`.
    scale_ : float
        Factor of the coordinates, ``sqrt((p + 2) / (2 n_roots n_levels))``: rows
        of a known region have a mean squared norm of 1. The coordinates
        themselves are ``Z / scale_``, which sum to 1 per mesh.

    Raises
    ------
    ValueError
        A parameter has a value that is not allowed, or `min_count` leaves no
        vertex.

    Notes
    -----
    *Kernel.* Over shifts and rotations the inner product of two rows is
    expected to be ``rotated_mesh_kernel(distance / pitch_)``, close to
    Wendland's C^2 function and a Matérn kernel with nu = 3/2: random binning's
    kernel at a fixed pitch, smoothed along the diagonal. It falls to 1/2 at 1.4
    (p = 8) to 1.7 (p = 64) times ``pitch_ / sqrt(p)``, so that `pitch` means
    about the same distance for every p.

    *Unknown vertices.* In training every row's coordinates sum to 1 per mesh
    (with ``min_count=1``). A new row keeps those on known vertices only; the
    share is the metric `coverage`. A row far from all training rows is 0.

    *Defaults* were chosen on segment, vowel, glass, ionosphere, diabetes and
    semeion: with ridge regression, its alpha chosen on the test sets, mean
    accuracies over three splits were 0.845 (8 roots of pitch 1), 0.858 (16, 1),
    0.863 (8, 1.5) and 0.872 (16, 1.5); the gain of 16 at 1.5 is nearly all semeion's.

    *Levels.* Each vertex of a finer level is one of the coarser or the midpoint
    of one of its edges, so the systems are nested and Theorem 1 of Gottlieb et
    al. holds with beta = (1/2, 1/2).

    *Cost.* Per row and root one product with an (n_features, p) matrix, one sort
    of p numbers and p + 1 searches in a table. The number of columns can exceed
    that of the training rows by far; report them in addition to the non-zeros. numba is
    used where it is installed; results are the same without it.

    *Credit.* The parts have been published: the triangulation (Freudenthal 1942, Kuhn
    1960), its use in learning (Davies 1996; Munos and Moore 1998; lattice
    regression, Garcia and Gupta 2009), the permutohedral lattice (Adams et al.
    2010) and Gaussian processes on it (Kapoor et al. 2021), tile coding
    (Albus 1975), random binning (Rahimi and Recht 2007; Wu et al. 2016) and its
    smooth form (Kapralov et al. 2020), box splines (de Boor et al. 1993).

    References
    ----------
    L.-A. Gottlieb, E. Kaufman, A. Kontorovich, G. Nivasch, O. Pele, "Nested
    barycentric coordinate system as an explicit feature map", sections 2 and 6.

    H. W. Kuhn, "Some combinatorial lemmas in topology", IBM Journal 4, 1960.

    S. Davies, "Multidimensional triangulation and interpolation for
    reinforcement learning", NIPS 9, 1996.

    A. Rahimi and B. Recht, "Random features for large-scale kernel machines",
    NIPS 20, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from kbench_nbcs import SimplicialMeshMap
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> mesh = SimplicialMeshMap(n_roots=2, random_state=0).fit(X)
    >>> Z = mesh.transform(X)
    >>> Z.shape[1] == mesh.n_vertices_, Z.nnz == 100 * 2 * 4
    (True, True)
    >>> np.allclose(Z.sum(axis=1) / mesh.scale_, 2)
    True
    """

    n_roots: int = integer(16, least=1)
    _: KW_ONLY
    pitch: float = number(1.5, above=0)
    n_levels: int = integer(1, least=1)
    projection_dim: int | str | None = integer("auto", least=1, otherwise=("auto", None))
    rotate: bool = True
    scaling: str = choice("standard", ("standard", "common", "none"))
    columns: str = choice("seen", ("seen", "hashed"))
    min_count: int = integer(1, least=1)
    n_components: int = integer(65_536, least=1)
    dtype: str = "float64"
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X, y):
        X = self._validated(X)
        self._place_meshes(X, check_random_state(self.random_state))
        if self.columns == "hashed":
            self._tables = None
            self.n_vertices_ = self.n_components
        else:
            self._list_vertices(X)

    def _transform(self, X):
        X = self._validated(X, reset=False)
        n, per_row = X.shape[0], self.n_roots * self.n_levels * (self.dimension_ + 1)
        integer = index_type(n * per_row)
        data = np.empty(n * per_row, dtype=self.dtype)
        indices = np.empty(n * per_row, dtype=integer)
        indptr = np.zeros(n + 1, dtype=integer)
        unit, stop, buffer = self.scale_ * _mesh_cells.UNIT, 0, None
        for rows, part in self._chunks(X):
            n_part = part.shape[0]
            end = stop + n_part * per_row
            values = data[stop:end].reshape(n_part, per_row)
            places = indices[stop:end].reshape(n_part, per_row)
            if buffer is None or n_part < buffer.shape[1]:
                buffer = np.empty((self.dimension_, n_part))
            for root in range(self.n_roots):
                u = self._coordinates(part, root, buffer)
                for level in range(self.n_levels):
                    self._embed(u, root * self.n_levels + level, unit, values, places)
            ends = indptr[rows.start + 1 : rows.stop + 1]
            stop = kernels.compact(data[:end], indices[:end], stop, ends)
        data.resize(stop, refcheck=False)
        indices.resize(stop, refcheck=False)
        Z = sparse.csr_matrix((data, indices, indptr), shape=(n, self.n_vertices_), copy=False)
        if self._tables is None:
            Z.sum_duplicates()  # two vertices of a row may have hashed to one column
        return Z

    def _gradient(self, X, coef):
        gradients = np.zeros((len(coef), *X.shape))
        for rows, part in self._chunks(X):
            for root in range(self.n_roots):
                u = self._coordinates(part, root)
                for level in range(self.n_levels):
                    mesh, factor = root * self.n_levels + level, 2.0**level
                    slopes = self._slopes(u * factor, mesh, coef)
                    gradients[:, rows] += (self.scale_ * factor) * slopes @ self._frames[root].T
        return gradients

    def _slopes(self, u, mesh, coef):
        """Gradients of functions of one mesh at its points `u`, (p, n): (n_outputs, n, p)."""
        _weights, keys = locate(u.T, self._multipliers[mesh])
        columns, signs = self._columns(keys, mesh)
        values = signs * coef[:, columns]
        # from corner to corner, coordinates fall by 1 in ascending order of their fractions
        order = np.argsort(u - np.floor(u), axis=0, kind="stable").T
        slopes = np.empty((len(coef), *order.shape))
        for each, value in zip(slopes, values, strict=True):
            np.put_along_axis(each, order, value[:, :-1] - value[:, 1:], axis=1)
        return slopes

    def _columns(self, keys, mesh):
        """Columns of vertices of one mesh, and signs of these, 0 for unknown vertices."""
        if self._tables is None:
            return hash_cells(keys, self._salts[mesh], self.n_components)
        slots, slot_columns, begin, shift = self._tables
        columns = np.empty(keys.shape, dtype=np.int32)
        _mesh_cells.find(keys, slots, slot_columns, begin[mesh], shift[mesh], columns)
        return columns, np.where(columns < 0, 0.0, 1.0)

    def _place_meshes(self, X, random_state):
        self.center_, deviation = _moments(X)
        varies = deviation > 0
        if self.scaling == "standard":
            unit = deviation
        elif self.scaling == "common":
            unit = np.full_like(
                deviation, np.sqrt(np.mean(deviation[varies] ** 2) if varies.any() else 1.0)
            )
        else:
            unit = np.ones_like(deviation)
        active = np.flatnonzero(varies)
        d = max(1, len(active))
        p = AUTO_DIMENSION if self.projection_dim == "auto" else self.projection_dim
        p = d if p is None else min(p, d)
        if p > _mesh_cells.MAX_DIMENSION:
            raise ValueError(
                f"projection_dim must give meshes of at most {_mesh_cells.MAX_DIMENSION} "
                f"dimensions, got {self.projection_dim!r} for {p}"
            )
        self.dimension_ = p
        self.pitch_ = self.pitch * np.sqrt(p)
        self.scale_ = np.sqrt((p + 2) / (2 * self.n_roots * self.n_levels))
        self.unit_ = np.where(varies, unit, np.inf)
        frames, shifts, multipliers = [], [], []
        for _ in range(self.n_roots):
            if self.rotate:
                frame = random_frame(d, p, random_state)
            else:
                frame = np.eye(d)[:, random_state.permutation(d)[:p]]
            matrix = np.zeros((X.shape[1], p))
            if len(active):
                matrix[active] = frame / (self.pitch_ * unit[active, None])
            frames.append(matrix)  # from centred inputs to units of the pitch
            # uniform in [0, 1): where the mesh begins
            shifts.append(random_state.uniform(size=p))
            for _ in range(self.n_levels):
                odd = random_state.randint(2**63, size=p, dtype=np.uint64) * np.uint64(2)
                multipliers.append(odd + np.uint64(1))
        self._frames = np.array(frames)
        self._shifts = np.array(shifts)
        self._multipliers = np.array(multipliers)
        n_meshes = self.n_roots * self.n_levels
        self._salts = random_state.randint(2**64, size=n_meshes, dtype=np.uint64)

    def _list_vertices(self, X):
        meshes = []
        for mesh in range(self.n_roots * self.n_levels):
            keys, counts = count_cells(self._keys(X, mesh))
            meshes.append(keys[counts >= self.min_count])
        n_vertices = sum(map(len, meshes))
        if not n_vertices:
            raise ValueError(
                f"min_count={self.min_count} leaves no vertex: none is met by that many of the "
                f"{X.shape[0]} rows."
            )
        if n_vertices > np.iinfo(np.int32).max:
            raise ValueError(
                f"n_roots={self.n_roots} meshes have {n_vertices} vertices, more than 2**31 - 1; "
                "use fewer roots, a larger pitch or min_count, or columns='hashed'."
            )
        self._tables = vertex_tables(meshes)
        self.n_vertices_ = n_vertices

    def _keys(self, X, mesh):
        root, level = divmod(mesh, self.n_levels)
        for _, part in self._chunks(X, BATCH_KEYS):
            u = self._coordinates(part, root)
            u *= 2.0**level
            yield locate(u.T, self._multipliers[mesh])[1]

    def _chunks(self, X, values=CHUNK_VALUES):
        """Yield ``(rows, part)`` of few rows at a time; dense parts are centred."""
        step = max(64, values // max(1 if sparse.issparse(X) else X.shape[1], self.dimension_ + 1))
        for start in range(0, X.shape[0], step):
            part = X[start : start + step]
            rows = slice(start, start + part.shape[0])
            yield rows, part if sparse.issparse(part) else part - self.center_

    def _coordinates(self, part, root, out=None):
        """Points in the coordinates of a root: (p, n)."""
        frame, shift = self._frames[root], self._shifts[root]
        if sparse.issparse(part):
            u = np.ascontiguousarray((part @ frame).T)
            shift = shift - self.center_ @ frame
        else:
            u = np.matmul(frame.T, part.T, out=out)
        u += shift[:, None]
        return u

    def _embed(self, u, mesh, unit, values, places):
        """Write one mesh's coordinates and columns."""
        multipliers, factor = self._multipliers[mesh], 2.0 ** (mesh % self.n_levels)
        if self._tables is not None:
            kernels.embed(u, factor, multipliers, self._tables, mesh, unit, values, places)
            return
        weights, keys = locate(u.T * factor, multipliers)
        block = slice(mesh * keys.shape[1], (mesh + 1) * keys.shape[1])
        columns, signs = hash_cells(keys, self._salts[mesh], self.n_components)
        np.multiply(weights, unit * signs, out=values[:, block], casting="same_kind")
        places[:, block] = columns


def _moments(X):
    """Means and standard deviations of the columns; the latter 0 where they are constant."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
        mean = mean.astype(np.float64)
    else:
        if is_lazy(X):
            mean = sum(dense(part).sum(axis=0) for part in row_blocks(X)) / len(X)
        else:
            mean = X.mean(axis=0, dtype=np.float64)
        variance = np.zeros(X.shape[1])
        step = max(1, CHUNK_VALUES // X.shape[1])
        for start in range(0, len(X), step):
            variance += ((dense(X[start : start + step]) - mean) ** 2).sum(axis=0)
        variance /= len(X)
    deviation = np.sqrt(variance.astype(np.float64))
    deviation[deviation <= CONSTANT * np.abs(mean)] = 0.0
    return mean, deviation


def mesh_gram(fitted, X, Y):
    """Gram matrix (n, m) that a fitted map approximates: the mean over shifts and rotations."""
    X, Y = (np.asarray(dense(A)) / fitted.unit_ for A in (X, Y))
    X, Y = (A[:, np.isfinite(fitted.unit_)] / fitted.pitch_ for A in (X, Y))
    d, p, levels = max(1, X.shape[1]), fitted.dimension_, range(fitted.n_levels)
    if fitted.rotate:
        distance = euclidean_distances(X, Y) if X.shape[1] else np.zeros((len(X), len(Y)))
        return np.mean(
            [_mesh_cells.rotated_mesh_kernel(distance * 2.0**k, d, p) for k in levels], axis=0
        )
    gram = np.zeros((len(X), len(Y)))
    # the axes of an unrotated mesh are columns: which, and of how many roots
    axes = fitted._frames[:, np.isfinite(fitted.unit_)].any(axis=2)
    axes, counts = np.unique(axes, axis=0, return_counts=True)
    for chosen, count in zip(axes, counts, strict=True):
        for row, x in enumerate(X[:, chosen]):
            for k in levels:
                gram[row] += count * _mesh_cells.mesh_kernel((Y[:, chosen] - x) * 2.0**k, N_NODES)
    return gram / (fitted.n_roots * fitted.n_levels)


def metrics(fitted, X, y):
    """Return the ``coverage`` of a test set by vertices that were seen in training.

    It is the mean kept share of the coordinates, in [0, 1]; hashed columns keep all.
    """
    if fitted.columns == "hashed":
        return {"coverage": 1.0}
    total = fitted.transform(X).sum() / fitted.scale_
    return {"coverage": float(total) / max(1, X.shape[0] * fitted.n_roots * fitted.n_levels)}

"""Points in the Freudenthal-Kuhn triangulation of the integer grid, in numpy.

The simplex of a point ``u`` has the vertices ``v_0, ..., v_p``: the corner
``floor(u) + (1, ..., 1)`` of its cell, from which the unit vectors are taken
away in ascending order of the fractional parts; its barycentric coordinates are
the successive differences of these, ``f_(1), f_(2) - f_(1), ..., 1 - f_(p)``.

Fractional parts are integers of 47 bits here. Differences of integers are
exact, so that coordinates sum to 1 to the last bit; and with the number of the
coordinate in the lower bits, one sort of integers gives values and order, and
leaves no ties.

``_mesh_compiled`` has the same functions for numba, with the same bits. Points
are columns here: ``u[j]`` is one coordinate of all of them.
"""

from functools import lru_cache

import numpy as np

FRACTION_BITS = 47
INDEX_BITS = 16
UNIT = 2.0**-FRACTION_BITS
MAX_DIMENSION = 2**INDEX_BITS

# From here on a double has no fractional part.
FAR = 2.0**52

MIXER = np.uint64(0xFF51AFD7ED558CCD)
_HALF, _ONE = np.uint64(32), np.uint64(1)
NO_KEY = np.uint64(2**64 - 1)


def locate(u, multipliers, weights, keys):
    """Write barycentric coordinates and vertices of points `u`, float64 of shape (p, n).

    `weights`, int64 of shape (n, p + 1), get the coordinates in units of 2**-47;
    `keys`, uint64 of that shape, the vertices. The key of a vertex is its inner
    product with `multipliers` (p odd random numbers, uint64) modulo 2**64, mixed so
    that its upper bits depend on all of them, and below 2**63.
    """
    p = len(u)
    u = np.minimum(np.maximum(u.T, -FAR, order="C"), FAR)
    below = np.floor(u)
    u -= below
    u *= 2.0**FRACTION_BITS
    # a fraction that rounds to 1 is just below it
    np.minimum(u, 2.0**FRACTION_BITS - 1.0, out=u)
    packed = u.astype(np.int64)
    packed <<= INDEX_BITS
    packed |= np.arange(p)
    packed.sort(axis=1)
    below += 1.0
    np.matmul(below.astype(np.int64).view(np.uint64), multipliers, out=keys[:, 0])
    np.negative(multipliers[packed & (MAX_DIMENSION - 1)], out=keys[:, 1:])
    np.cumsum(keys, axis=1, out=keys)
    keys ^= keys >> _HALF
    keys *= MIXER
    keys >>= _ONE
    packed >>= INDEX_BITS
    weights[:, 0] = packed[:, 0]
    np.subtract(packed[:, 1:], packed[:, :-1], out=weights[:, 1:p])
    np.subtract(2**FRACTION_BITS, packed[:, p - 1], out=weights[:, p])


def find(keys, slots, slot_columns, begin, shift, columns):
    """Write the columns of vertices, -1 where a vertex has none.

    `keys` and `columns` have shape (n, p + 1); the other arguments are those of one
    mesh in ``vertex_tables``.
    """
    keys = keys.ravel()
    place = (keys >> np.uint64(shift)).view(np.int64) + begin
    seen = slots[place]
    behind = np.flatnonzero(seen < keys)
    while len(behind):
        place[behind] += 1
        seen[behind] = slots[place[behind]]
        behind = behind[seen[behind] < keys[behind]]
    columns[:] = np.where(seen == keys, slot_columns[place], np.int32(-1)).reshape(columns.shape)


def embed(u, factor, multipliers, tables, mesh, unit, data, indices):
    """Write coordinates of points in one mesh and their columns, -1 for unknown vertices.

    `u` (p, n) are points in the coordinates of the root; `factor`, a power of two,
    makes them coordinates of the mesh. `tables` are the known vertices
    (``vertex_tables``), `unit` is the value of one unit of the weights. The
    outputs `data` (float64 or float32) and `indices` (int32 or int64) have shape
    (n, n_meshes * (p + 1)); number `mesh` has the columns from ``mesh * (p + 1)``.
    """
    slots, slot_columns, begin, shift = tables
    width = len(u) + 1
    weights = np.empty((u.shape[1], width), dtype=np.int64)
    keys = np.empty(weights.shape, dtype=np.uint64)
    locate(u * factor, multipliers, weights, keys)
    block = slice(mesh * width, (mesh + 1) * width)
    np.multiply(weights, unit, out=data[:, block], casting="same_kind")
    find(keys, slots, slot_columns, begin[mesh], shift[mesh], indices[:, block])


def compact(data, indices, start, indptr):
    """Take out the entries whose index is negative, row by row, in place.

    The entries from position `start` to the end of `data` and `indices` belong to
    rows of equal length. `indptr` (n,) gets the end of each row; returns the last.
    """
    data, indices = data[start:], indices[start:]
    kept = indices >= 0
    np.cumsum(np.count_nonzero(kept.reshape(len(indptr), -1), axis=1), out=indptr)
    indptr += start
    stop = int(indptr[-1])
    if stop - start < len(data):
        data[: stop - start], indices[: stop - start] = data[kept], indices[kept]
    return stop


# Numbers that are worked on together: they stay in cache.
CHUNK_VALUES = 2**15

# Distances between which the mean over rotations is interpolated.
N_DISTANCES = 96


def mesh_kernel(delta, n_nodes=None):
    r"""Inner product of barycentric coordinates, expected over a uniform shift.

    For points ``x`` and ``x + delta`` in the Freudenthal-Kuhn triangulation of
    the unit grid with a uniformly random shift,

    .. math:: \kappa(\delta) = \frac{p + 2}{2} \int t(s) \prod_{j=1}^p
              t(\delta_j - s) \, ds, \qquad t(u) = \max(0, 1 - |u|),

    scaled such that :math:`\kappa(0) = 1`: a box spline, positive definite, zero
    where the ``delta_j`` and 0 are 2 or more apart.

    Parameters
    ----------
    delta : array-like of shape (..., p)
        Differences, in units of the pitch.
    n_nodes : int, optional
        Gauss-Legendre nodes on either side of the median of ``(0, delta)``, on
        which the integrand is nearly smooth. By default the integral is taken
        piece by piece between all ``delta_j``, exactly where p is at most 62.

    Returns
    -------
    ndarray of shape (...)

    Notes
    -----
    The hat functions of the triangulation are the box spline of the unit
    vectors and their sum (de Boor, Höllig and Riemenschneider, *Box Splines*,
    1993); its autocorrelation is the integral above. Averaged over rotations it
    is close to Wendland's C^2 function.

    Examples
    --------
    >>> import numpy as np
    >>> mesh_kernel(np.zeros((1, 3))).round(6)
    array([1.])
    >>> mesh_kernel([[0.5, 0.5], [0.5, -0.5], [1.5, -0.5]]).round(4)
    array([0.6562, 0.2708, 0.    ])
    """
    delta = np.asarray(delta, dtype=np.float64)
    p = delta.shape[-1]
    flat = delta.reshape(-1, p)
    centres = np.column_stack([np.zeros(len(flat)), flat])
    low, high = centres.max(axis=1) - 1.0, centres.min(axis=1) + 1.0
    live = np.flatnonzero(low < high)
    pieces = p + 2 if n_nodes is None else 2
    n_nodes = n_nodes or min((p + 3) // 2, 32)
    out = np.zeros(len(flat))
    step = max(1, CHUNK_VALUES // (pieces * n_nodes + p))
    for start in range(0, len(live), step):
        rows = live[start : start + step]
        inner = centres[rows]
        inner = np.sort(inner, axis=1) if pieces > 2 else np.median(inner, axis=1)[:, None]
        ends = np.column_stack([low[rows], inner, high[rows]])
        np.clip(ends, low[rows, None], high[rows, None], out=ends)
        out[rows] = _integral(centres[rows], ends, n_nodes)
    return (0.5 * (p + 2) * out).reshape(delta.shape[:-1])


def _integral(centres, ends, n_nodes):
    """Integrals of products of hats around `centres`, piece by piece between `ends`."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    length = np.diff(ends, axis=1)[:, :, None]
    s = ends[:, :-1, None] + 0.5 * length * (node + 1.0)
    product = 0.5 * length * weight
    hat = np.empty_like(s)
    for j in range(centres.shape[1]):
        np.subtract(s, centres[:, j, None, None], out=hat)
        np.abs(hat, out=hat)
        np.subtract(1.0, hat, out=hat)
        product *= hat
    return product.sum(axis=(1, 2))


def rotated_mesh_kernel(distance, d, p):
    """`mesh_kernel` averaged over rotations: a function of the distance.

    Parameters
    ----------
    distance : ndarray of float
        Distances in d dimensions, in units of the pitch.
    d, p : int
        The p coordinates of the mesh are an orthogonal projection of d.

    Returns
    -------
    ndarray of the shape of `distance`
        Interpolated between 96 distances, at which it is a mean over random
        directions, the same at each call; the standard error is below 0.01.

    Examples
    --------
    >>> import numpy as np
    >>> rotated_mesh_kernel(np.array([0.0, 0.5, 1.0, 6.0]), 4, 4).round(1)
    array([1. , 0.6, 0.1, 0. ])
    """
    return np.interp(distance, *_profile(d, p), right=0.0)


@lru_cache(maxsize=64)
def _profile(d, p):
    rng = np.random.default_rng(0)
    # in many dimensions all directions are alike, and each costs more
    n_directions = 64 + 4096 // p
    direction = rng.standard_normal((n_directions, p))
    rest = rng.chisquare(d - p, n_directions) if d > p else np.zeros(n_directions)
    direction /= np.sqrt((direction**2).sum(axis=1) + rest)[:, None]
    # zero from 2 sqrt(p) on where nothing is projected away; closer together
    # near 0, where the kernel is largest
    distance = 2.0 * np.sqrt(d) * np.linspace(0.0, 1.0, N_DISTANCES) ** 2
    n_nodes = None if p <= 4 else 12 + int(2 * np.sqrt(p))
    return distance, np.array([mesh_kernel(r * direction, n_nodes).mean() for r in distance])

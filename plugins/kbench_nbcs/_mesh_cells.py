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

from __future__ import annotations

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
    """Write the columns of vertices, -1 where a vertex is not known.

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

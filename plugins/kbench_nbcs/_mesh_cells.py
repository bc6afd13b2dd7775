"""Points in the Freudenthal-Kuhn triangulation of the integer grid, in numpy.

The simplex of a point ``u`` has the vertices ``v_0, ..., v_p``: the corner
``floor(u) + (1, ..., 1)`` of its cell, from which the unit vectors are taken
away in ascending order of the fractional parts; its barycentric coordinates are
the successive differences of these, ``f_(1), f_(2) - f_(1), ..., 1 - f_(p)``.

Fractional parts are integers of 47 bits here. Differences of integers are
exact, so that coordinates sum to 1 to the last bit; and with the number of the
coordinate in the lower bits, one sort of integers gives values and order, and
leaves no ties.

``_mesh_compiled`` has the same functions for numba, with the same bits.
"""

from __future__ import annotations

import numpy as np

FRACTION_BITS = 47
INDEX_BITS = 16
UNIT = 2.0**-FRACTION_BITS
MAX_DIMENSION = 2**INDEX_BITS

# From here on a double has no fractional part.
FAR = 2.0**52

_MIXER = np.uint64(0xFF51AFD7ED558CCD)
_HALF, _ONE = np.uint64(32), np.uint64(1)
NO_KEY = np.uint64(2**64 - 1)


def pack(u, multipliers, packed, corner):
    """Fractional parts with their numbers, and a key of the cell's upper corner.

    Parameters
    ----------
    u : ndarray of float64, shape (n, p)
    multipliers : ndarray of uint64, shape (p,)
        Odd random numbers; the key of a vertex is its inner product with them,
        modulo 2**64.
    packed : ndarray of int64, shape (n, p)
        Output: fraction (47 bits) and number of the coordinate (16 bits).
    corner : ndarray of uint64, shape (n,)
        Output: keys of ``floor(u) + 1``.
    """
    u = np.minimum(np.maximum(u, -FAR), FAR)
    below = np.floor(u)
    u -= below
    u *= 2.0**FRACTION_BITS
    # what rounds to a whole is just below it
    np.minimum(u, 2.0**FRACTION_BITS - 1.0, out=u)
    np.copyto(packed, u, casting="unsafe")
    packed <<= INDEX_BITS
    packed |= np.arange(u.shape[1])
    below += 1.0
    np.matmul(below.astype(np.int64).view(np.uint64), multipliers, out=corner)


def walk(packed, multipliers, corner, weights, keys):
    """Barycentric coordinates and vertices of a simplex.

    Parameters
    ----------
    packed : ndarray of int64, shape (n, p)
        From `pack`, sorted along rows.
    multipliers, corner
        As for `pack`.
    weights : ndarray of int64, shape (n, p + 1)
        Output: coordinates, in units of 2**-47.
    keys : ndarray of uint64, shape (n, p + 1)
        Output: keys of the vertices below 2**63, mixed so that their upper bits
        depend on all of them.
    """
    p = packed.shape[1]
    fraction = packed >> INDEX_BITS
    weights[:, 0] = fraction[:, 0]
    np.subtract(fraction[:, 1:], fraction[:, :-1], out=weights[:, 1:p])
    np.subtract(2**FRACTION_BITS, fraction[:, p - 1], out=weights[:, p])
    keys[:, 0] = corner
    np.negative(multipliers[packed & (MAX_DIMENSION - 1)], out=keys[:, 1:])
    np.cumsum(keys, axis=1, out=keys)
    keys ^= keys >> _HALF
    keys *= _MIXER
    keys >>= _ONE


def find(keys, known, first, shift, start, columns):
    """Columns of vertices, -1 where a vertex is not known.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n, p + 1)
    known : ndarray of uint64, shape (n_known + 1,)
        Sorted keys, the last one `NO_KEY`.
    first : ndarray of int32, shape (n_buckets,)
        Position in `known` of the first key whose upper bits (``>> shift``) are
        at least the number of the bucket.
    shift, start : int
        `start` is the column of the first known key.
    columns : ndarray of int32, shape (n, p + 1)
        Output.
    """
    keys = keys.ravel()
    place = first[(keys >> np.uint64(shift)).view(np.int64)]
    seen = known[place]
    behind = np.flatnonzero(seen < keys)
    while len(behind):
        place[behind] += 1
        seen[behind] = known[place[behind]]
        behind = behind[seen[behind] < keys[behind]]
    place += np.int32(start)
    place[seen != keys] = -1
    columns[:] = place.reshape(columns.shape)

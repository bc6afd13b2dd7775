"""The kernels of ``_mesh_cells``, compiled by numba when this module is imported.

Points go through in blocks, coordinate by coordinate, so that every step runs
along rows of independent numbers, the sort too: a network of exchanges in place
of a decision per number.
"""

from functools import lru_cache

import numpy as np
from numba import njit, types

from kbench_nbcs._mesh_cells import FAR, FRACTION_BITS, INDEX_BITS, MAX_DIMENSION, MIXER
from kbench_nbcs._numba import OPTIONS, TOGETHER, U, array

# Beyond this many dimensions a network has more exchanges than a sort decisions.
MAX_NETWORK = 64

_WHOLE = 2.0**FRACTION_BITS
_LOW = np.int64(MAX_DIMENSION - 1)
_HALF, _ONE = np.uint64(32), np.uint64(1)
_i64, _u64 = types.int64, types.uint64
_floats = array(types.float64, 2)
_scratch = array(_i64, 1, written=True), array(_u64, 1, written=True)


@lru_cache(maxsize=64)
def network(p: int) -> np.ndarray:
    """Exchanges that sort p numbers (Batcher's odd-even merge sort), (n_exchanges, 2)."""
    pairs = []
    if p <= MAX_NETWORK:
        size = 1
        while size < p:
            step = size
            while step >= 1:
                for low in range(step % size, p - step, 2 * step):
                    for i in range(low, min(low + step, p - step)):
                        if i // (2 * size) == (i + step) // (2 * size):
                            pairs.append((i, i + step))
                step //= 2
            size *= 2
    return np.array(pairs, dtype=np.uint64).reshape(-1, 2)


@njit(
    types.void(_floats, _u64, _u64, _u64, types.float64, array(_u64, 1), array(_u64, 2), *_scratch),
    **OPTIONS,
)
def _locate_block(u, row, at, size, factor, multipliers, exchanges, packed, keys):
    """Fractions in order, with their numbers, in `packed`; the keys of vertices in `keys`."""
    flat, n, rows = u.reshape(-1), U(u.shape[1]), U(TOGETHER)
    p = U(len(multipliers))
    corner = keys[p * rows : (p + U(1)) * rows]
    corner[:] = U(0)
    for j in range(p):
        source, target, multiplier = (row + j) * n + at, j * rows, multipliers[j]
        for r in range(size):
            x = min(max(flat[source + r] * factor, -FAR), FAR)
            below = np.floor(x)
            fraction = min((x - below) * _WHOLE, _WHOLE - 1.0)
            packed[target + r] = (np.int64(fraction) << INDEX_BITS) | np.int64(j)
            corner[r] += np.uint64(np.int64(below + 1.0)) * multiplier
    if p <= U(MAX_NETWORK):
        for e in range(U(len(exchanges))):
            a, b = exchanges[e, 0] * rows, exchanges[e, 1] * rows
            for r in range(rows):
                x, y = packed[a + r], packed[b + r]
                packed[a + r] = min(x, y)
                packed[b + r] = max(x, y)
    else:
        values = np.empty(p, dtype=np.int64)
        for r in range(size):
            for j in range(p):
                values[j] = packed[j * rows + r]
            values.sort()
            for j in range(p):
                packed[j * rows + r] = values[j]
    for j in range(p):
        a = j * rows
        for r in range(size):
            key = corner[r]
            corner[r] = key - multipliers[U(packed[a + r] & _LOW)]
            keys[a + r] = ((key ^ (key >> _HALF)) * MIXER) >> _ONE
    for r in range(size):
        key = corner[r]
        corner[r] = ((key ^ (key >> _HALF)) * MIXER) >> _ONE


@njit(
    types.void(
        _floats,
        array(_u64, 1),
        array(_u64, 2),
        array(_i64, 2, written=True),
        array(_u64, 2, written=True),
    ),
    **OPTIONS,
)
def _locate(u, multipliers, exchanges, weights, keys):
    p, n = u.shape
    packed = np.zeros(p * TOGETHER, dtype=np.int64)
    block = np.empty((p + 1) * TOGETHER, dtype=np.uint64)
    for at in range(0, n, TOGETHER):
        size = min(TOGETHER, n - at)
        _locate_block(u, U(0), U(at), U(size), 1.0, multipliers, exchanges, packed, block)
        for r in range(size):
            last = np.int64(0)
            for j in range(p):
                fraction = packed[j * TOGETHER + r] >> INDEX_BITS
                weights[at + r, j] = fraction - last
                last = fraction
                keys[at + r, j] = block[j * TOGETHER + r]
            weights[at + r, p] = (np.int64(1) << FRACTION_BITS) - last
            keys[at + r, p] = block[p * TOGETHER + r]


@njit(
    [
        types.void(
            _floats,
            types.float64,
            array(_u64, 1),
            array(_u64, 2),
            array(_u64, 1),
            array(types.int32, 1),
            _u64,
            _u64,
            _u64,
            types.float64,
            array(x, 2, written=True),
            array(integer, 2, written=True),
        )
        for x in (types.float64, types.float32)
        for integer in (types.int32, types.int64)
    ],
    **OPTIONS,
)
def _embed(
    u, factor, multipliers, exchanges, slots, columns, begin, shift, column, unit, data, indices
):
    p, n = u.shape
    rows, width, stride = U(TOGETHER), U(p + 1), U(data.shape[1])
    values, places = data.reshape(-1), indices.reshape(-1)
    packed = np.zeros(p * TOGETHER, dtype=np.int64)
    keys = np.empty((p + 1) * TOGETHER, dtype=np.uint64)
    target = column
    for at in range(0, n, TOGETHER):
        size = U(min(TOGETHER, n - at))
        _locate_block(u, U(0), U(at), size, factor, multipliers, exchanges, packed, keys)
        for r in range(size):
            last = np.int64(0)
            for j in range(U(p)):
                fraction = packed[j * rows + r] >> INDEX_BITS
                values[target + j] = (fraction - last) * unit
                last = fraction
            values[target + U(p)] = ((np.int64(1) << FRACTION_BITS) - last) * unit
            for j in range(width):
                key = keys[j * rows + r]
                place = begin + (key >> shift)
                while slots[place] < key:
                    place += U(1)
                places[target + j] = columns[place] if slots[place] == key else -1
            target += stride


@njit(
    [
        _i64(
            array(x, 1, written=True),
            array(integer, 1, written=True),
            _i64,
            array(integer, 1, written=True),
        )
        for x in (types.float64, types.float32)
        for integer in (types.int32, types.int64)
    ],
    **OPTIONS,
)
def compact(data, indices, start, indptr):
    n = len(indptr)
    per_row = U(len(indices) - start) // U(n)
    source = stop = U(start)
    for r in range(n):
        n_gone = 0
        for j in range(per_row):
            n_gone += indices[source + j] < 0
        if n_gone == 0 and source == stop:
            stop += per_row
        else:
            for j in range(per_row):
                if indices[source + j] >= 0:
                    data[stop] = data[source + j]
                    indices[stop] = indices[source + j]
                    stop += U(1)
        source += per_row
        indptr[r] = stop
    return np.int64(stop)


def locate(u, multipliers, weights, keys):
    _locate(u, multipliers, network(len(u)), weights, keys)


def embed(u, factor, multipliers, tables, mesh, unit, data, indices):
    slots, columns, begin, shift = tables
    at = U(mesh * (len(u) + 1))
    exchanges = network(len(u))
    first, bits = U(begin[mesh]), U(shift[mesh])
    _embed(u, factor, multipliers, exchanges, slots, columns, first, bits, at, unit, data, indices)

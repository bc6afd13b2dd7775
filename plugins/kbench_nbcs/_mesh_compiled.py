"""The kernels of ``_mesh_cells``, compiled by numba when this module is imported."""

from __future__ import annotations

import numpy as np
from numba import njit, types

from kbench_nbcs._mesh_cells import FAR, FRACTION_BITS, INDEX_BITS, MAX_DIMENSION

_options = {"cache": True, "error_model": "numpy"}


def _array(scalar, n_dim, *, written=False):
    """C-contiguous; what is only read may be a memory map without write access."""
    return types.Array(scalar, n_dim, "C", readonly=not written)


_unsigned, _integers = _array(types.uint64, 1), _array(types.int64, 2)
_WHOLE = 2.0**FRACTION_BITS
_LOW = np.int64(MAX_DIMENSION - 1)
_MIXER = np.uint64(0xFF51AFD7ED558CCD)
_HALF, _ONE = np.uint64(32), np.uint64(1)


@njit(
    types.void(
        _array(types.float64, 2),
        _unsigned,
        _array(types.int64, 2, written=True),
        _array(types.uint64, 1, written=True),
    ),
    **_options,
)
def pack(u, multipliers, packed, corner):
    n, p = u.shape
    for r in range(n):
        row, out = u[r], packed[r]
        key = np.uint64(0)
        for j in range(p):
            x = min(max(row[j], -FAR), FAR)
            below = np.floor(x)
            fraction = min((x - below) * _WHOLE, _WHOLE - 1.0)
            out[j] = (np.int64(fraction) << INDEX_BITS) | j
            key += np.uint64(np.int64(below + 1.0)) * multipliers[j]
        corner[r] = key


@njit(
    types.void(
        _integers,
        _unsigned,
        _unsigned,
        _array(types.int64, 2, written=True),
        _array(types.uint64, 2, written=True),
    ),
    **_options,
)
def walk(packed, multipliers, corner, weights, keys):
    n, p = packed.shape
    for r in range(n):
        row, weight, out = packed[r], weights[r], keys[r]
        key = corner[r]
        last = np.int64(0)
        for j in range(p):
            fraction = row[j] >> INDEX_BITS
            weight[j] = fraction - last
            last = fraction
            out[j] = key
            key -= multipliers[row[j] & _LOW]
        weight[p] = (np.int64(1) << FRACTION_BITS) - last
        out[p] = key
        for j in range(p + 1):
            key = out[j]
            out[j] = ((key ^ (key >> _HALF)) * _MIXER) >> _ONE


@njit(
    types.void(
        _array(types.uint64, 2),
        _unsigned,
        _array(types.int32, 1),
        types.int64,
        types.int64,
        _array(types.int32, 2, written=True),
    ),
    **_options,
)
def find(keys, known, first, shift, start, columns):
    n, width = keys.shape
    bits = np.uint64(shift)
    for r in range(n):
        row, out = keys[r], columns[r]
        for j in range(width):
            key = row[j]
            place = first[key >> bits]
            while known[place] < key:
                place += 1
            out[j] = start + place if known[place] == key else -1

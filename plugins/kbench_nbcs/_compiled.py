"""The kernels of ``_descent``, compiled by numba.

Signatures are given and results cached on disk, so that they are ready when
this module has been imported: compilation never falls into the time of a fit.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

# Rows that go through a uniform subdivision together, transposed: the search
# for the smallest coordinate then runs along rows of independent numbers.
TOGETHER = 64

_options = {"cache": True, "error_model": "numpy"}


def _array(scalar, n_dim, *, written=False):
    """C-contiguous; what is only read may be a memory map without write access."""
    return types.Array(scalar, n_dim, "C", readonly=not written)


_floats = types.float64, types.float32
_vector, _matrix = _array(types.float64, 1), _array(types.float64, 2)
_scratch = _array(types.float64, 2, written=True)
_children, _columns = _array(types.int32, 2), _array(types.int32, 2, written=True)
_keys = _array(types.int64, 1, written=True)
_numbers = (types.int64, types.int64, types.int64)


@njit(
    [types.void(_array(x, 2), _vector, _vector, _scratch) for x in _floats],
    **_options,
)
def corner_coordinates(X, low, scale, out):
    width = X.shape[1]
    whole = 1 + width - width % 4
    for r in range(X.shape[0]):
        x, row = X[r], out[r]
        for j in range(width):
            row[j + 1] = (x[j] - low[j]) * scale[j]
        # four sums at a time: one would wait for every addition
        a = b = c = d = 0.0
        for j in range(1, whole, 4):
            a += row[j]
            b += row[j + 1]
            c += row[j + 2]
            d += row[j + 3]
        if whole <= width:
            a += row[whole]
        if whole + 1 <= width:
            b += row[whole + 1]
        if whole + 2 <= width:
            c += row[whole + 2]
        row[0] = 1.0 - ((a + b) + (c + d))


@njit(types.void(_matrix, _columns), **_options)
def barycentric_paths(alpha, paths):
    n, width = alpha.shape
    row = np.empty(width)
    for r in range(n):
        row[:] = alpha[r]
        taken = 0.0
        for stage in range(paths.shape[1]):
            slot = 0
            smallest = row[0]
            for j in range(1, width):
                if row[j] < smallest:
                    smallest = row[j]
                    slot = j
            paths[r, stage] = slot
            row[slot] = smallest + width * (smallest - taken)
            taken = smallest


@njit(
    [
        types.void(_scratch, _children, *_numbers, _array(x, 2, written=True), _columns)
        for x in _floats
    ],
    **_options,
)
def embed_barycentric(alpha, child, root, first_root, first_split, data, indices):
    n, width = alpha.shape
    block = slice(first_root, first_root + width)
    columns = np.empty((width, TOGETHER))
    columns[:] = 0.0
    smallest = np.empty(TOGETHER)
    slot = np.empty(TOGETHER, dtype=np.int64)
    taken = np.empty(TOGETHER)
    node = np.empty(TOGETHER, dtype=np.int64)
    for start in range(0, n, TOGETHER):
        size = min(TOGETHER, n - start)
        for r in range(size):
            row, vertex = alpha[start + r], indices[start + r, block]
            for j in range(width):
                columns[j, r] = row[j]
            for j in range(width):
                vertex[j] = first_root + j
        node[:] = root
        taken[:] = 0.0
        live = root >= 0
        while live:
            live = False
            for r in range(TOGETHER):
                smallest[r] = columns[0, r]
                slot[r] = 0
            for j in range(1, width):
                column = columns[j]
                for r in range(TOGETHER):
                    value = column[r]
                    less = value < smallest[r]
                    smallest[r] = value if less else smallest[r]
                    slot[r] = j if less else slot[r]
            for r in range(size):
                k = node[r]
                if k >= 0:
                    i = slot[r]
                    value = smallest[r] + width * (smallest[r] - taken[r])
                    columns[i, r] = value
                    alpha[start + r, i] = value
                    taken[r] = smallest[r]
                    indices[start + r, first_root + i] = first_split + k
                    k = child[k, i]
                    node[r] = k
                    live |= k >= 0
        for r in range(size):
            row, source, t = data[start + r, block], alpha[start + r], taken[r]
            for j in range(width):
                row[j] = source[j] - t


@njit(
    [
        types.void(
            _matrix, _children, _matrix, *_numbers, _array(x, 2, written=True), _columns, _keys
        )
        for x in _floats
    ],
    **_options,
)
def embed_split(alpha, child, beta, root, first_root, first_split, data, indices, leaf):
    n, width = alpha.shape
    block = slice(first_root, first_root + width)
    row = np.empty(width)
    for r in range(n):
        vertex = indices[r, block]
        for j in range(width):
            row[j] = alpha[r, j]
            vertex[j] = first_root + j
        k = root
        last = -1
        while k >= 0:
            share = beta[k]
            t = np.inf
            i = 0
            for j in range(width):
                if share[j] > 0.0:
                    ratio = row[j] / share[j]
                    if ratio < t:
                        t = ratio
                        i = j
            for j in range(width):
                row[j] = max(row[j] - share[j] * t, 0.0)
            row[i] = t
            vertex[i] = first_split + k
            last = k * width + i
            k = child[k, i]
        leaf[r] = last
        out = data[r, block]
        for j in range(width):
            out[j] = row[j]

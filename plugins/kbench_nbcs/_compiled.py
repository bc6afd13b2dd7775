"""The kernels of ``_descent``, compiled by numba.

Signatures are given and results cached on disk, so that they are ready when
this module has been imported: compilation never falls into the time of a fit.
"""

import numpy as np
from numba import njit, types

from kbench_nbcs._numba import OPTIONS, TOGETHER, U, array

_floats = types.float64, types.float32
_vector, _matrix = array(types.float64, 1), array(types.float64, 2)
_scratch = array(types.float64, 2, written=True)
_children, _columns = array(types.int32, 2), array(types.int32, 2, written=True)
_keys = array(types.int64, 1, written=True)
_numbers = (types.int64, types.int64, types.int64)


@njit([types.void(array(x, 2), _vector, _vector, _scratch) for x in _floats], **OPTIONS)
def corner_coordinates(X, low, scale, out):
    x, a = X.reshape(-1), out.reshape(-1)
    d = U(X.shape[1])
    fours, rest = d // U(4), d % U(4)
    source, target = U(0), U(0)
    for _ in range(X.shape[0]):
        first = target + U(1)
        for j in range(d):
            a[first + j] = (x[source + j] - low[j]) * scale[j]
        # four sums at a time: one would wait for every addition
        s0 = s1 = s2 = s3 = 0.0
        for _ in range(fours):
            s0 += a[first]
            s1 += a[first + U(1)]
            s2 += a[first + U(2)]
            s3 += a[first + U(3)]
            first += U(4)
        if rest > U(0):
            s0 += a[first]
        if rest > U(1):
            s1 += a[first + U(1)]
        if rest > U(2):
            s2 += a[first + U(2)]
        a[target] = 1.0 - ((s0 + s1) + (s2 + s3))
        source += d
        target += d + U(1)


@njit([types.void(array(x, 2), _vector, _scratch) for x in _floats], **OPTIONS)
def add(X, offset, out):
    x, a, width = X.reshape(-1), out.reshape(-1), U(X.shape[1])
    row = U(0)
    for _ in range(X.shape[0]):
        for j in range(width):
            a[row + j] = x[row + j] + offset[j]
        row += width


@njit(types.boolean(_matrix), **OPTIONS)
def none_negative(alpha):
    values = alpha.reshape(-1)
    n_others = 0
    for k in range(U(len(values))):
        n_others += not values[k] >= 0.0
    return n_others == 0


@njit(types.void(_matrix, _columns), **OPTIONS)
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
        types.void(_scratch, _children, *_numbers, array(x, 2, written=True), _columns)
        for x in _floats
    ],
    **OPTIONS,
)
def embed_barycentric(alpha, child, root, first_root, first_split, data, indices):
    n, width = alpha.shape[0], U(alpha.shape[1])
    stride, rows = U(data.shape[1]), U(TOGETHER)
    values, children = alpha.reshape(-1), child.reshape(-1)
    data, indices = data.reshape(-1), indices.reshape(-1)
    # up to three more columns, which are never the smallest
    columns = np.full((width + U(3)) * rows, np.inf)
    smallest = np.empty(TOGETHER)
    slot = np.empty(TOGETHER, dtype=np.int64)
    taken = np.empty(TOGETHER)
    node = np.empty(TOGETHER, dtype=np.int64)
    source, target = U(0), U(first_root)
    for start in range(0, n, TOGETHER):
        size = U(min(TOGETHER, n - start))
        for j in range(width):
            a, column = source + j, j * rows
            for r in range(size):
                columns[column + r] = values[a]
                a += width
        o = target
        for _ in range(size):
            for j in range(width):
                indices[o + j] = np.int32(U(first_root) + j)
            o += stride
        node[:] = root
        taken[:] = 0.0
        live = root >= 0
        while live:
            live = False
            for q in range(TOGETHER):
                smallest[q] = columns[q]
                slot[q] = 0
            # four columns at a time: the smallest so far is loaded and stored once for them
            for j in range(1, alpha.shape[1], 4):
                first, second = columns[j * TOGETHER :], columns[(j + 1) * TOGETHER :]
                third, fourth = columns[(j + 2) * TOGETHER :], columns[(j + 3) * TOGETHER :]
                for q in range(TOGETHER):
                    value, k = smallest[q], slot[q]
                    k = j if first[q] < value else k
                    value = first[q] if first[q] < value else value
                    k = j + 1 if second[q] < value else k
                    value = second[q] if second[q] < value else value
                    k = j + 2 if third[q] < value else k
                    value = third[q] if third[q] < value else value
                    k = j + 3 if fourth[q] < value else k
                    value = fourth[q] if fourth[q] < value else value
                    smallest[q], slot[q] = value, k
            a, o = source, target
            for r in range(size):
                k = node[r]
                if k >= 0:
                    i = U(slot[r])
                    value = smallest[r] + width * (smallest[r] - taken[r])
                    columns[i * rows + r] = value
                    values[a + i] = value
                    taken[r] = smallest[r]
                    indices[o + i] = first_split + k
                    k = children[U(k) * width + i]
                    node[r] = k
                    live |= k >= 0
                a += width
                o += stride
        for r in range(size):
            t = taken[r]
            for j in range(width):
                data[target + j] = values[source + j] - t
            source += width
            target += stride


@njit(
    [
        types.void(
            _matrix, _children, _matrix, *_numbers, array(x, 2, written=True), _columns, _keys
        )
        for x in _floats
    ],
    **OPTIONS,
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

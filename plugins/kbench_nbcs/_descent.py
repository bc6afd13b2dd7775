"""Descent through nested simplices, in numpy.

The kernels work on a chunk of rows at once and write into given arrays.
``_compiled`` has the same functions for numba: same operations in the same
order, so the same bits.

A forest is three arrays. Split ``k`` divides one simplex by one point, which
is vertex ``first_split + k``; ``child[k, i]`` is the split of its child that
replaces vertex ``i``, or -1 where that child is not split; ``beta[k]`` are the
barycentric coordinates of the point in the simplex. The vertices of a root are
``first_root, ..., first_root + d``; the same columns of `data` and `indices`
(n, n_roots (d + 1)) get the coordinates and vertices of the smallest simplex.
"""

import numpy as np


def corner_coordinates(X, low, scale, out):
    """Barycentric coordinates in the corner simplex, into `out` (n, d + 1)."""
    u = np.subtract(X.T, low[:, None], order="C")
    u *= scale[:, None]
    out[:, 1:] = u.T
    # every fourth column together: the order of ``_compiled``, which numpy's
    # own sum over rows does not keep
    total = [u[j::4].sum(axis=0) for j in range(4)]
    np.subtract(1.0, (total[0] + total[1]) + (total[2] + total[3]), out=out[:, 0])


def add(X, offset, out):
    """Add a vector to all rows, into `out`."""
    np.add(X, offset, out=out)


def none_negative(alpha):
    """Check that every number is at least 0; NaN is not."""
    return alpha.size == 0 or bool(alpha.min() >= 0.0)


def barycentric_paths(alpha, paths):
    """Child taken at each stage of a full uniform subdivision, into `paths` (n, depth).

    Splitting at the barycentre, the child is the one that replaces the vertex
    of the smallest coordinate ``a_i``; it takes ``a_i`` from every coordinate
    and gives ``(d + 1) a_i`` to the new vertex. What has been taken so far is
    the same number for all coordinates of a row, so that only one changes.
    """
    width = alpha.shape[1]
    alpha = alpha.copy()
    flat = alpha.ravel()
    first = np.arange(0, alpha.size, width)
    taken = np.zeros(len(alpha))
    for stage in range(paths.shape[1]):
        slot = alpha.argmin(axis=1)
        paths[:, stage] = slot
        place = first + slot
        smallest = flat[place]
        flat[place] = smallest + width * (smallest - taken)
        taken = smallest


def embed_barycentric(alpha, child, root, first_root, first_split, data, indices):
    """Coordinates and vertices after a uniform subdivision, into `data` and `indices`.

    `alpha` is overwritten.
    """
    n, width = alpha.shape
    flat, children = alpha.ravel(), child.ravel()
    vertex = np.empty(alpha.shape, dtype=np.int32)
    vertex[:] = np.arange(first_root, first_root + width)
    flat_vertex = vertex.ravel()
    taken = np.zeros(n)
    if root >= 0 and n:
        # all rows, until some are in simplices that are not split
        rows, first = slice(None), np.arange(0, alpha.size, width)
        node = np.full(n, root)
        while len(node):
            slot = alpha[rows].argmin(axis=1)
            place = first + slot
            smallest = flat[place]
            flat[place] = smallest + width * (smallest - taken[rows])
            taken[rows] = smallest
            flat_vertex[place] = first_split + node
            node = children[node * width + slot].astype(np.intp)
            if node.min() < 0:
                live = np.flatnonzero(node >= 0)
                rows = live if isinstance(rows, slice) else rows[live]
                first, node = first[live], node[live]
    block = slice(first_root, first_root + width)
    np.subtract(alpha, taken[:, None], out=data[:, block], casting="same_kind")
    indices[:, block] = vertex


def embed_split(alpha, child, beta, root, first_root, first_split, data, indices, leaf):
    """Coordinates and vertices after arbitrary splits.

    A point with coordinates ``alpha`` lies in the child that replaces vertex
    ``i = argmin alpha_j / beta_j`` over ``beta_j > 0``; its coordinates there
    are ``alpha_j - beta_j t`` and ``t = alpha_i / beta_i`` for the new vertex.

    `leaf` gets ``split * (d + 1) + i`` of the last child taken, or -1 where
    the root is not split.
    """
    width = alpha.shape[1]
    alpha = alpha.copy()
    vertex = np.empty(alpha.shape, dtype=np.int32)
    vertex[:] = np.arange(first_root, first_root + width)
    leaf[:] = -1
    rows = np.arange(len(alpha)) if root >= 0 else np.empty(0, dtype=np.intp)
    node = np.full(len(rows), root, dtype=np.int64)
    while len(rows):
        old, share = alpha[rows], beta[node]
        ratio = np.full(old.shape, np.inf)
        np.divide(old, share, out=ratio, where=share > 0.0)
        slot = ratio.argmin(axis=1)
        t = ratio[np.arange(len(rows)), slot]
        alpha[rows] = np.maximum(old - share * t[:, None], 0.0)
        alpha[rows, slot] = t
        vertex[rows, slot] = first_split + node
        leaf[rows] = node * width + slot
        node = child[node, slot].astype(np.int64)
        live = node >= 0
        rows, node = rows[live], node[live]
    block = slice(first_root, first_root + width)
    data[:, block] = alpha
    indices[:, block] = vertex

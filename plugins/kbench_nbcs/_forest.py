"""Nested simplices: their growth, and the descent of points through them.

Paper: Gottlieb, Kaufman, Kontorovich, Nivasch and Pele, "Nested barycentric
coordinate system as an explicit feature map", sections 2 and 4.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from kbench_nbcs._roots import clip_to_root, kernels

# Values that go through the kernels together: they stay in cache.
CHUNK_VALUES = 2**15

# A split point nearer to a vertex than this (in barycentric coordinates) splits
# nothing; a smaller share of a vertex in a split point is rounding.
AT_VERTEX = 1e-9
NO_SHARE = 1e-12


@dataclass
class Forest:
    """Nested simplices in one or several roots.

    Vertices are numbered root by root, then in the order of the splits, so
    that a coarser system is a prefix of every refinement of it. The simplex of
    split k is child ``slot[k]`` of split ``parent[k]``, or root ``slot[k]`` where
    ``parent[k]`` is -1; ``child[k, i]`` splits its child that replaces vertex i, or
    is -1. There are ``stages[s]`` splits after stage s.
    """

    width: int  # vertices of a simplex, n_features + 1
    roots: np.ndarray  # split of each root or -1, int of shape (n_roots,)
    child: np.ndarray  # int32 of shape (n_splits, width)
    parent: np.ndarray  # int32 of shape (n_splits,)
    slot: np.ndarray  # int32 of shape (n_splits,)
    stages: list[int]
    # coordinates of the split points, (n_splits, width); None: all are barycentres
    beta: np.ndarray | None = None

    @classmethod
    def unsplit(cls, width: int, n_roots: int, *, barycentric: bool) -> Self:
        """Make a forest of bare roots."""
        child = np.empty((0, width), dtype=np.int32)
        none = np.empty(0, dtype=np.int32)
        beta = None if barycentric else np.empty((0, width))
        return cls(width, np.full(n_roots, -1), child, none, none, [0], beta)

    @property
    def n_splits(self) -> int:
        """Number of split points."""
        return len(self.child)

    @property
    def first_split(self) -> int:
        """Number of the first split point among the vertices."""
        return self.width * len(self.roots)

    @property
    def n_vertices(self) -> int:
        """Number of vertices of all roots."""
        return self.first_split + self.n_splits

    def split(self, parent: np.ndarray, slot: np.ndarray, beta: np.ndarray | None = None) -> None:
        """Split simplices, given as for `parent` and `slot`: one stage."""
        new = np.arange(self.n_splits, self.n_splits + len(parent), dtype=np.int32)
        self.child = np.vstack([self.child, np.full((len(new), self.width), -1, dtype=np.int32)])
        inner = parent >= 0
        self.child[parent[inner], slot[inner]] = new[inner]
        self.roots[slot[~inner]] = new[~inner]
        self.parent = np.concatenate([self.parent, parent.astype(np.int32)])
        self.slot = np.concatenate([self.slot, slot.astype(np.int32)])
        self.stages.append(self.n_splits)
        if beta is not None:
            self.beta = np.vstack([self.beta, beta])

    def split_simplices(self) -> np.ndarray:
        """Vertices of the simplex that each split divides, (n_splits, width)."""
        simplices = np.empty((self.n_splits, self.width), dtype=np.int32)
        for start, stop in zip(self.stages, self.stages[1:], strict=False):
            parent, slot = self.parent[start:stop], self.slot[start:stop]
            simplices[start:stop] = self._children(simplices, parent, slot)
        return simplices

    def _children(self, simplices: np.ndarray, parent: np.ndarray, slot: np.ndarray) -> np.ndarray:
        inner = parent >= 0
        out = slot[:, None] * self.width + np.arange(self.width, dtype=np.int32)
        out[inner] = simplices[parent[inner]]
        out[inner, slot[inner]] = self.first_split + parent[inner]
        return out

    def leaves(self) -> np.ndarray:
        """Vertices of the simplices that are not split, (n_leaves, width).

        A child without volume (its vertex has no share in the split point) is
        left out.
        """
        parent, slot = np.nonzero(self.child < 0)
        if self.beta is not None:
            real = self.beta[parent, slot] > 0.0
            parent, slot = parent[real], slot[real]
        bare = np.flatnonzero(self.roots < 0)
        parent = np.concatenate([np.full(len(bare), -1), parent]).astype(np.int32)
        slot = np.concatenate([bare, slot]).astype(np.int32)
        return self._children(self.split_simplices(), parent, slot)

    def split_coordinates(self) -> np.ndarray:
        """Barycentric coordinates of the split points, (n_splits, width)."""
        if self.beta is not None:
            return self.beta
        return np.full((self.n_splits, self.width), 1.0 / self.width)

    def vertices(self, roots: np.ndarray) -> np.ndarray:
        """Positions of all vertices, given the roots' (n_roots * width, n_features)."""
        positions = np.empty((self.n_vertices, roots.shape[1]))
        positions[: len(roots)] = roots
        simplices, beta = self.split_simplices(), self.split_coordinates()
        step = max(1, 2**22 // (self.width * roots.shape[1] + 1))
        for start, stop in zip(self.stages, self.stages[1:], strict=False):
            for lo in range(start, stop, step):
                some = slice(lo, min(lo + step, stop))
                positions[self.first_split + lo : self.first_split + some.stop] = np.einsum(
                    "kj,kjd->kd", beta[some], positions[simplices[some]]
                )
        return positions

    def embed(
        self,
        root: int,
        alpha: np.ndarray,
        data: np.ndarray,
        indices: np.ndarray,
        leaf: np.ndarray | None = None,
    ) -> None:
        """Descend from one root: coordinates `alpha` in, embedding out.

        `alpha` are non-negative coordinates in the root, (n, width), and are
        overwritten. Coordinates in the smallest simplex and its vertices are
        written into the root's block of columns of `data` and `indices`, both
        (n, n_roots * width), and the key of that simplex (see ``embed_split``)
        into `leaf`, int64 of shape (n,); the latter only for forests with `beta`.
        """
        place = int(self.roots[root]), root * self.width, self.first_split, data, indices
        if self.beta is None:
            kernels.embed_barycentric(alpha, self.child, *place)
            return
        leaf = np.empty(len(alpha), dtype=np.int64) if leaf is None else leaf
        kernels.embed_split(alpha, self.child, self.beta, *place, leaf)


def chunks(X):
    """Yield ``(rows, X[rows])`` of few rows at a time, dense and contiguous."""
    step = max(64, CHUNK_VALUES // (X.shape[1] + 1))
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        part = np.ascontiguousarray(part.toarray() if hasattr(part, "toarray") else part)
        yield slice(start, start + len(part)), part


def grow_uniform(X, roots, depth: int, min_samples_split: int) -> Forest:
    """Split every simplex with enough points at its barycentre, stage by stage.

    The child that a point falls into does not depend on which other simplices
    are split, so one scan of the rows finds all of them.
    """
    n, width, n_roots = X.shape[0], X.shape[1] + 1, len(roots)
    forest = Forest.unsplit(width, n_roots, barycentric=True)
    if depth == 0 or n < min_samples_split:
        return forest
    forest.split(np.full(n_roots, -1), np.arange(n_roots))
    paths = np.empty((n_roots, n, depth - 1), dtype=np.int32)
    if depth > 1:
        for rows, part in chunks(X):
            for root in range(n_roots):
                alpha = roots[root].coordinates(part)
                clip_to_root(alpha)
                kernels.barycentric_paths(alpha, paths[root, rows])
    paths = paths.reshape(n_roots * n, depth - 1)
    rows = np.arange(len(paths))
    node = np.repeat(np.arange(n_roots), n)  # the split that each (root, row) came to
    for stage in range(depth - 1):
        first, last = forest.stages[stage : stage + 2]
        key = (node - first) * width + paths[rows, stage]
        counts = np.bincount(key, minlength=(last - first) * width)
        enough = np.flatnonzero(counts >= max(1, min_samples_split))
        if not len(enough):
            break
        number = np.full(len(counts), -1)
        number[enough] = last + np.arange(len(enough))
        forest.split(first + enough // width, enough % width)
        node = number[key]
        live = node >= 0
        rows, node = rows[live], node[live]
    return forest


def split_points(
    X: np.ndarray,
    alpha: np.ndarray,
    leaf: np.ndarray,
    wrong: np.ndarray,
    *,
    nearest: bool,
    min_samples_split: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose where to split the simplices of one root (section 4 of the paper).

    A simplex is split if it contains `min_samples_split` misclassified (`wrong`)
    points: at the point in it, misclassified or not, that is `nearest` to the
    barycentre of the misclassified ones, or at this barycentre. Points at a vertex
    are left out, because no split separates them: many copies of one point do not
    split for ever.

    `X` are the inputs, scaled, in which distances are measured; `alpha` (n, d + 1)
    the coordinates of the rows in their smallest simplices, and `leaf` the keys of
    these. Returns the keys of the simplices to split, (n_splits,); the coordinates
    of the split points in them, (n_splits, d + 1); and the rows that are split
    points, -1 for barycentres.
    """
    free = alpha.max(axis=1) < 1.0 - AT_VERTEX
    rows = np.flatnonzero(wrong & free)
    keys, counts = np.unique(leaf[rows], return_counts=True)
    keys = keys[counts >= min_samples_split]
    if not len(keys):
        return keys, np.empty((0, alpha.shape[1])), np.empty(0, dtype=np.intp)
    rows, group, starts = _group(keys, leaf, rows)
    counts = np.diff(np.append(starts, len(rows)))[:, None]
    if nearest:
        centres = np.add.reduceat(X[rows], starts, axis=0) / counts
        rows, group, starts = _group(keys, leaf, np.flatnonzero(free))
        distance = ((X[rows] - centres[group]) ** 2).sum(axis=1)
        rows = rows[np.lexsort((rows, distance, group))[starts]]
        beta = alpha[rows]
    else:
        beta = np.add.reduceat(alpha[rows], starts, axis=0) / counts
        rows = np.full(len(keys), -1)
    beta = np.where(beta < NO_SHARE, 0.0, beta)
    return keys, beta / beta.sum(axis=1, keepdims=True), rows


def _group(
    keys: np.ndarray, leaf: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Select the `rows` in the simplices `keys`, sorted by them: rows, groups, group starts."""
    group = np.minimum(np.searchsorted(keys, leaf[rows]), len(keys) - 1)
    inside = keys[group] == leaf[rows]
    rows, group = rows[inside], group[inside]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    return rows, group, np.searchsorted(group, np.arange(len(keys)))

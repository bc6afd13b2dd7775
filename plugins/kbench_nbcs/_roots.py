"""Root simplices: the affine maps from inputs to barycentric coordinates.

Only this module depends on the shape of the root; the splits inside it depend
on barycentric coordinates only.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import helmert
from sklearn.utils import assert_all_finite

try:
    from kbench_nbcs import _compiled as kernels
except (ImportError, RuntimeError):  # no numba, or no folder it may cache in
    from kbench_nbcs import _descent as kernels

# A coordinate above minus this is rounding, not a point outside the root.
OUTSIDE = 1e-9

# Distance between the faces of a fitted root and the data (see `fitted_root`). On the smallest
# simplex there is a row on each of its d + 1 faces, where uniform splits change
# nothing: with few rows a column, that is many. 0, 0.3 and 1 were compared on
# development sets (mean accuracies 0.837, 0.839 and 0.841).
PADDING = 1.0

# The padding of each face is slightly different, up to this share more or less. A row on two
# faces of the smallest simplex, which extreme rows are, would have two equal coordinates else; and
# rounding, which differs between processors, would decide in which cell it is.
SPREAD = 1e-3

# Entries of linear systems that are solved together.
SOLVED_VALUES = 2**21


@dataclass(frozen=True)
class Root:
    """A simplex and the affine map into its barycentric coordinates.

    They are ``(X - low) @ matrix + offset``; for the corner simplex, which has
    `scale` instead of both, ``u = (X - low) * scale`` after ``1 - sum(u)``. `low` is
    subtracted first, lest large values cancel.
    """

    low: np.ndarray  # (n_features,)
    vertices: np.ndarray  # (n_features + 1, n_features), in the units of the inputs
    matrix: np.ndarray | None = None  # (n_features, n_features + 1)
    offset: np.ndarray | None = None  # (n_features + 1,)
    scale: np.ndarray | None = None  # (n_features,)

    def coordinates(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Barycentric coordinates, negative outside, shape (n_samples, n_features + 1)."""
        alpha = np.empty((X.shape[0], X.shape[1] + 1)) if out is None else out[: len(X)]
        if self.matrix is None:
            kernels.corner_coordinates(X, self.low, self.scale, alpha)
            return alpha
        # numpy takes several times as long for each of these passes over short rows
        shifted = np.empty(X.shape)
        kernels.add(X, -self.low, shifted)
        np.matmul(shifted, self.matrix, out=alpha)
        kernels.add(alpha, self.offset, alpha)
        return alpha

    @property
    def slopes(self) -> np.ndarray:
        """Gradients of the coordinates in the inputs, shape (n_features, n_features + 1)."""
        if self.matrix is None:
            return np.hstack([-self.scale[:, None], np.diag(self.scale)])
        return self.matrix


def slopes_of_simplices(
    vertices: np.ndarray, simplices: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Gradients of the functions that are affine on simplices, given their values at vertices.

    `vertices` has shape (n_vertices, n_features), `simplices` has the vertices of each simplex,
    (n_simplices, n_features + 1), and `values` are (n_outputs, n_vertices). Returns an array of
    shape (n_outputs, n_simplices, n_features).
    """
    d = vertices.shape[1]
    slopes = np.empty((len(values), len(simplices), d))
    step = max(1, SOLVED_VALUES // (d * (d + 1)))
    for start in range(0, len(simplices), step):
        some = simplices[start : start + step]
        edges = vertices[some[:, 1:]] - vertices[some[:, :1]]
        rises = np.moveaxis(values[:, some[:, 1:]] - values[:, some[:, :1]], 0, -1)
        try:
            solved = np.linalg.solve(edges, rises)
        except np.linalg.LinAlgError:  # a simplex without volume
            solved = np.linalg.pinv(edges) @ rises
        slopes[:, start : start + step] = np.moveaxis(solved, -1, 0)
    return slopes


def corner_root(low: np.ndarray, extent: np.ndarray) -> Root:
    """Build the simplex {0, d e_1, ..., d e_d} over the unit box.

    It contains the box; the box's corner (1, ..., 1) is the middle of its
    slanted face, and points with a zero lie on its other faces. `low` is the
    smallest value of each column, `extent` the largest minus the smallest (> 0).
    """
    d = len(low)
    return Root(low, np.vstack([low, low + np.diag(d * extent)]), scale=1.0 / (d * extent))


def regular_simplex(d: int) -> np.ndarray:
    """Vertices of the regular simplex of unit edges around the origin, (d + 1, d)."""
    # the d + 1 unit vectors span a regular simplex with edges sqrt(2); the
    # rows of an orthonormal basis of their hyperplane flatten it (Helmert)
    return helmert(d + 1).T / np.sqrt(2.0)


def base_simplex(kind: str, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return matrix, offset and vertices of a simplex around the origin.

    The barycentric coordinates of a point ``u`` are ``u @ matrix + offset``.
    Its size and place do not matter: `fitted_root` sets both.
    """
    if kind == "regular":
        vertices = regular_simplex(d)
        return 2.0 * vertices.T, np.full(d + 1, 1.0 / (d + 1)), vertices
    matrix = np.hstack([-np.ones((d, 1)), np.eye(d)]) / d
    centre = np.full(d, 0.5)
    offset = centre @ matrix
    offset[0] += 1.0
    return matrix, offset, np.vstack([np.zeros(d), d * np.eye(d)]) - centre


def given_root(vertices: np.ndarray) -> Root:
    """Make a root of given vertices, (d + 1, d)."""
    d = vertices.shape[1]
    affine = np.linalg.inv(np.hstack([vertices, np.ones((d + 1, 1))]))
    return Root(np.zeros(d), vertices, affine[:d], affine[d])


def fitted_root(
    kind: str,
    low: np.ndarray,
    extent: np.ndarray,
    chunks,
    rotation: np.ndarray | None = None,
    padding: float = PADDING,
) -> Root:
    """Fit a copy of a simplex around the data.

    "Copy" means moved and scaled, with all faces parallel to the original's:
    if ``m`` is the smallest value that each barycentric coordinate takes on
    the data, then ``(alpha - m) / (1 - sum(m))`` are barycentric coordinates
    in the smallest copy that contains them. `chunks` are the rows of the data,
    `rotation` is an orthogonal matrix, and `padding` moves all faces farther out:
    each coordinate gets at least about this share of the mean one, 1 / (n_features + 1).
    """
    d = len(low)
    matrix, offset, vertices = base_simplex(kind, d)
    if rotation is not None:
        matrix, vertices = rotation @ matrix, vertices @ rotation.T
    # the base is around the origin, the scaled data around (1/2, ..., 1/2)
    offset = offset - np.full(d, 0.5) @ matrix
    vertices = vertices + 0.5
    matrix = matrix / extent[:, None]
    smallest = np.full(d + 1, np.inf)
    for X in chunks:
        np.minimum(smallest, ((X - low) @ matrix + offset).min(axis=0), out=smallest)
    size = 1.0 - smallest.sum()
    if size < 1e-9:  # a single point: any simplex around it will do
        smallest -= 1.0 / (d + 1)
        size = 1.0 - smallest.sum()
    smallest -= padding * size / (d + 1) * np.linspace(1.0 - SPREAD, 1.0 + SPREAD, d + 1)
    size *= 1.0 + padding
    vertices = (smallest + size * np.eye(d + 1)) @ vertices
    return Root(low, low + vertices * extent, matrix / size, (offset - smallest) / size)


def clip_to_root(alpha: np.ndarray, X: np.ndarray | None = None) -> int:
    """Move points outside into the simplex, in place, and count them.

    Negative coordinates become zero and the rest is divided by its sum: the
    map stays continuous. Without it the coordinates of a point outside grow
    without bound from split to split. Rows outside by rounding do not count.

    `alpha` has shape (n, n_features + 1). `X` are inputs that have not been
    checked: ValueError if they contain NaN or infinity. A coordinate of such a row
    is not >= 0, so that most inputs need no check.
    """
    if kernels.none_negative(alpha):
        return 0
    if X is not None:
        assert_all_finite(X, estimator_name="NestedBarycentricMap", input_name="X")
    # not alpha.min(axis=1): short rows make it twenty times as slow
    rows = np.unique(np.flatnonzero(alpha.ravel() < 0.0) // alpha.shape[1])
    beyond = np.count_nonzero(alpha[rows].min(axis=1) < -OUTSIDE)
    inside = np.maximum(alpha[rows], 0.0)
    alpha[rows] = inside / inside.sum(axis=1, keepdims=True)
    return int(beyond)

"""`NestedBarycentricMap`, a scikit-learn transformer."""

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from kbench.estimators import column_ends
from kbench.parameters import choice, integer, number
from kbench_nbcs._base import CoordinateMap, dense, index_type, random_frame
from kbench_nbcs._forest import Forest, chunks, grow_uniform, split_points
from kbench_nbcs._margins import find_scheme, margin_metrics
from kbench_nbcs._roots import Root, clip_to_root, corner_root, fitted_root, slopes_of_simplices

# With this share of the rows on faces of the root, a uniform subdivision is a
# linear model for most of the data.
ON_FACES = 0.5


@dataclass(eq=False, repr=False)
class NestedBarycentricMap(CoordinateMap):
    """Barycentric coordinates in a nested system of simplices.

    A simplex around the data is split by a point inside it into d + 1 smaller
    ones, these are split in turn, and a row is described by its barycentric
    coordinates with respect to the smallest simplex that contains it: d + 1
    non-zeros, non-negative with sum 1, one column per vertex:
    ``x = sum_v phi_v(x) v`` over the vertices v of that simplex. A linear model on
    them is continuous and piecewise linear in the inputs.

    Parameters
    ----------
    depth : int, default 2
        Number of split stages (the paper's q, which it chooses from 2 to 5); 0 is
        the root alone, a linear map.
    split : {"barycentre", "adaptive"}, default "barycentre"
        Split every simplex that contains training points at its barycentre, or
        those where a linear classifier on the coordinates so far errs (needs
        ``y``).
    split_point : {"nearest", "mean"}, default "nearest"
        Where an adaptive split is made: at the data point nearest to the
        barycentre of the misclassified points in the simplex (the paper's text;
        its compression bound covers nothing else), or at the barycentre itself.
    root : {"corner", "regular"}, default "corner"
        {0, d e_1, ..., d e_d} over the data scaled to [0, 1] (without `rotate`;
        with it, a rotated copy around the data), or a regular simplex around
        the data, which is not in the paper. Rows with a value at the smallest of
        its column lie on faces of the corner simplex that is not rotated, where
        uniform splits change nothing: on one-hot columns it is a linear map.
    n_roots : int, default 1
        Number of roots, whose coordinates are concatenated; the paper has one.
        The coordinates of each root sum to 1, so a row has 1-norm `n_roots` and at
        most the 2-norm ``sqrt(n_roots)``; nothing is divided by it.
    rotate : bool, default False
        Rotate each root at random, which is not in the paper. Needed for several
        roots.
    min_samples_split : int, default 1
        Training points (misclassified ones where adaptive) that a simplex must
        contain to be split.
    outside : {"clip", "error"}, default "clip"
        Treatment of rows outside a root: set negative coordinates to zero
        and divide by the sum, or raise an error.
    C : float, default 1000.0
        Inverse regularisation of the linear SVM (squared hinge, one against
        rest) that finds misclassified points in adaptive splits.
    dtype : {"float64", "float32"}, default "float64"
        Type of the output; computations are in double precision.
    random_state : int, RandomState or None, default None
        Seed of the rotations.

    Attributes
    ----------
    n_splits_ : int
        Number of split points.
    n_vertices_ : int
        Number of columns: ``n_roots * (d + 1) + n_splits_``. First the vertices
        of the roots, then the split points stage by stage, so that the map of
        a smaller `depth` has the first of these columns.
    split_rows_ : ndarray of int, shape (n_splits_,)
        Training row that each split point is, -1 if it is not a row.
    converged_ : bool
        False if a classifier of an adaptive split did not converge.

    Raises
    ------
    ValueError
        A parameter has a value that is not allowed; ``split="adaptive"``
        without ``y``; rows outside with ``outside="error"``.

    Notes
    -----
    The defaults are the paper's method, which is registered as ``nbcs``. Several
    rotated roots are kbench's variant, ``nbcs-rotated``. Its ``n_roots=4`` and its
    grid were chosen on development sets: more roots help most, rotated corner
    simplices are ahead of regular ones, a third stage gives little. With
    ``n_roots=16`` accuracy is higher still at four times the cost.

    A row costs O(d) per stage, in addition to one product with a (d, d + 1) matrix per
    root (O(d) for the corner simplex without rotation). numba is used where it
    is installed; results are the same without it.

    Coordinates are of order 1/d, so a linear model on them needs a small
    penalty: C of 2**9 to 2**15 for a linear SVM.

    Where a split point has no share of some vertex (a data point on a face
    between two simplices), the neighbour is not split, and the map jumps across
    that face.

    References
    ----------
    L.-A. Gottlieb, E. Kaufman, A. Kontorovich, G. Nivasch, O. Pele, "Nested
    barycentric coordinate system as an explicit feature map", sections 2 to 4.

    Examples
    --------
    >>> import numpy as np
    >>> from kbench_nbcs import NestedBarycentricMap
    >>> X = np.array([[0.0, 0.0], [2.0, 1.0], [1.0, 3.0], [1.0, 1.0]])
    >>> nbcs = NestedBarycentricMap(depth=2, random_state=0).fit(X)
    >>> Z = nbcs.transform(X)
    >>> Z.shape[1] == nbcs.n_vertices_, Z.nnz == 4 * 3
    (True, True)
    >>> np.allclose(Z.sum(axis=1), 1), np.allclose(nbcs.inverse_transform(Z), X)
    (True, True)

    Several rotated roots, which the paper does not have:

    >>> NestedBarycentricMap(n_roots=4, rotate=True, random_state=0).fit_transform(X).nnz
    48
    """

    depth: int = integer(2, least=0)
    _: KW_ONLY
    split: str = choice("barycentre", ("barycentre", "adaptive"))
    split_point: str = choice("nearest", ("nearest", "mean"))
    root: str = choice("corner", ("regular", "corner"))
    n_roots: int = integer(1, least=1)
    rotate: bool = False
    min_samples_split: int = integer(1, least=1)
    outside: str = choice("clip", ("clip", "error"))
    C: float = number(1000.0, above=0)
    dtype: str = "float64"
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X, y):
        if self.n_roots > 1 and not self.rotate:
            raise ValueError(
                f"n_roots={self.n_roots} with rotate=False would be copies of one root; "
                "set rotate=True or n_roots=1."
            )
        if self.split == "adaptive":
            if y is None:
                raise ValueError(
                    f"This {type(self).__name__} estimator requires y to be passed, but the "
                    "target y is None: split='adaptive' splits where a classifier errs."
                )
            X, y = self._validated(X, y)
            check_classification_targets(y)
        else:
            X = self._validated(X)
        self._roots = self._place_roots(X)
        self.converged_ = True
        if self.split == "adaptive":
            self._grow_adaptive(X, y)
        else:
            self._warn_of_faces(X)
            self._forest = grow_uniform(X, self._roots, self.depth, self.min_samples_split)
            self.split_rows_ = np.full(self._forest.n_splits, -1)
        self.n_splits_ = self._forest.n_splits
        self.n_vertices_ = self._forest.n_vertices

    def _transform(self, X):
        # `clip_to_root` refuses numbers that are not finite
        return self._embed(self._validated(X, reset=False, ensure_all_finite=False))

    def _gradient(self, X, coef):
        Z = self._embed(X)
        width, vertices = self._forest.width, self.vertices_
        cells = Z.indices.reshape(len(X), len(self._roots), width)
        gradients = np.zeros((len(coef), *X.shape))
        for place, root in enumerate(self._roots):
            simplices, cell = np.unique(cells[:, place], axis=0, return_inverse=True)
            slopes = slopes_of_simplices(vertices, simplices, coef)[:, cell.ravel()]
            alpha = root.coordinates(X)
            outside = np.flatnonzero(alpha.min(axis=1) < 0.0)
            if len(outside):
                at = cells[outside, place, 0]
                slopes[:, outside] = self._clip(
                    root, alpha[outside], slopes[:, outside], vertices[at], coef[:, at]
                )
            gradients += slopes
        return gradients

    def _clip(self, root, alpha, slopes, corner, value):
        """Gradients at rows outside of a root, through `clip_to_root`.

        `slopes`, (n_outputs, n, n_features), are those of the cells that clipped rows are in, and
        `value`, (n_outputs, n), is that of the function at a `corner` of them, (n, n_features).
        """
        # the function of the cell, at the vertices of the root: its slopes in the coordinates
        offset = value - np.einsum("kni,ni->kn", slopes, corner)
        at_root = slopes @ root.vertices.T + offset[:, :, None]
        inside = np.maximum(alpha, 0.0)
        total = inside.sum(axis=1, keepdims=True)
        mean = np.einsum("knj,nj->kn", at_root, inside / total)
        return ((at_root - mean[:, :, None]) * (alpha > 0.0) / total) @ root.slopes.T

    def inverse_transform(self, Z):
        """Return the inputs that have these coordinates (equation 2 of the paper).

        Parameters
        ----------
        Z : array-like or sparse matrix of shape (n_samples, n_vertices_)
            As `transform` returns them; with several roots, the mean over the
            roots is returned.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if not sparse.issparse(Z):
            Z = np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != self.n_vertices_:
            raise ValueError(f"Z must have {self.n_vertices_} columns, got shape {Z.shape}")
        return np.asarray(Z @ self.vertices_) / len(self._roots)

    @property
    def vertices_(self):
        """Positions of the vertices in the input space, (n_vertices_, n_features)."""
        return self._forest.vertices(np.vstack([root.vertices for root in self._roots]))

    @property
    def simplices_(self):
        """Vertices of the simplices that are not split, (n_simplices, n_features + 1)."""
        return self._forest.leaves()

    @property
    def split_simplices_(self):
        """Vertices of the simplex that each split divides, (n_splits_, n_features + 1)."""
        return self._forest.split_simplices()

    @property
    def split_coordinates_(self):
        """Coordinates of the split points in these simplices, the paper's beta."""
        return self._forest.split_coordinates()

    @property
    def compression_size_(self):
        """Number of training rows that determine the map, or None if it takes all.

        Two per column for the scaling, one per face of a fitted root, and the
        split points of ``split_point="nearest"``.
        """
        d = self.n_features_in_
        if self.split == "adaptive" and self.split_point == "mean":
            return None
        faces = 0 if self.root == "corner" and not self.rotate else self.n_roots * (d + 1)
        return 2 * d + faces + int(np.count_nonzero(self.split_rows_ >= 0))

    def _place_roots(self, X) -> list[Root]:
        random_state = check_random_state(self.random_state)
        d = X.shape[1]
        low, high = column_ends(X)
        extent = high - low
        extent[extent == 0.0] = 1.0  # a constant column
        if self.root == "corner" and not self.rotate:
            return [corner_root(low, extent)]
        roots = []
        for _ in range(self.n_roots):
            rotation = random_frame(d, d, random_state) if self.rotate else None
            parts = (part for _, part in chunks(X))
            roots.append(fitted_root(self.root, low, extent, parts, rotation))
        return roots

    def _warn_of_faces(self, X):
        if self.depth == 0 or self.root != "corner" or self.rotate:
            return
        alphas = (self._roots[0].coordinates(part) for _, part in chunks(X))
        share = sum(np.count_nonzero(a.min(axis=1) < 1e-12) for a in alphas) / X.shape[0]
        if share >= ON_FACES:
            warnings.warn(
                f"{share:.0%} of the rows lie on faces of the corner simplex (a value at the "
                "smallest of its column), where a uniform subdivision is a linear map at any "
                "depth; use root='regular' or rotate=True.",
                UserWarning,
                stacklevel=4,
            )

    def _embed(self, X, leaf=None):
        """Return the embedding of validated rows."""
        n, width, n_roots = X.shape[0], self._forest.width, len(self._roots)
        per_row = n_roots * width
        integer = index_type(n * per_row)
        data = np.empty((n, per_row), dtype=self.dtype)
        indices = np.empty((n, per_row), dtype=np.int32)
        buffer = None
        for rows, part in chunks(X):
            if buffer is None:
                buffer = np.empty((len(part), width))
            for root in range(n_roots):
                alpha = self._roots[root].coordinates(part, buffer)
                outside = clip_to_root(alpha, part)
                if outside and self.outside == "error":
                    raise ValueError(
                        f"{outside} of rows {rows.start} to {rows.stop - 1} lie outside the root "
                        "simplex, which was placed around the training data; scale and clip the "
                        "inputs, or set outside='clip'."
                    )
                leaf_rows = None if leaf is None else leaf[root, rows]
                self._forest.embed(root, alpha, data[rows], indices[rows], leaf_rows)
        indptr = np.arange(0, n * per_row + 1, per_row, dtype=integer)
        arrays = data.ravel(), indices.ravel().astype(integer, copy=False), indptr
        return sparse.csr_matrix(arrays, shape=(n, self._forest.n_vertices), copy=False)

    def _grow_adaptive(self, X, y):
        """Split where a linear classifier errs, stage by stage (section 4 of the paper)."""
        n, width, n_roots = X.shape[0], X.shape[1] + 1, len(self._roots)
        self._forest = Forest.unsplit(width, n_roots, barycentric=False)
        values = dense(X)
        scaled = (values - values.min(axis=0)) / np.maximum(np.ptp(values, axis=0), 1e-300)
        leaf = np.empty((n_roots, n), dtype=np.int64)
        split_rows = []
        for _ in range(self.depth):
            Z = self._embed(X, leaf)
            wrong = self._find_misclassified(Z, y)
            alpha = Z.data.reshape(n, n_roots, width)
            parents, slots, betas = [], [], []
            for root in range(n_roots):
                keys, beta, rows = split_points(
                    scaled,
                    alpha[:, root],
                    leaf[root],
                    wrong,
                    nearest=self.split_point == "nearest",
                    min_samples_split=self.min_samples_split,
                )
                parents.append(np.where(keys < 0, -1, keys // width))
                slots.append(np.where(keys < 0, root, keys % width))
                betas.append(beta)
                split_rows.append(rows)
            if not sum(map(len, parents)):
                break
            self._forest.split(np.concatenate(parents), np.concatenate(slots), np.vstack(betas))
        self.split_rows_ = np.concatenate([np.empty(0, dtype=np.intp), *split_rows])

    def _find_misclassified(self, Z, y):
        if np.all(y == y[0]):
            return np.zeros(len(y), dtype=bool)
        classifier = LinearSVC(C=self.C, dual=False, tol=1e-3, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            classifier.fit(Z, y)
        if any(issubclass(warning.category, ConvergenceWarning) for warning in caught):
            self.converged_ = False
            warnings.warn(
                "A linear SVM of an adaptive split did not converge; a smaller C helps.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return classifier.predict(Z) != y

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.split == "adaptive"
        return tags


rotated_map = partial(NestedBarycentricMap, n_roots=4, rotate=True)
adaptive_map = partial(NestedBarycentricMap, split="adaptive")


def metrics(fitted, X, y, *, learner=None, X_train=None, y_train=None):
    """Return metrics of a fitted map on a test set, and the margins of a linear classifier.

    ``n_splits``, and ``outside``, the share of (row, root) pairs that were
    clipped. If the learner (fitted on the embedded training set) is a linear
    classifier of two classes, or one against rest or against one, also the
    `margin_metrics` of the training set: ``train_margin``,
    ``train_margin_error``, ``train_hinge_loss``, ``compression_size`` and the
    bounds, each with whether it is vacuous.
    """
    n_outside = sum(
        clip_to_root(root.coordinates(part)) for _, part in chunks(X) for root in fitted._roots
    )
    pairs = max(1, X.shape[0] * len(fitted._roots))
    values = {"n_splits": float(fitted.n_splits_), "outside": n_outside / pairs}
    if learner is not None and find_scheme(learner) is not None:
        for name, value in margin_metrics(fitted, learner, X_train, y_train).items():
            of_margins = name in ("margin", "margin_error", "hinge_loss")
            values[f"train_{name}" if of_margins else name] = value
    return values

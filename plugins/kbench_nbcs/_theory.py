"""Theorems 1 and 2 of the paper, and its generalisation bounds, with corrections.

Paper: Gottlieb, Kaufman, Kontorovich, Nivasch and Pele, "Nested barycentric
coordinate system as an explicit feature map". Corrected here:

- Theorem 2 starts from weights -1 at the vertices of the root. With a body of
  diameter 1 in the simplex of unit edges that is infeasible: the body contains
  an edge, on which the value stays -1. See `approximate_convex_body`.
- Corollary 2 is printed with ||w|| upside down, and the margin loss above it
  with its minimum and maximum exchanged. See `hinge_bound`.
- Theorem 4 leaves out the number of choices of k points out of n, which
  Corollary 2 has. See `margin_error_bound`.
"""

from dataclasses import dataclass
from math import ceil, exp, inf, log, log2, sqrt

import numpy as np
from scipy.optimize import linprog
from scipy.special import gammaln

from kbench.parameters import check_integer, check_number
from kbench_nbcs._forest import Forest, chunks
from kbench_nbcs._roots import clip_to_root, given_root, regular_simplex


def refine_weights(weights, split_simplices, split_coordinates):
    """Weights of a refined system that describe the same function (Theorem 1).

    Each new vertex gets the value that the function had there,
    ``sum_i beta_i w_i``.

    Parameters
    ----------
    weights : array-like of shape (n_vertices,)
        Weights of the coarser system.
    split_simplices : array-like of int, shape (n_splits, n_features + 1)
        Vertices of the simplex that each further split divides, in order; a
        fitted map's ``split_simplices_[n:]``, with n the splits of the coarser
        system.
    split_coordinates : array-like of shape (n_splits, n_features + 1)
        Barycentric coordinates of the split points in these simplices; a fitted
        map's ``split_coordinates_[n:]``.

    Returns
    -------
    ndarray of shape (n_vertices + n_splits,)
        `weights`, followed by those of the new vertices.

    Examples
    --------
    >>> refine_weights([0.0, 3.0, 6.0], [[0, 1, 2]], [[0.5, 0.5, 0.0]])
    array([0. , 3. , 6. , 1.5])
    """
    start = len(weights)
    refined = np.concatenate([np.asarray(weights, dtype=float), np.zeros(len(split_simplices))])
    for k, (simplex, beta) in enumerate(zip(split_simplices, split_coordinates, strict=True)):
        refined[start + k] = np.dot(beta, refined[simplex])
    return refined


@dataclass(frozen=True)
class ConvexApproximation:
    """A union of polytopes around a convex body: {x in S: w . phi(x) >= 0}.

    Parameters
    ----------
    vertices : ndarray of shape (n_vertices, n_features)
        Of the nested system, in the order of the weights.
    weights : ndarray of shape (n_vertices,)
        Minus infinity where the interior of a whole simplex is excluded.
    simplices : ndarray of int, shape (n_simplices, n_features + 1)
        Smallest simplices.
    """

    vertices: np.ndarray
    weights: np.ndarray
    simplices: np.ndarray
    _forest: Forest
    _root: object

    def decision_function(self, X):
        """Return ``w . phi(x)``, minus infinity where x is excluded or outside the root.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = np.asarray(X, dtype=float)
        values = np.empty(len(X))
        finite = np.where(np.isinf(self.weights), 0.0, self.weights)
        for rows, part in chunks(X):
            alpha = self._root.coordinates(part)
            outside = alpha.min(axis=1) < -1e-9
            clip_to_root(alpha)
            data = np.empty_like(alpha)
            indices = np.empty(alpha.shape, dtype=np.int32)
            self._forest.embed(0, alpha, data, indices)
            banned = np.where(np.isinf(self.weights)[indices], data, 0.0).sum(axis=1) > 1e-12
            values[rows] = np.where(banned | outside, -inf, (data * finite[indices]).sum(axis=1))
        return values

    def contains(self, X, tol=1e-9):
        """Test which points lie in the approximation, within `tol` of the function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        tol : float, default 1e-9
            Values above ``-tol`` count as inside.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
        """
        return self.decision_function(X) >= -tol


def approximate_convex_body(points, stages, *, root=None, initial_weight=-1.0):
    r"""Approximate a convex polytope from outside, as in the proof of Theorem 2.

    Every simplex is split at its barycentre, `stages` times, and each new
    vertex gets the smallest weight that keeps the body in
    :math:`\{x : w \cdot \phi(x) \ge 0\}`: the largest value of
    :math:`-\sum_j \alpha_j w_j / \alpha^*` over the body within the children of
    the simplex. That is a linear-fractional function, whose maximum is at a
    vertex, which a linear programme per child finds. Where the body misses
    the interior of a simplex, the weight is minus infinity.

    Parameters
    ----------
    points : array-like of shape (n_points, n_features)
        The body is their convex hull.
    stages : int
        Number of stages; there are ``((d + 1)**stages - 1) / d`` splits, and
        up to d + 1 linear programmes (about 1 ms each) per split.
    root : array-like of shape (n_features + 1, n_features), optional
        Vertices of the simplex; the regular one of unit edges around the
        origin by default.
    initial_weight : float, default -1.0
        Weight of the root's vertices. The paper's -1 needs the body in the
        interior of the root, because on a face of the root the value is never
        above those of its vertices; 1.0 allows any body in the root and takes
        more stages (excess after 6 of them for a body of a sixth of the root:
        3 % with -1, 14 % with 1).

    Returns
    -------
    ConvexApproximation

    Raises
    ------
    ValueError
        The body is not in the root, or, with a negative `initial_weight`, not
        in its interior; `initial_weight` is 0.

    Examples
    --------
    >>> square = [[0.1, 0.1], [0.1, -0.1], [-0.1, -0.1], [-0.1, 0.1]]
    >>> body = approximate_convex_body(square, stages=3)
    >>> body.contains(square).all(), body.contains([[0.0, 0.5]])
    (np.True_, array([False]))
    """
    points = np.atleast_2d(np.asarray(points, dtype=float))
    d = points.shape[1]
    simplex = given_root(regular_simplex(d) if root is None else np.asarray(root, dtype=float))
    inside = simplex.coordinates(points)
    if initial_weight == 0:
        raise ValueError(
            "initial_weight must not be 0, which would make the whole boundary of the root a zero; "
            "use -1.0 or 1.0"
        )
    if inside.min() < (-1e-9 if initial_weight > 0 else 1e-9):
        where = "in the root" if initial_weight > 0 else "in the interior of the root"
        remedy = "" if initial_weight > 0 else ", or initial_weight=1.0 for points on its faces"
        raise ValueError(
            f"points must lie {where} for initial_weight={initial_weight}; the smallest "
            f"barycentric coordinate is {inside.min():.3g}. Give a larger root{remedy}."
        )
    forest = Forest.unsplit(d + 1, 1, barycentric=True)
    weights = np.full(forest.n_vertices, float(initial_weight))
    # of each simplex: the split and slot it comes from, its vertices, the points in it
    frontier = [(-1, 0, np.arange(d + 1), np.maximum(inside, 0.0))]
    for _ in range(stages):
        first = forest.n_splits
        forest.split(*(np.array([simplex[k] for simplex in frontier]) for k in (0, 1)))
        frontier, new, parents = [], np.empty(len(frontier)), frontier
        for k, (_, _, corners, alpha) in enumerate(parents):
            missed = np.isinf(weights[corners]).any()
            best = -inf
            for i in range(d + 1):
                child = alpha - alpha[:, [i]]
                child[:, i] = (d + 1) * alpha[:, i]
                if not missed:
                    best = max(best, _smallest_weight(child, weights[corners], i))
                vertices = corners.copy()
                vertices[i] = forest.first_split + first + k
                frontier.append((first + k, i, vertices, child))
            new[k] = best
        weights = np.concatenate([weights, new])
    return ConvexApproximation(
        forest.vertices(simplex.vertices), weights, forest.leaves(), forest, simplex
    )


def _smallest_weight(alpha, weights, new):
    """Largest ``-sum_j alpha_j w_j / alpha_new`` over the hull of points, inside a simplex.

    Scaled so that ``alpha_new`` is 1 (Charnes and Cooper), this is a linear
    programme in the multipliers of the points, `alpha` (n_points, d + 1) being
    their coordinates in the simplex.
    """
    if alpha[:, new].max() <= 1e-12:
        return -inf
    others = np.arange(len(weights)) != new
    optimum = linprog(
        alpha[:, others] @ weights[others],
        A_ub=-alpha[:, others].T,
        b_ub=np.zeros(len(weights) - 1),
        A_eq=alpha[:, [new]].T,
        b_eq=[1.0],
        method="highs",
    )
    return -optimum.fun if optimum.status == 0 else -inf


def theory_stages(n_features, epsilon):
    """Stages after which Theorem 2 promises a relative excess volume below epsilon.

    The proof takes ``s = z k d`` with z the least integer such that
    ``(d / (d + 1))**z <= epsilon / (2 sqrt(2) d**2)`` and k the least such that
    ``z (1 - exp(-d))**k <= epsilon / 2``. It is far on the safe side: in the
    plane, 5 to 8 stages brought the excess below 3 %, where this gives
    thousands.

    Parameters
    ----------
    n_features : int
        Dimension d.
    epsilon : float
        Excess volume over that of the root, in (0, 1).

    Returns
    -------
    int

    Examples
    --------
    >>> theory_stages(2, 0.1)
    912
    """
    check_number(epsilon, "epsilon", above=0, below=1)
    d = n_features
    z = ceil(log(epsilon / (2 * sqrt(2) * d**2)) / log(d / (d + 1)))
    return z * ceil(log(epsilon / (2 * z)) / log(1 - exp(-d))) * d


def _log_choices(n, k, delta):
    """Logarithm of the number of ways to choose k of n, after a check of a bound's arguments."""
    check_integer(k, "k", least=0, most=n - 1)
    check_number(delta, "delta", above=0, below=1)
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def vc_bound(error, n_samples, dimension, k=0, delta=0.05, constant=144.0):
    """Bound the error by Corollary 1, the hybrid VC compression bound.

    Parameters
    ----------
    error : float
        Share of misclassified training rows.
    n_samples, dimension : int
        Training rows, and the VC dimension: for a linear classifier without
        intercept, the number of columns.
    k : int, default 0
        Training points that determine the map.
    delta : float, default 0.05
        Probability with which the bound may fail.
    constant : float, default 144
        The universal constant; 144 is the paper's (footnote 3).

    Returns
    -------
    float
        Vacuous at 1 or more.

    Examples
    --------
    >>> round(vc_bound(0.1, 10**6, 20, k=10), 3)
    0.752
    """
    m = n_samples - k
    confidence = (_log_choices(n_samples, k, delta) - log(delta)) / (2 * m)
    return error + constant * sqrt(dimension / m) + sqrt(confidence)


def hinge_bound(hinge_loss, weight_norm, n_samples, k=0, delta=0.05):
    r"""Bound the error by Corollary 2, the hybrid margin compression bound, corrected.

    .. math:: \frac1n \sum_i \max(0, 1 - y_i w \cdot \Psi(x_i))
        + \frac{4 \|w\|}{\sqrt{n - k}} + \sqrt{\frac{\log\log_2 (2 \|w\|)}{n - k}}
        + \sqrt{\frac{\log (2 \binom{n}{k} / \delta)}{2 (n - k)}}

    The paper prints ``4 / ||w||`` and ``2 / ||w||``, which would get better with
    growing weights; but the margin is ``1 / ||w||`` (Mohri et al., Theorem 4.5,
    with radius 1). Its margin loss must read ``min(1, max(0, 1 - t / gamma))``.

    Parameters
    ----------
    hinge_loss : float
        Mean hinge loss of the training rows.
    weight_norm : float
        ``||w||`` where ``||Psi(x)|| <= 1``; below 1 it counts as 1, the largest
        margin there can be.
    n_samples, k, delta
        As for `vc_bound`.

    Returns
    -------
    float
        Vacuous at 1 or more.

    Examples
    --------
    >>> round(hinge_bound(0.05, 5.0, 100_000, k=20), 3)
    0.148
    """
    m, norm = n_samples - k, max(1.0, weight_norm)
    confidence = (_log_choices(n_samples, k, delta) + log(2 / delta)) / (2 * m)
    return hinge_loss + 4 * norm / sqrt(m) + sqrt(log(log2(2 * norm)) / m) + sqrt(confidence)


def margin_error_bound(margin_error, margin, n_samples, depth, k=0, delta=0.05):
    r"""Bound the error by Theorem 3 (k = 0) or 4, with constants 1.

    .. math:: \hat R_\gamma + \frac{1}{\gamma \sqrt{n - k}}
        + \sqrt{\frac{\log (q \binom{n}{k} / \delta)}{n - k}}

    The theorems give orders only; every constant is taken to be 1, so that the
    value shows how the bound moves and is not itself guaranteed. Theorem 4
    leaves out the binomial coefficient; Corollary 2, from which it is said to
    follow, has it.

    Parameters
    ----------
    margin_error : float
        Share of training rows with a margin below `margin`.
    margin : float
        gamma, for ``||w|| = 1`` and ``||Psi(x)|| <= 1``.
    n_samples, k, delta
        As for `vc_bound`.
    depth : int
        Stages, the paper's q.

    Returns
    -------
    float
        Vacuous at 1 or more.

    Examples
    --------
    >>> round(margin_error_bound(0.05, 0.2, 100_000, depth=3, k=20), 3)
    0.11
    """
    m = n_samples - k
    confidence = (log(max(1, depth) / delta) + _log_choices(n_samples, k, delta)) / m
    return margin_error + 1 / (margin * sqrt(m)) + sqrt(confidence)

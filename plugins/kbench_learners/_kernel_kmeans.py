"""k-means in the space of a kernel."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.parameters import check_integer
from kbench_learners._kernel_machine import KernelMixin, kernel_sums


@dataclass(frozen=True)
class Clustering:
    """Labels, their inertia, and the iterations that led to them."""

    labels: np.ndarray
    inertia: float
    n_iter: int
    converged: bool


def lloyd(K, diagonal, labels, n_clusters: int, max_iter: int) -> Clustering:
    """Run Lloyd's iterations from `labels`, given a Gram matrix and its diagonal.

    ``||phi(x) - m_c||^2 = k(x, x) - 2 mean_j k(x, x_j) + mean_jl k(x_j, x_l)``
    over the members j, l of cluster c. An empty cluster gets the row that is
    farthest from its centre. The result has converged where no row moved.
    """
    rows = np.arange(len(K))
    converged = False
    n_iter = 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        distances = _distances(K, diagonal, labels, n_clusters)
        moved = distances.argmin(axis=1)
        # a row moves only if that brings it nearer: ties must not cycle
        own = distances[rows, labels]
        moved = np.where(distances[rows, moved] < own, moved, labels)
        for empty in np.setdiff1d(np.arange(n_clusters), moved):
            sizes = np.bincount(moved, minlength=n_clusters)
            far = np.where(sizes[moved] > 1, distances[rows, moved], -np.inf).argmax()
            moved[far] = empty
        converged = bool((moved == labels).all())
        labels = moved
    distances = _distances(K, diagonal, labels, n_clusters)
    inertia = float(np.maximum(distances[rows, labels], 0).sum())
    return Clustering(labels, inertia, n_iter, converged)


def _memberships(labels, n_clusters):
    """Divide the indicator of each cluster by its size, shape (n, n_clusters)."""
    H = np.zeros((len(labels), n_clusters))
    H[np.arange(len(labels)), labels] = 1.0
    return H / np.maximum(H.sum(axis=0), 1)


def _distances(K, diagonal, labels, n_clusters):
    H = _memberships(labels, n_clusters)
    means = K @ H
    distances = diagonal[:, None] - 2 * means + np.einsum("ic,ic->c", H, means)
    distances[:, ~H.any(axis=0)] = np.inf
    return distances


def seeded_labels(K, diagonal, n_clusters, rng):
    """Draw first centres as k-means++ does, and assign each row to the nearest.

    Each centre is a row, drawn with probability proportional to its squared
    distance to the centres so far (Arthur and Vassilvitskii, 2007).
    """
    n = len(K)
    centres = [int(rng.randint(n))]
    nearest = np.full(n, np.inf)
    labels = np.zeros(n, dtype=np.intp)
    while True:
        c = centres[-1]
        distances = np.maximum(diagonal - 2 * K[:, c] + diagonal[c], 0.0)
        nearer = distances < nearest
        nearer[c] = True
        labels[nearer] = len(centres) - 1
        nearest = np.minimum(nearest, distances)
        if len(centres) == n_clusters:
            return labels
        weights = nearest.copy()
        weights[centres] = 0.0
        if not weights.any():  # fewer different rows than clusters
            weights = np.ones(n)
            weights[centres] = 0.0
        centres.append(int(rng.choice(n, p=weights / weights.sum())))


class KernelKMeans(KernelMixin, ClusterMixin, BaseEstimator):
    """k-means with the distances of a kernel's space.

    I. S. Dhillon, Y. Guan and B. Kulis, "Kernel k-means, spectral clustering
    and normalized cuts", KDD 2004. The Gram matrix of the training rows is
    formed.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of clusters, at most the number of rows.
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    n_init : int, default 5
        Starts, of which the one with the least inertia is kept.
    max_iter : int, default 300
        Iterations of each start at most.
    random_state : int, RandomState or None, default None
        Determines the starts.

    Attributes
    ----------
    labels_ : ndarray of int, shape (n_samples,)
        Cluster of each training row.
    inertia_ : float
        Sum of squared distances to the centres, in the kernel's space.
    kernel_ : Kernel
        The kernel, its bandwidth set.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        No row moved in its last iteration; otherwise there is a
        ConvergenceWarning.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> labels = KernelKMeans(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    def __init__(self, n_clusters=8, kernel="gaussian", n_init=5, max_iter=300, random_state=None):
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y=None):
        """Cluster the rows.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or a square Gram matrix with a precomputed kernel.
        y : ignored
            There are no labels.

        Returns
        -------
        self
            The fitted clusterer.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        for name in ("n_clusters", "n_init", "max_iter"):
            check_integer(getattr(self, name), name, least=1)
        if self.n_clusters > X.shape[0]:
            raise ValueError(
                f"n_clusters must be at most n_samples = {X.shape[0]}, got {self.n_clusters}"
            )
        rng = check_random_state(self.random_state)
        self._rows, K = self._training_gram(X)
        diagonal = np.array(self.kernel_.diag(X))
        starts = (seeded_labels(K, diagonal, self.n_clusters, rng) for _ in range(self.n_init))
        clusterings = [
            lloyd(K, diagonal, labels, self.n_clusters, self.max_iter) for labels in starts
        ]
        best = min(clusterings, key=lambda clustering: clustering.inertia)
        self.labels_, self.inertia_ = best.labels, best.inertia
        self.n_iter_, self.converged_ = best.n_iter, best.converged
        self._memberships = _memberships(best.labels, self.n_clusters)
        self._norms = np.einsum("ic,ic->c", self._memberships, K @ self._memberships)
        if not best.converged:
            warnings.warn(
                f"rows still moved after max_iter={self.max_iter} iterations",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X):
        """Assign rows to the nearest centres.

        Parameters
        ----------
        X : array or CSR matrix, shape (n_samples, n_features)
            Inputs, or similarities to the training rows.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Clusters.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        zeros = np.zeros(self.n_clusters)
        means = kernel_sums(self.kernel_, X, self._rows, self._memberships.T, zeros)
        # k(x, x) is the same for all centres
        return (self._norms - 2 * means).argmin(axis=1)

"""k-means in the space of a kernel."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench.arrays import inverse_roots
from kbench.estimators import ExplicitMap
from kbench.kernels import Precomputed, resolve_kernel
from kbench.parameters import check_parameters, integer
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
    farthest from its centre. The result has converged if no row moved.
    """
    rows = np.arange(len(K))
    converged = False
    n_iter = 0
    while not converged and n_iter < max_iter:
        n_iter += 1
        distances = _distances(K, diagonal, labels, n_clusters)
        moved = distances.argmin(axis=1)
        # a row moves only if that brings it nearer: ties must not cycle
        moved = np.where(distances[rows, moved] < distances[rows, labels], moved, labels)
        for empty in np.setdiff1d(np.arange(n_clusters), moved):
            sizes = np.bincount(moved, minlength=n_clusters)
            moved[np.where(sizes[moved] > 1, distances[rows, moved], -np.inf).argmax()] = empty
        converged = bool((moved == labels).all())
        labels = moved
    distances = _distances(K, diagonal, labels, n_clusters)
    inertia = float(np.maximum(distances[rows, labels], 0).sum())
    return Clustering(labels, inertia, n_iter, converged)


def _memberships(labels, n_clusters):
    """Divide the indicator of each cluster by its size, shape (n_clusters, n).

    The matrix is sparse: the means over all clusters cost as much as those over one.
    """
    n = len(labels)
    shares = 1.0 / np.bincount(labels, minlength=n_clusters)[labels]
    return sp.csr_matrix((shares, (labels, np.arange(n))), shape=(n_clusters, n))


def _distances(K, diagonal, labels, n_clusters):
    H = _memberships(labels, n_clusters)
    means = (H @ K).T  # K is symmetric
    distances = diagonal[:, None] - 2 * means + _squared_norms(H, means)
    distances[:, np.diff(H.indptr) == 0] = np.inf
    return distances


def _squared_norms(H, means):
    """``||m_c||^2 = mean_jl k(x_j, x_l)`` of the centres, given the means of K over clusters."""
    return np.asarray(H.multiply(means.T).sum(axis=1)).ravel()


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


@dataclass(eq=False, repr=False)
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

    n_clusters: int = integer(8, least=1)
    kernel: object = "gaussian"
    n_init: int = integer(5, least=1)
    max_iter: int = integer(300, least=1)
    random_state: int | np.random.RandomState | None = None

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
        check_parameters(self)
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
        self._norms = _squared_norms(self._memberships, (self._memberships @ K).T)
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
        # k(x, x) is the same for all centres
        return (self._norms - 2 * self._products(X)).argmin(axis=1)

    def _products(self, X) -> np.ndarray:
        """Return the inner products of validated rows with the centres."""
        zeros = np.zeros(self.n_clusters)
        return kernel_sums(self.kernel_, X, self._rows, self._memberships, zeros)


@dataclass(eq=False, repr=False)
class KernelKMeansMap(ExplicitMap):
    """Similarities to the centres of kernel k-means.

    ``phi_c(x) = mean_j k(x, x_j) / ||m_c||`` over the members j of cluster c: the
    inner product with its centre ``m_c`` in the kernel's space, which is
    scaled to length 1. The centres of I. S. Dhillon, Y. Guan and B. Kulis, "Kernel
    k-means, spectral clustering and normalized cuts", KDD 2004, are those of
    at most `max_rows` random training rows, with which every new row is compared.

    Parameters
    ----------
    n_components : int, default 100
        Clusters, hence features; at most the rows that are clustered.
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``.
    max_rows : int, default 2000
        Maximum number of training rows that are clustered; of more rows, a random sample
        of this size. Their Gram matrix is formed.
    n_init : int, default 1
        Starts, of which the one with the least inertia is kept.
    max_iter : int, default 300
        Iterations of each start at most.
    random_state : int, RandomState or None, default None
        Determines the rows and the starts.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, its bandwidth set on all training rows.
    kmeans_ : KernelKMeans
        The clustering.
    n_iter_ : int
        Iterations of the best start.
    converged_ : bool
        Whether the clustering converged.

    Examples
    --------
    >>> import numpy as np
    >>> from kbench.kernels import Gaussian
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> KernelKMeansMap(2, Gaussian(1.0), random_state=0).fit_transform(X).round(2)
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    takes_lazy_rows = True
    _dtypes = (np.float64,)

    n_components: int = integer(100, least=1)
    kernel: object = "gaussian"
    max_rows: int = integer(2000, least=1)
    n_init: int = integer(1, least=1)
    max_iter: int = integer(300, least=1)
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X):
        self.kernel_ = resolve_kernel(self.kernel).resolve(X)
        if isinstance(self.kernel_, Precomputed):
            raise ValueError("kernel must compare inputs, got a precomputed one")
        rng = check_random_state(self.random_state)
        if X.shape[0] > self.max_rows:
            X = X[np.sort(rng.permutation(X.shape[0])[: self.max_rows])]
        n_clusters = min(self.n_components, X.shape[0])
        self.kmeans_ = KernelKMeans(n_clusters, self.kernel_, self.n_init, self.max_iter, rng).fit(
            X[:]
        )
        self.n_iter_, self.converged_ = self.kmeans_.n_iter_, self.kmeans_.converged_
        self._scales = inverse_roots(np.maximum(self.kmeans_._norms, 0.0))
        return n_clusters

    def _transform(self, X):
        return self.kmeans_._products(X) * self._scales

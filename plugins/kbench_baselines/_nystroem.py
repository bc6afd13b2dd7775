"""Nystroem approximations on landmarks that are chosen in one of four ways.

Where landmarks are chosen, every `kernel` is a function: ``kernel(X, Y)`` is a Gram matrix. `X`
is an ndarray or a CSR matrix of shape (n_samples, n_features), `rng` a RandomState.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import issparse
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.metaestimators import available_if

from kbench.arrays import empty, like, namespace, on_host, take, take_columns
from kbench.estimators import InputGradient
from kbench.kernels import Gaussian, Laplace
from kbench.parameters import check_choice, choice, integer
from kbench_baselines._base import BandwidthMap, dense, resolve_bandwidth


def kernel_diagonal(kernel, X, block=128):
    """Diagonal of ``kernel(X, X)``, shape (n_samples,).

    From ``kernel.diag(X)`` if the kernel has this method, else in small blocks.
    """
    if hasattr(kernel, "diag"):
        return np.asarray(kernel.diag(X), dtype=np.float64)
    parts = [
        np.diag(kernel(X[start : start + block], X[start : start + block]))
        for start in range(0, X.shape[0], block)
    ]
    return np.concatenate(parts).astype(np.float64)


def distinct_rows(X):
    """Positions of the first of each set of equal rows."""
    if issparse(X):
        X.sort_indices()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = ((X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends)
    else:
        keys = (row.tobytes() for row in X)
    first = {}
    for position, key in enumerate(keys):
        first.setdefault(key, position)
    return np.fromiter(first.values(), dtype=np.intp)


def kmeans_centres(X, n_landmarks, rng, max_iter=5):
    """Centres of k-means: Zhang, Tsang and Kwok (2008), section 3.3.

    From a k-means++ start, after which few iterations are enough: later ones
    move the centres too little to matter for the approximation. Where `X` has no
    more different rows than `n_landmarks`, they are returned.
    """
    distinct = distinct_rows(X)
    if len(distinct) <= n_landmarks:
        return X[distinct]
    means = KMeans(n_landmarks, n_init=1, max_iter=max_iter, random_state=rng)
    return means.fit(X).cluster_centers_


def rpcholesky_pivots(kernel, X, n_landmarks, rng, tol=1e-12):
    """Pivots of randomly pivoted Cholesky.

    Each pivot is drawn with probability proportional to the diagonal of what
    the pivots before it leave of the Gram matrix: Chen, Epperly, Tropp and
    Webber (2022), algorithm 1. Here many are proposed at once and thinned by
    rejection, which draws from the same distribution with matrix products in
    place of matrix-vector products: Epperly, Tropp and Webber (2024),
    algorithm 2.2.

    Returns the positions of at most `n_landmarks` different rows, in the order
    drawn: it stops where less than `tol` of the trace is left.
    """
    n_samples = X.shape[0]
    residual = kernel_diagonal(kernel, X)
    trace = residual.sum()
    factor = np.empty((n_samples, n_landmarks), order="F")
    pivots = np.empty(n_landmarks, dtype=np.intp)
    done = 0
    block = max(10, n_landmarks // 8)
    while done < n_landmarks and residual.sum() > tol * trace:
        proposed = rng.choice(n_samples, size=block, p=residual / residual.sum())
        F = factor[:, :done]
        rows = X[proposed]
        H = np.asarray(kernel(rows, rows), dtype=np.float64) - F[proposed] @ F[proposed].T
        accepted, L = _thin(H, rng.uniform(size=block) * residual[proposed])
        accepted = accepted[: n_landmarks - done]
        L = L[: len(accepted), : len(accepted)]
        chosen = proposed[accepted]
        if len(chosen) == 0:
            # rounding has eaten the residual of every proposed row
            residual[proposed] = 0.0
            continue
        G = np.asarray(kernel(X, X[chosen]), dtype=np.float64) - F @ F[chosen].T
        new = solve_triangular(L, G.T, lower=True, check_finite=False).T
        factor[:, done : done + len(chosen)] = new
        residual = np.maximum(residual - np.einsum("ij,ij->i", new, new), 0.0)
        residual[chosen] = 0.0
        pivots[done : done + len(chosen)] = chosen
        done += len(chosen)
    return pivots[:done]


def _thin(H, thresholds):
    """Accept each proposal whose residual, given those before it, beats its threshold.

    Returns the accepted positions and the Cholesky factor of their block of H.
    """
    H = H.copy()
    L = np.zeros_like(H)
    first = np.diag(H).copy()
    accepted = []
    for i in range(len(H)):
        # a repeated row leaves only rounding errors
        if H[i, i] > thresholds[i] and H[i, i] > 1e-10 * first[i]:
            k = len(accepted)
            L[i:, k] = H[i:, i] / np.sqrt(H[i, i])
            H[i:, i:] -= np.outer(L[i:, k], L[i:, k])
            accepted.append(i)
    return np.asarray(accepted, dtype=np.intp), L[accepted]


def leverage_rows(kernel, X, n_landmarks, rng):
    """Rows drawn by approximate ridge leverage scores.

    Musco and Musco (2017), algorithm 3: scores of a set of rows are estimated
    from a weighted sample of its random half, level by level, so that time is
    linear in the number of rows. The ridge is the mean of the eigenvalues
    beyond the k-th, (trace - sum of the k largest) / k, with
    ``k = n_landmarks / (4 log n_landmarks)``.

    Returns the positions of `n_landmarks` different rows; there must be as many.
    """
    n_samples = X.shape[0]
    order = rng.permutation(n_samples)
    diagonal = kernel_diagonal(kernel, X)
    oversampling = max(1.0, np.log(n_landmarks))
    rank = int(np.ceil(n_landmarks / (4 * oversampling)))
    n_levels = max(1, int(np.ceil(np.log2(n_samples / n_landmarks))))
    sample = order[:n_landmarks]
    weights = np.ones(len(sample))
    for level in range(n_levels - 1, -1, -1):
        rows = order[: int(np.ceil(n_samples / 2**level))]
        scores = _ridge_scores(kernel, X[rows], diagonal[rows], X[sample], weights, rank)
        if level:
            chance = np.minimum(1.0, oversampling * scores)
            taken = rng.uniform(size=len(rows)) < chance
            if not taken.any():
                chance = np.full(len(rows), n_landmarks / len(rows))
                taken[:n_landmarks] = True
            sample, weights = rows[taken], 1 / np.sqrt(chance[taken])
    scores = np.maximum(scores, 1e-12 * scores.max()) if scores.max() > 0 else np.ones(len(rows))
    return rows[rng.choice(len(rows), size=n_landmarks, replace=False, p=scores / scores.sum())]


def _ridge_scores(kernel, X, diagonal, sample, weights, rank):
    """Estimate ridge leverage scores of the rows of X from a weighted sample.

    Musco and Musco (2017), definition 2 and lemma 6:
    ``(K - K S (S^T K S + ridge I)^-1 S^T K)_ii / ridge``.
    """
    inner = np.asarray(kernel(sample, sample), dtype=np.float64) * np.outer(weights, weights)
    values, vectors = np.linalg.eigh(inner)
    ridge = max((values.sum() - values[-rank:].sum()) / rank, 1e-6 * values[-1] / len(values))
    # (K S) V / sqrt(values + ridge), whose squared row norms are what is explained
    half = weights[:, None] * vectors / np.sqrt(np.maximum(values, 0.0) + ridge)
    scores = np.empty(X.shape[0])
    for part in gen_batches(X.shape[0], 2048):
        explained = np.asarray(kernel(X[part], sample), dtype=np.float64) @ half
        scores[part] = diagonal[part] - np.einsum("ij,ij->i", explained, explained)
    return np.clip(scores / ridge, 0.0, 1.0)


def inverse_root(K, dtype):
    """Symmetric pseudo-inverse square root of a Gram matrix, in `dtype`.

    `K` is positive semidefinite up to rounding. Eigenvalues below 10 times the
    precision of `dtype`, relative to the largest, are rounding errors and left out.

    Examples
    --------
    >>> import numpy as np
    >>> inverse_root(np.diag([4.0, 0.0]), np.float64)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    xp = namespace(K)
    values, vectors = xp.linalg.eigh(xp.asarray(K, dtype=xp.float64))
    kept = values > 10 * float(xp.finfo(dtype).eps) * max(float(values[-1]), 0.0)
    vectors = take_columns(vectors, kept)
    return xp.astype((vectors / xp.sqrt(values[kept])) @ vectors.T, dtype)


_NAMED_KERNELS = {"rbf": (Gaussian, "l2"), "laplacian": (Laplace, "l1")}
"""Class of the kernel, and the metric of its bandwidth."""


@dataclass(eq=False, repr=False)
class NystroemMap(InputGradient, BandwidthMap):
    """Nystroem approximation on uniform, k-means, RPCholesky or leverage score landmarks.

    ``phi(x) = K_LL^(-1/2) (k(x, l_1), ..., k(x, l_D))`` with landmarks l_i. With
    uniform landmarks these are the features of scikit-learn's ``Nystroem`` (same
    landmarks at the same seed), with a bandwidth relative to the training data, no
    warning if the data have fewer rows than `n_components`, and float32 without noise.

    Parameters
    ----------
    n_components : int, default 300
        Number of landmarks, hence of features; at most the training rows, for
        "kmeans" the different rows, for "rpcholesky" the numerical rank of the
        Gram matrix.
    landmarks : {"uniform", "kmeans", "rpcholesky", "leverage"}, default "uniform"
        Landmarks are random training rows [1]_; the centres of k-means on them [2]_;
        pivots of randomly pivoted Cholesky, each drawn with a probability
        proportional to the residual diagonal of the Gram matrix [3]_ [4]_; or
        rows drawn by an estimate of their ridge leverage score
        ``(K (K + lambda I)^-1)_ii`` [5]_.
    kernel : "rbf", "laplacian" or callable, default "rbf"
        ``exp(-||x-z||_2^2 / (2 bandwidth^2))``, ``exp(-||x-z||_1 / bandwidth)``, or
        ``kernel(X, Y)`` that returns a Gram matrix. A callable with a method ``resolve(X)`` is
        resolved on the training data.
    bandwidth : float or "median", default "median"
        Parameter of the named kernels; "median" is the median distance between training
        rows (of at most 500 of them) in the kernel's norm.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    n_candidates : int, default 20000
        Maximum number of training rows that are clustered, or among which landmarks
        are chosen; of more rows, a random sample of this size. "rpcholesky" needs
        ``8 n_candidates n_components`` bytes. Without effect on "uniform".
    random_state : int, RandomState or None, default None
        Seed of the landmarks.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of a named kernel, its factor included.
    kernel_ : callable
        ``kernel_(X, Y)`` is the Gram matrix that is approximated.
    components_ : {ndarray, CSR matrix}, shape (n_landmarks, n_features)
        The landmarks.
    component_indices_ : ndarray of int, shape (n_landmarks,), or None
        Their rows in the training data; None for centres of k-means.
    normalization_ : ndarray, shape (n_landmarks, n_landmarks)
        Inverse square root of their Gram matrix.

    References
    ----------
    .. [1] C. K. I. Williams and M. Seeger, Using the Nystroem method to speed up
       kernel machines, NIPS 2000, eq. (10).
    .. [2] K. Zhang, I. W. Tsang and J. T. Kwok, Improved Nystroem low-rank
       approximation and error analysis, ICML 2008, section 3.3.
    .. [3] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, Randomly pivoted
       Cholesky, arXiv:2207.06503 (2022), algorithm 1.
    .. [4] E. N. Epperly, J. A. Tropp and R. J. Webber, Embrace rejection,
       arXiv:2410.03969 (2024).
    .. [5] C. Musco and C. Musco, Recursive sampling for the Nystroem method, NIPS
       2017, algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.RandomState(0).normal(size=(150, 2))
    >>> NystroemMap(n_components=20, random_state=0).fit_transform(X).shape
    (150, 20)
    >>> NystroemMap(20, landmarks="kmeans", random_state=0).fit_transform(X).shape
    (150, 20)
    """

    takes_any_namespace = True

    n_components: int = integer(300, least=1)
    _: KW_ONLY
    landmarks: str = choice("uniform", ("uniform", "kmeans", "rpcholesky", "leverage"))
    kernel: object = "rbf"
    n_candidates: int = integer(20_000, least=1)

    def _fit(self, X):
        self._resolve_kernel(X)
        rng = check_random_state(self.random_state)
        self.components_, self.component_indices_ = self._choose_landmarks(X, rng)
        exact = like(self.components_, X, namespace(X).float64)
        self.normalization_ = inverse_root(self.kernel_(exact, exact), X.dtype)
        return self.components_.shape[0]

    def _resolve_kernel(self, X):
        if callable(self.kernel):
            # kernels that take numbers from the data, such as a median bandwidth
            resolve = getattr(self.kernel, "resolve", None)
            self.kernel_ = self.kernel if resolve is None else resolve(X)
            return
        alternative = "a callable kernel(X, Y) that returns a Gram matrix"
        check_choice(self.kernel, "kernel", _NAMED_KERNELS, otherwise=alternative)
        make, metric = _NAMED_KERNELS[self.kernel]
        self.bandwidth_ = resolve_bandwidth(self, X, metric)
        self.kernel_ = make(bandwidth=self.bandwidth_)

    def _choose_landmarks(self, X, rng):
        """Return landmarks, shape (m, n_features), and their rows in X or None."""
        n_samples = X.shape[0]
        n_landmarks = min(self.n_components, n_samples)
        if self.landmarks == "uniform":
            rows = rng.permutation(n_samples)[:n_landmarks]
            return take(X, rows), rows
        candidates = np.arange(n_samples)
        if n_samples > self.n_candidates:
            n_candidates = max(self.n_candidates, self.n_components)
            candidates = np.sort(rng.permutation(n_samples)[:n_candidates])
        if self.landmarks == "kmeans":
            return like(kmeans_centres(on_host(take(X, candidates)), n_landmarks, rng), X), None
        choose = rpcholesky_pivots if self.landmarks == "rpcholesky" else leverage_rows
        pool = on_host(take(X, candidates)).astype(np.float64, copy=False)
        rows = candidates[choose(self.kernel_, pool, n_landmarks, rng)]
        return take(X, rows), rows

    def _transform(self, X):
        features = empty((X.shape[0], self._n_features_out), X)
        landmarks, normalization = like(self.components_, X), like(self.normalization_, X)
        # blocks that stay in the cache, and bound the memory
        for part in gen_batches(X.shape[0], 2048):
            K = self.kernel_(take(X, part), landmarks)
            if isinstance(features, np.ndarray):
                np.matmul(K, normalization, out=features[part])
            else:
                features[part, :] = K @ normalization
        return features

    def _has_gradient(self):
        """Whether the kernel has a gradient; an AttributeError names those that do."""
        kernel = self.kernel
        if isinstance(kernel, str) or getattr(kernel, "is_differentiable", False):
            return True
        raise AttributeError(
            f"NystroemMap has no gradient with kernel={kernel!r}; kernels with one are "
            f"{', '.join(map(repr, _NAMED_KERNELS))}, those of distances and of inner products "
            "in kbench.kernels (except 'cosine'), their sums and their multiples"
        )

    input_gradient = available_if(_has_gradient)(InputGradient.input_gradient)

    def _gradient(self, X, coef):
        landmarks = like(dense(self.components_), X)
        return self.kernel_.input_gradient(X, landmarks, coef @ like(self.normalization_, X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        named = isinstance(self.kernel, str)
        tags.array_api_support = named or getattr(self.kernel, "takes_any_namespace", False)
        return tags


kmeans_nystroem = partial(NystroemMap, landmarks="kmeans")
rpcholesky_nystroem = partial(NystroemMap, landmarks="rpcholesky")
leverage_nystroem = partial(NystroemMap, landmarks="leverage")


def nystroem_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `NystroemMap`."""
    return fitted.kernel_(X, Y)

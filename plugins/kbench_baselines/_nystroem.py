"""Nystroem approximations on landmarks that are chosen in one of four ways."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from kbench.kernels import Gaussian, LaplaceL1
from kbench.parameters import check_choice, check_integer
from kbench_baselines._bandwidth import resolve_bandwidth
from kbench_baselines._base import DifferentiableMap, dense
from kbench_baselines._landmarks import kmeans_centres, leverage_rows, rpcholesky_pivots


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
    values, vectors = np.linalg.eigh(np.asarray(K, dtype=np.float64))
    kept = values > 10 * np.finfo(dtype).eps * max(values[-1], 0.0)
    vectors = vectors[:, kept]
    return ((vectors / np.sqrt(values[kept])) @ vectors.T).astype(dtype)


_NAMED_KERNELS = {"rbf": (Gaussian, "l2"), "laplacian": (LaplaceL1, "l1")}
"""Class of the kernel, and the metric of its bandwidth."""


class NystroemMap(DifferentiableMap):
    """Nystroem approximation on uniform, k-means, RPCholesky or leverage score landmarks.

    ``phi(x) = K_LL^(-1/2) (k(x, l_1), ..., k(x, l_D))`` with landmarks l_i. With
    uniform landmarks these are the features of scikit-learn's ``Nystroem`` (same
    landmarks at the same seed), with a bandwidth relative to the training data, no
    warning where there are fewer rows than `n_components`, and float32 without noise.

    Parameters
    ----------
    n_components : int, default 300
        Number of landmarks, hence of features; at most the training rows, for
        "kmeans" the different rows, for "rpcholesky" the numerical rank of the
        Gram matrix.
    landmarks : {"uniform", "kmeans", "rpcholesky", "leverage"}, default "uniform"
        Landmarks are random training rows [1]_; the centres of k-means on them [2]_;
        pivots of randomly pivoted Cholesky, each drawn with a probability
        proportional to what is left of the diagonal of the Gram matrix [3]_ [4]_; or
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
        Largest number of training rows that are clustered, or among which landmarks
        are chosen; of more, so many are drawn at random. "rpcholesky" needs
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

    def __init__(
        self,
        n_components=300,
        *,
        landmarks="uniform",
        kernel="rbf",
        bandwidth="median",
        bandwidth_factor=1.0,
        n_candidates=20_000,
        random_state=None,
    ):
        self.n_components = n_components
        self.landmarks = landmarks
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.n_candidates = n_candidates
        self.random_state = random_state

    def _fit(self, X):
        check_integer(self.n_components, "n_components", least=1)
        check_choice(self.landmarks, "landmarks", ("uniform", "kmeans", "rpcholesky", "leverage"))
        check_integer(self.n_candidates, "n_candidates", least=1)
        self._resolve_kernel(X)
        rng = check_random_state(self.random_state)
        self.components_, self.component_indices_ = self._choose_landmarks(X, rng)
        exact = self.components_.astype(np.float64, copy=False)
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
            return X[rows], rows
        candidates = np.arange(n_samples)
        if n_samples > self.n_candidates:
            n_candidates = max(self.n_candidates, self.n_components)
            candidates = np.sort(rng.permutation(n_samples)[:n_candidates])
        if self.landmarks == "kmeans":
            return kmeans_centres(X[candidates], n_landmarks, rng), None
        choose = rpcholesky_pivots if self.landmarks == "rpcholesky" else leverage_rows
        pool = X[candidates].astype(np.float64, copy=False)
        rows = candidates[choose(self.kernel_, pool, n_landmarks, rng)]
        return X[rows], rows

    def _transform(self, X):
        features = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        landmarks = self.components_.astype(X.dtype, copy=False)
        normalization = self.normalization_.astype(X.dtype, copy=False)
        # blocks that stay in the cache, and bound the memory
        for start in range(0, X.shape[0], 2048):
            part = slice(start, start + 2048)
            np.matmul(self.kernel_(X[part], landmarks), normalization, out=features[part])
        return features

    def _has_gradient(self):
        """Whether the kernel has a gradient; an AttributeError names those that do."""
        kernel = self.kernel
        if isinstance(kernel, str) or getattr(kernel, "is_differentiable", False):
            return True
        raise AttributeError(
            f"NystroemMap has no gradient with kernel={kernel!r}; kernels with one are "
            f"{', '.join(map(repr, _NAMED_KERNELS))}, those of distances and of inner products "
            "in kbench.kernels (but for 'cosine'), their sums and their multiples"
        )

    input_gradient = available_if(_has_gradient)(DifferentiableMap.input_gradient)

    def _gradient(self, X, coef):
        landmarks = dense(self.components_).astype(np.float64, copy=False)
        return self.kernel_.input_gradient(X, landmarks, coef @ self.normalization_)


kmeans_nystroem = partial(NystroemMap, landmarks="kmeans")
rpcholesky_nystroem = partial(NystroemMap, landmarks="rpcholesky")
leverage_nystroem = partial(NystroemMap, landmarks="leverage")


def nystroem_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `NystroemMap`."""
    return fitted.kernel_(X, Y)

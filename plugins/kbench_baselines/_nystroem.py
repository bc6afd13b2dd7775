"""Nystroem approximations that differ in how they choose their landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench_baselines._bandwidth import resolve_gamma
from kbench_baselines._base import FLOATS
from kbench_baselines._checks import check_count
from kbench_baselines._landmarks import kmeans_centres, leverage_rows, rpcholesky_pivots


def inverse_root(K, dtype):
    """Symmetric pseudo-inverse square root of a Gram matrix.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        Symmetric, positive semidefinite up to rounding.
    dtype : dtype
        What the result will be multiplied with: eigenvalues below 10 times its
        precision relative to the largest are rounding errors, and left out.

    Returns
    -------
    ndarray of dtype, shape (n, n)

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


@dataclass(frozen=True)
class _Stationary:
    """A kernel of scikit-learn with its parameter, and a diagonal of ones."""

    function: Callable
    gamma: float

    def __call__(self, X, Y):
        return self.function(X, Y, gamma=self.gamma)

    def diag(self, X):
        return np.ones(X.shape[0])


class _Nystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features ``K(x, landmarks) K(landmarks, landmarks)^(-1/2)``."""

    def _choose(self, X, n_landmarks, rng):
        """Return landmarks, shape (m, n_features), and their rows in X or None."""
        raise NotImplementedError

    def fit(self, X, y=None):
        """Resolve the kernel on `X` and choose the landmarks.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Training data.
        y : ignored

        Returns
        -------
        self
        """
        check_count(self, "n_components")
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        self._resolve_kernel(X)
        n_landmarks = min(self.n_components, X.shape[0])
        rng = check_random_state(self.random_state)
        landmarks, rows = self._choose(X, n_landmarks, rng)
        self.components_ = landmarks
        if rows is not None:
            self.component_indices_ = rows
        exact = landmarks.astype(np.float64, copy=False)
        self.normalization_ = inverse_root(self.kernel_(exact, exact), X.dtype)
        self._n_features_out = landmarks.shape[0]
        return self

    def _resolve_kernel(self, X):
        if callable(self.kernel):
            # kernels that take numbers from the data, such as a median bandwidth
            resolve = getattr(self.kernel, "resolve", None)
            self.kernel_ = self.kernel if resolve is None else resolve(X)
        elif self.kernel == "rbf":
            self.gamma_ = resolve_gamma(self, X, "rbf")
            self.kernel_ = _Stationary(rbf_kernel, self.gamma_)
        elif self.kernel == "laplacian":
            self.gamma_ = resolve_gamma(self, X, "l1")
            self.kernel_ = _Stationary(laplacian_kernel, self.gamma_)
        else:
            raise ValueError(
                "kernel must be 'rbf', 'laplacian' or a callable kernel(X, Y) that returns "
                f"a Gram matrix, got {self.kernel!r}"
            )

    def _candidates(self, X, rng):
        """Rows that a costly choice looks at: all, or `n_candidates` at random."""
        check_count(self, "n_candidates")
        if X.shape[0] <= self.n_candidates:
            return np.arange(X.shape[0])
        n_candidates = max(self.n_candidates, self.n_components)
        return np.sort(rng.permutation(X.shape[0])[:n_candidates])

    def transform(self, X):
        """Map `X` to features whose inner products approximate the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray, shape (n_samples, n_landmarks)
            `n_components` columns; fewer where there were fewer training rows.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        features = np.empty((X.shape[0], self._n_features_out), dtype=X.dtype)
        landmarks = self.components_.astype(X.dtype, copy=False)
        normalization = self.normalization_.astype(X.dtype, copy=False)
        # blocks that stay in the cache, and bound the memory
        for start in range(0, X.shape[0], 2048):
            part = slice(start, start + 2048)
            np.matmul(self.kernel_(X[part], landmarks), normalization, out=features[part])
        return features

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class UniformNystroem(_Nystroem):
    """Nystroem approximation with uniformly drawn landmarks.

    ``phi(x) = K_LL^(-1/2) (k(x, l_1), ..., k(x, l_D))`` with landmarks l_i.
    These are the features of scikit-learn's ``Nystroem`` (same landmarks at the same
    seed), with a bandwidth relative to the training data, no warning where
    there are fewer rows than `n_components`, and float32 without noise.

    Parameters
    ----------
    n_components : int, default 300
        Number of landmarks, hence of features; at most the training rows.
    kernel : "rbf", "laplacian" or callable, default "rbf"
        ``exp(-gamma ||x-z||_2^2)``, ``exp(-gamma ||x-z||_1)``, or ``kernel(X, Y)``
        that returns a Gram matrix. A callable with a method ``resolve(X)`` is
        resolved on the training data.
    gamma : float or "median", default "median"
        Of the named kernels. "median" is ``gamma_factor / (2 m^2)`` for "rbf"
        and ``gamma_factor / m`` for "laplacian", with m the median distance
        between training rows (of at most 500 of them).
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    random_state : int, RandomState or None, default None
        Seed of the landmarks.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of a named kernel.
    kernel_ : callable
        ``kernel_(X, Y)`` is the Gram matrix that is approximated.
    components_ : {ndarray, CSR matrix}, shape (n_landmarks, n_features)
        The landmarks.
    component_indices_ : ndarray of int, shape (n_landmarks,)
        Their rows in the training data.
    normalization_ : ndarray, shape (n_landmarks, n_landmarks)
        Inverse square root of their Gram matrix.

    References
    ----------
    C. K. I. Williams and M. Seeger, Using the Nystroem method to speed up
    kernel machines, NIPS 2000, eq. (10).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> UniformNystroem(n_components=20, random_state=0).fit_transform(X).shape
    (150, 20)
    """

    def __init__(
        self,
        n_components=300,
        *,
        kernel="rbf",
        gamma="median",
        gamma_factor=1.0,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.random_state = random_state

    def _choose(self, X, n_landmarks, rng):
        rows = rng.permutation(X.shape[0])[:n_landmarks]
        return X[rows], rows


class KMeansNystroem(_Nystroem):
    """Nystroem approximation whose landmarks are the centres of k-means.

    ``phi(x) = K_LL^(-1/2) (k(x, l_1), ..., k(x, l_D))`` with landmarks l_i, the centres of k-means
    on the training rows.

    Parameters
    ----------
    n_components : int, default 300
        Number of landmarks, hence of features; at most the different rows.
    kernel : "rbf", "laplacian" or callable, default "rbf"
        As in `UniformNystroem`.
    gamma : float or "median", default "median"
        As in `UniformNystroem`.
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    n_candidates : int, default 20000
        Of more training rows, so many at random are clustered.
    random_state : int, RandomState or None, default None
        Seed of the clustering.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of a named kernel.
    kernel_ : callable
        ``kernel_(X, Y)`` is the Gram matrix that is approximated.
    components_ : ndarray, shape (n_landmarks, n_features)
        The landmarks.
    normalization_ : ndarray, shape (n_landmarks, n_landmarks)
        Inverse square root of their Gram matrix.

    References
    ----------
    K. Zhang, I. W. Tsang and J. T. Kwok, Improved Nystroem low-rank
    approximation and error analysis, ICML 2008, section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> KMeansNystroem(n_components=20, random_state=0).fit_transform(X).shape
    (150, 20)
    """

    def __init__(
        self,
        n_components=300,
        *,
        kernel="rbf",
        gamma="median",
        gamma_factor=1.0,
        n_candidates=20_000,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.n_candidates = n_candidates
        self.random_state = random_state

    def _choose(self, X, n_landmarks, rng):
        return kmeans_centres(X[self._candidates(X, rng)], n_landmarks, rng), None


class RPCholeskyNystroem(_Nystroem):
    """Nystroem approximation on the pivots of randomly pivoted Cholesky.

    ``phi(x) = K_LL^(-1/2) (k(x, l_1), ..., k(x, l_D))`` with landmarks l_i: each is drawn with
    a probability proportional to what is left of the diagonal of the Gram matrix.

    Parameters
    ----------
    n_components : int, default 300
        Number of landmarks, hence of features; at most the numerical rank of
        the Gram matrix.
    kernel : "rbf", "laplacian" or callable, default "rbf"
        As in `UniformNystroem`.
    gamma : float or "median", default "median"
        As in `UniformNystroem`.
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    n_candidates : int, default 20000
        Of more training rows, so many at random are looked at: memory is
        ``8 n_candidates n_components`` bytes.
    random_state : int, RandomState or None, default None
        Seed of the pivots.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of a named kernel.
    kernel_ : callable
        ``kernel_(X, Y)`` is the Gram matrix that is approximated.
    components_ : {ndarray, CSR matrix}, shape (n_landmarks, n_features)
        The landmarks.
    component_indices_ : ndarray of int, shape (n_landmarks,)
        Their rows in the training data.
    normalization_ : ndarray, shape (n_landmarks, n_landmarks)
        Inverse square root of their Gram matrix.

    References
    ----------
    Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, Randomly pivoted
    Cholesky, arXiv:2207.06503 (2022), algorithm 1; E. N. Epperly, J. A. Tropp
    and R. J. Webber, Embrace rejection, arXiv:2410.03969 (2024).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> RPCholeskyNystroem(n_components=20, random_state=0).fit_transform(X).shape
    (150, 20)
    """

    def __init__(
        self,
        n_components=300,
        *,
        kernel="rbf",
        gamma="median",
        gamma_factor=1.0,
        n_candidates=20_000,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.n_candidates = n_candidates
        self.random_state = random_state

    def _choose(self, X, n_landmarks, rng):
        candidates = self._candidates(X, rng)
        pool = X[candidates].astype(np.float64, copy=False)
        rows = candidates[rpcholesky_pivots(self.kernel_, pool, n_landmarks, rng)]
        return X[rows], rows


class LeverageNystroem(_Nystroem):
    """Nystroem approximation on rows drawn by their ridge leverage scores.

    ``phi(x) = K_LL^(-1/2) (k(x, l_1), ..., k(x, l_D))`` with landmarks l_i, rows drawn by an
    estimate of their ridge leverage score ``(K (K + lambda I)^-1)_ii``.

    Parameters
    ----------
    n_components : int, default 300
        Number of landmarks, hence of features; at most the training rows.
    kernel : "rbf", "laplacian" or callable, default "rbf"
        As in `UniformNystroem`.
    gamma : float or "median", default "median"
        As in `UniformNystroem`.
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    n_candidates : int, default 20000
        Of more training rows, so many at random are looked at.
    random_state : int, RandomState or None, default None
        Seed of the sampling.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of a named kernel.
    kernel_ : callable
        ``kernel_(X, Y)`` is the Gram matrix that is approximated.
    components_ : {ndarray, CSR matrix}, shape (n_landmarks, n_features)
        The landmarks.
    component_indices_ : ndarray of int, shape (n_landmarks,)
        Their rows in the training data.
    normalization_ : ndarray, shape (n_landmarks, n_landmarks)
        Inverse square root of their Gram matrix.

    References
    ----------
    C. Musco and C. Musco, Recursive sampling for the Nystroem method, NIPS
    2017, algorithm 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> LeverageNystroem(n_components=20, random_state=0).fit_transform(X).shape
    (150, 20)
    """

    def __init__(
        self,
        n_components=300,
        *,
        kernel="rbf",
        gamma="median",
        gamma_factor=1.0,
        n_candidates=20_000,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.n_candidates = n_candidates
        self.random_state = random_state

    def _choose(self, X, n_landmarks, rng):
        candidates = self._candidates(X, rng)
        pool = X[candidates].astype(np.float64, copy=False)
        rows = candidates[leverage_rows(self.kernel_, pool, n_landmarks, rng)]
        return X[rows], rows


def nystroem_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted Nystroem map."""
    return fitted.kernel_(X, Y)

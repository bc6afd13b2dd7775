"""Fourier features of frequencies that are drawn by their leverage on the training data."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.utils import check_random_state

from kbench.arrays import like, take, to_numpy
from kbench.parameters import integer, number
from kbench_baselines._base import dense
from kbench_baselines._fourier import _FourierMap, fourier_features, fourier_gradient


@dataclass(eq=False, repr=False)
class LeverageFourierFeatures(_FourierMap):
    """Fourier features of frequencies drawn by approximate ridge leverage scores.

    Of a pool of normal frequencies, each is drawn with a probability p in proportion to its
    ridge leverage score on the training inputs, and its cosine and sine are divided by
    ``sqrt(size of the pool * p)``. Use it if few features have to suffice for a learner with a
    small penalty: frequencies that are equal on the data are drawn once, not often. The error
    of the Gram matrix itself is not smaller than with equal probabilities.

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency.
    pool_factor : int, default 4
        Size of the pool, in numbers of frequencies.
    ridge : float or "auto", default "auto"
        lambda > 0 in the scores ``(Z'Z (Z'Z + n lambda I)^-1)_ii``; "auto" is ``1 / sqrt(n)``, with
        which the source has its rates.
    n_rows : int, default 2000
        Maximum number of training rows from which scores are computed; of more rows, a
        random sample of this size.
    bandwidth : float or "median", default "median"
        Parameter of the kernel ``exp(-||x-z||^2 / (2 bandwidth^2))``; "median" is the
        median distance between training rows (of at most 500 of them).
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of the pool, of the rows and of the draws from the pool.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    frequencies_ : ndarray, shape (n_features, ceil(n_components / 2))
        One frequency per column; a frequency may occur more than once.
    weights_ : ndarray, shape (n_components,)
        Factor of each feature.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    Notes
    -----
    Given the pool, inner products average to those of its features, hence to the kernel.

    References
    ----------
    Z. Li, J.-F. Ton, D. Oglic and D. Sejdinovic, Towards a unified analysis of random Fourier
    features, ICML 2019, algorithm 1.

    Examples
    --------
    >>> LeverageFourierFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _: KW_ONLY
    pool_factor: int = integer(4, least=1)
    ridge: float | str = number("auto", above=0, otherwise=("auto",))
    n_rows: int = integer(2000, least=1)

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.bandwidth_ = self._resolve_bandwidth(X)
        n_frequencies = (self.n_components + 1) // 2
        n_pool = self.pool_factor * n_frequencies
        pool = rng.normal(size=(X.shape[1], n_pool)) / self.bandwidth_
        if X.shape[0] > self.n_rows:
            X = take(X, np.sort(rng.choice(X.shape[0], self.n_rows, replace=False)))
        rows = to_numpy(dense(take(X, slice(None)))).astype(np.float64)
        scores = _leverage(rows, pool, self.ridge)
        chance = scores / scores.sum()
        drawn = rng.choice(n_pool, size=n_frequencies, p=chance)
        weights = 1 / np.sqrt(n_pool * chance[drawn])
        half = self.n_components // 2
        self.frequencies_ = like(pool[:, drawn], X)
        self.weights_ = like(np.concatenate([weights[:half], weights]), X)
        self.offset_ = rng.uniform(0, 2 * np.pi)
        return self.n_components

    def _transform(self, X):
        features = super()._transform(X)
        features *= like(self.weights_, X)
        return features

    def _gradient(self, X, coef):
        return fourier_gradient(X, self.frequencies_, coef * like(self.weights_, X), self.offset_)


def _leverage(X, frequencies, ridge):
    """Ridge leverage scores of frequencies: those of their cosines and sines, added."""
    n_samples, n_pool = X.shape[0], frequencies.shape[1]
    Z = fourier_features(X, frequencies, 2 * n_pool, 0.0)
    penalty = n_samples * (n_samples**-0.5 if ridge == "auto" else float(ridge))
    if n_samples <= 2 * n_pool:
        gram = Z @ Z.T
        gram.flat[:: n_samples + 1] += penalty
        half = solve_triangular(cholesky(gram, lower=True), Z, lower=True)
        scores = np.einsum("ij,ij->j", half, half)
    else:
        gram = Z.T @ Z
        gram.flat[:: 2 * n_pool + 1] += penalty
        half = solve_triangular(cholesky(gram, lower=True), np.eye(2 * n_pool), lower=True)
        scores = 1 - penalty * np.einsum("ij,ij->j", half, half)
    return np.maximum(scores[:n_pool] + scores[n_pool:], 1e-12)

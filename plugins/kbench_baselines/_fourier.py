"""Random Fourier features of Gaussian, Laplace and Matern kernels."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench_baselines._bandwidth import resolve_gamma
from kbench_baselines._checks import FLOATS, check_choice, check_count, check_positive
from kbench_baselines._frequencies import (
    cauchy,
    fourier_features,
    gaussian_orthogonal,
    gaussian_qmc,
    multivariate_t,
)


class _FourierMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Cosines and sines of random frequencies; subclasses say which."""

    def _gamma(self, X):
        """Bandwidth parameter from the training data."""
        return resolve_gamma(self, X, "rbf")

    def _frequencies(self, n_features, n_frequencies, rng):
        """Frequencies at the fitted bandwidth, shape (n_features, n_frequencies)."""
        raise NotImplementedError

    def fit(self, X, y=None):
        """Resolve the bandwidth on `X` and draw the frequencies.

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
        rng = check_random_state(self.random_state)
        self.gamma_ = self._gamma(X)
        n_frequencies = (self.n_components + 1) // 2
        frequencies = self._frequencies(X.shape[1], n_frequencies, rng)
        self.frequencies_ = frequencies.astype(X.dtype, copy=False)
        self.offset_ = rng.uniform(0, 2 * np.pi)
        self._n_features_out = self.n_components
        return self

    def transform(self, X):
        """Map `X` to features whose inner products approximate the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray, shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        frequencies = self.frequencies_.astype(X.dtype, copy=False)
        return fourier_features(X, frequencies, self.n_components, self.offset_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RandomFourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random Fourier features of the Gaussian kernel: scikit-learn's RBFSampler.

    What it adds is a bandwidth relative to the training data. With a number
    for `gamma` the features are those of
    ``RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state)``.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    gamma : float or "median", default "median"
        Of the kernel ``exp(-gamma ||x-z||^2)``. "median" is
        ``gamma_factor / (2 m^2)`` with m the median distance between training
        rows (of at most 500 of them).
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    random_state : int, RandomState or None, default None
        Seed of frequencies and offsets.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of the kernel.
    sampler_ : RBFSampler
        The fitted map of scikit-learn.

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines,
    NIPS 2007, algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> RandomFourierFeatures(n_components=50, random_state=0).fit_transform(X).shape
    (150, 50)
    """

    def __init__(self, n_components=300, *, gamma="median", gamma_factor=1.0, random_state=None):
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.random_state = random_state

    def fit(self, X, y=None):
        """Resolve the bandwidth on `X` and draw the frequencies.

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
        self.gamma_ = resolve_gamma(self, X, "rbf")
        self.sampler_ = RBFSampler(
            gamma=self.gamma_, n_components=self.n_components, random_state=self.random_state
        ).fit(X)
        self._n_features_out = self.n_components
        return self

    def transform(self, X):
        """Map `X` to features whose inner products approximate the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix}, shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray, shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self.sampler_.transform(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class OrthogonalFourierFeatures(_FourierMap):
    """Orthogonal random Fourier features of the Gaussian kernel.

    ``phi(x) = sqrt(2 / D) (cos(w_1.x), ..., sin(w_1.x), ...)`` with D = `n_components` and D / 2
    frequencies w, which are orthogonal within blocks of `n_features`: that lowers the variance of
    the approximation.

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency.
    gamma : float or "median", default "median"
        Of the kernel ``exp(-gamma ||x-z||^2)``. "median" is
        ``gamma_factor / (2 m^2)`` with m the median distance between training
        rows (of at most 500 of them).
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    random_state : int, RandomState or None, default None
        Seed of the frequencies.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of the kernel.
    frequencies_ : ndarray, shape (n_features, ceil(n_components / 2))
        One frequency a column.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    References
    ----------
    F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice and S. Kumar,
    Orthogonal random features, NIPS 2016, eq. (3) and theorem 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> OrthogonalFourierFeatures(n_components=50, random_state=0).fit_transform(X).shape
    (150, 50)
    """

    def __init__(self, n_components=300, *, gamma="median", gamma_factor=1.0, random_state=None):
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.random_state = random_state

    def _frequencies(self, n_features, n_frequencies, rng):
        return np.sqrt(2 * self.gamma_) * gaussian_orthogonal(n_features, n_frequencies, rng)


class QMCFourierFeatures(_FourierMap):
    """Quasi-Monte Carlo Fourier features of the Gaussian kernel.

    ``phi(x) = sqrt(2 / D) (cos(w_1.x), ..., sin(w_1.x), ...)`` with D = `n_components` and D / 2
    frequencies w, the normal quantiles of a scrambled low-discrepancy sequence.

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency.
    gamma : float or "median", default "median"
        Of the kernel ``exp(-gamma ||x-z||^2)``. "median" is
        ``gamma_factor / (2 m^2)`` with m the median distance between training
        rows (of at most 500 of them).
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    sequence : {"sobol", "halton"}, default "sobol"
        The sequence; Sobol' exists up to 21,201 inputs.
    random_state : int, RandomState or None, default None
        Seed of the scrambling.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of the kernel.
    frequencies_ : ndarray, shape (n_features, ceil(n_components / 2))
        One frequency a column.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    References
    ----------
    J. Yang, V. Sindhwani, H. Avron and M. Mahoney, Quasi-Monte Carlo feature
    maps for shift-invariant kernels, ICML 2014, eq. (9); H. Avron et al.,
    JMLR 17 (2016).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> QMCFourierFeatures(n_components=50, random_state=0).fit_transform(X).shape
    (150, 50)
    """

    def __init__(
        self,
        n_components=300,
        *,
        gamma="median",
        gamma_factor=1.0,
        sequence="sobol",
        random_state=None,
    ):
        self.n_components = n_components
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.sequence = sequence
        self.random_state = random_state

    def _frequencies(self, n_features, n_frequencies, rng):
        check_choice(self, "sequence", ("sobol", "halton"))
        if self.sequence == "sobol" and n_features > 21_201:
            raise ValueError(
                f"sequence='sobol' takes at most 21201 input features, got {n_features}; "
                "use 'halton'"
            )
        normal = gaussian_qmc(n_features, n_frequencies, rng, self.sequence)
        return np.sqrt(2 * self.gamma_) * normal


class LaplaceFourierFeatures(_FourierMap):
    """Random Fourier features of the Laplace kernel, in either of its forms.

    ``phi(x) = sqrt(2 / D) (cos(w_1.x), ..., sin(w_1.x), ...)`` with D = `n_components` and D / 2
    frequencies w from a Cauchy distribution (multivariate for ``norm="l2"``).

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency.
    norm : {"l1", "l2"}, default "l1"
        "l1": ``exp(-gamma ||x-z||_1)``, scikit-learn's ``laplacian_kernel``, with
        Cauchy frequencies. "l2": ``exp(-gamma ||x-z||_2)``, the Matern kernel
        of order 1/2, with multivariate Cauchy frequencies.
    gamma : float or "median", default "median"
        Of the kernel. "median" is ``gamma_factor / m`` with m the median
        distance in the same norm between training rows (of at most 500).
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    random_state : int, RandomState or None, default None
        Seed of the frequencies.

    Attributes
    ----------
    gamma_ : float
        The resolved parameter of the kernel.
    frequencies_ : ndarray, shape (n_features, ceil(n_components / 2))
        One frequency a column.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines,
    NIPS 2007, figure 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> LaplaceFourierFeatures(n_components=50, random_state=0).fit_transform(X).shape
    (150, 50)
    """

    def __init__(
        self, n_components=300, *, norm="l1", gamma="median", gamma_factor=1.0, random_state=None
    ):
        self.n_components = n_components
        self.norm = norm
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.random_state = random_state

    def _gamma(self, X):
        check_choice(self, "norm", ("l1", "l2"))
        return resolve_gamma(self, X, self.norm)

    def _frequencies(self, n_features, n_frequencies, rng):
        if self.norm == "l1":
            return self.gamma_ * cauchy(n_features, n_frequencies, rng)
        return self.gamma_ * multivariate_t(n_features, n_frequencies, rng, nu=0.5)


class MaternFourierFeatures(_FourierMap):
    """Random Fourier features of the Matern kernel.

    ``phi(x) = sqrt(2 / D) (cos(w_1.x), ..., sin(w_1.x), ...)`` with D = `n_components` and D / 2
    frequencies w from a multivariate t distribution with 2 nu degrees of freedom.

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency.
    nu : float, default 1.5
        Order of the kernel, > 0; 1/2, 3/2 and 5/2 are the usual ones.
    gamma : float or "median", default "median"
        Inverse length scale: for nu = 3/2 the kernel is
        ``(1 + sqrt(3) gamma r) exp(-sqrt(3) gamma r)``, r = ``||x-z||_2``. "median"
        is ``gamma_factor / m`` with m the median distance between training
        rows (of at most 500 of them).
    gamma_factor : float, default 1.0
        Multiplies the median heuristic; without effect where `gamma` is a number.
    random_state : int, RandomState or None, default None
        Seed of the frequencies.

    Attributes
    ----------
    gamma_ : float
        The resolved inverse length scale.
    frequencies_ : ndarray, shape (n_features, ceil(n_components / 2))
        One frequency a column.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, Gaussian processes for machine
    learning, MIT Press 2006, eq. (4.14) and (4.15).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> MaternFourierFeatures(n_components=50, random_state=0).fit_transform(X).shape
    (150, 50)
    """

    def __init__(
        self, n_components=300, *, nu=1.5, gamma="median", gamma_factor=1.0, random_state=None
    ):
        self.n_components = n_components
        self.nu = nu
        self.gamma = gamma
        self.gamma_factor = gamma_factor
        self.random_state = random_state

    def _gamma(self, X):
        check_positive(self, "nu")
        return resolve_gamma(self, X, "l2")

    def _frequencies(self, n_features, n_frequencies, rng):
        return self.gamma_ * multivariate_t(n_features, n_frequencies, rng, self.nu)


def gaussian_gram(fitted, X, Y):
    """Gram matrix exp(-gamma ||x-z||^2) that a fitted Gaussian map approximates."""
    return rbf_kernel(X, Y, gamma=fitted.gamma_)


def laplace_gram(fitted, X, Y):
    """Gram matrix exp(-gamma ||x-z||) in the norm of a fitted `LaplaceFourierFeatures`."""
    if fitted.norm == "l1":
        return laplacian_kernel(X, Y, gamma=fitted.gamma_)
    return Matern(length_scale=1 / fitted.gamma_, nu=0.5)(_dense(X), _dense(Y))


def matern_gram(fitted, X, Y):
    """Gram matrix of the Matern kernel of a fitted `MaternFourierFeatures`."""
    return Matern(length_scale=1 / fitted.gamma_, nu=fitted.nu)(_dense(X), _dense(Y))


def _dense(X):
    return X.toarray() if hasattr(X, "toarray") else X

"""Random Fourier features of Gaussian, Laplace and Matern kernels, and their frequencies.

By Bochner's theorem a stationary kernel is ``k(x - z) = E cos(w.(x - z))`` with
w drawn from its spectral measure. Every function that draws such w does so for
the kernel at unit scale and returns an array of shape (n_features, n_frequencies).
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.utils import check_random_state

from kbench.arrays import empty, like, namespace, on_host, take, wide
from kbench.estimators import InputGradient
from kbench.kernels import Gaussian
from kbench.parameters import choice, integer, number
from kbench_baselines._base import BandwidthMap, dense, resolve_bandwidth
from kbench_baselines._primitives import waves


def gaussian_orthogonal(n_features, n_frequencies, rng):
    """Normal frequencies that are orthogonal within blocks of `n_features`.

    Each block is S Q of Yu et al. (2016), eq. (3): Q is a uniformly random
    orthogonal matrix, S holds chi-distributed lengths, so that each column by
    itself is N(0, I), as for independent frequencies.
    """
    W = np.empty((n_features, n_frequencies))
    for start in range(0, n_frequencies, n_features):
        width = min(n_features, n_frequencies - start)
        Q, R = np.linalg.qr(rng.normal(size=(n_features, width)))
        # without the signs of R, Q is not uniformly distributed
        W[:, start : start + width] = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return W * np.sqrt(rng.chisquare(n_features, size=n_frequencies))


def gaussian_qmc(n_features, n_frequencies, rng, sequence="sobol"):
    """Normal frequencies at the points of a low-discrepancy sequence.

    The inverse normal distribution function of a randomly scrambled Sobol' or
    Halton sequence: Yang, Sindhwani, Avron and Mahoney (2014), eq. (9). The
    scrambling makes each point uniform, hence the features unbiased.
    """
    seed = np.random.default_rng(rng.randint(2**31 - 1))
    if sequence == "sobol":
        # powers of two only, without a warning; a prefix is the same sequence
        power = max(0, int(n_frequencies - 1).bit_length())
        points = qmc.Sobol(n_features, scramble=True, rng=seed).random_base2(power)
    else:
        points = qmc.Halton(n_features, scramble=True, rng=seed).random(n_frequencies)
    # a point may be exactly 0, where the inverse is infinite
    return ndtri(0.5 + (1 - 1e-10) * (points[:n_frequencies] - 0.5)).T


def multivariate_t(n_features, n_frequencies, rng, nu):
    """Multivariate t frequencies, 2 nu degrees of freedom, for the Matern kernel.

    Rasmussen and Williams (2006), eq. (4.15): the spectral density of the
    Matern kernel of order nu and length scale 1. nu = 1/2 is ``exp(-||x - z||_2)``.
    """
    normal = rng.normal(size=(n_features, n_frequencies))
    return normal * np.sqrt(2 * nu / rng.chisquare(2 * nu, size=n_frequencies))


def fourier_features(X, W, n_components, offset):
    """Cosines and sines of ``X @ W``, scaled so that inner products are kernel values.

    A cosine and a sine of one frequency give ``cos(w.(x - z))`` without the
    noise of a random offset: half of the variance or less at equal columns for
    the Gaussian kernel (Sutherland and Schneider 2015, section 3). Where
    `n_components` is odd, the last frequency has one column, with `offset`, which
    is uniform on [0, 2 pi].

    `W` has shape (n_features, ceil(n_components / 2)).
    """
    half = n_components // 2
    projection = X @ W
    features = empty((X.shape[0], n_components), projection)
    amplitude = wide(np.sqrt(2.0 / n_components), projection)
    cosines, sines = features[:, :half], features[:, half : 2 * half]
    waves(projection[:, :half], cosines, sines, amplitude)
    if n_components % 2:
        features[:, -1] = namespace(projection).cos(projection[:, half] + offset) * amplitude
    return features


def fourier_gradient(X, W, coef, offset):
    """Gradients of linear functions of `fourier_features`, (n_outputs, n_samples, n_features).

    `coef` has shape (n_outputs, n_components); the other arguments are those of the features.
    """
    xp, n_components = namespace(X), coef.shape[1]
    half = n_components // 2
    W = like(W, X)
    projection = X @ W
    sines, cosines = xp.sin(projection[:, :half]), xp.cos(projection[:, :half])
    gradients = empty((coef.shape[0], *X.shape), X)
    for i in range(coef.shape[0]):
        slopes = coef[i, half : 2 * half] * cosines - coef[i, :half] * sines
        gradients[i, ...] = slopes @ W[:, :half].T
        if n_components % 2:
            last = coef[i, -1] * xp.sin(projection[:, half] + offset)
            gradients[i, ...] -= last[:, None] * W[:, half]
    gradients *= float(np.sqrt(2.0 / n_components))
    return gradients


@dataclass(eq=False, repr=False)
class _FourierMap(InputGradient, BandwidthMap):
    """Cosines and sines of frequencies that a subclass draws at the fitted bandwidth."""

    n_components: int = integer(300, least=1)
    takes_any_namespace = True

    def _resolve_bandwidth(self, X):
        return resolve_bandwidth(self, X, "l2")

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.bandwidth_ = self._resolve_bandwidth(X)
        frequencies = self._frequencies(X.shape[1], (self.n_components + 1) // 2, rng)
        self.frequencies_ = like(frequencies, X)
        self.offset_ = rng.uniform(0, 2 * np.pi)
        return self.n_components

    def _transform(self, X):
        return fourier_features(X, like(self.frequencies_, X), self.n_components, self.offset_)

    def _gradient(self, X, coef):
        return fourier_gradient(X, self.frequencies_, coef, self.offset_)


@dataclass(eq=False, repr=False)
class RandomFourierFeatures(_FourierMap):
    """Random Fourier features of the Gaussian kernel: scikit-learn's RBFSampler.

    Its bandwidth may be relative to the training data. The features are those of
    ``RBFSampler(n_components=n_components, random_state=random_state)`` with
    ``gamma = 1 / (2 bandwidth_^2)``. With ``form="pairs"`` there are half as many frequencies, each
    with its cosine and its sine.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    bandwidth : float or "median", default "median"
        Parameter of the kernel ``exp(-||x-z||^2 / (2 bandwidth^2))``; "median" is the
        median distance between training rows (of at most 500 of them).
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    form : {"offsets", "pairs"}, default "offsets"
        "offsets": ``sqrt(2 / D) cos(w_i.x + b_i)`` with random offsets b_i. "pairs": cosines and
        sines of the same frequencies, as in `OrthogonalFourierFeatures`.
    random_state : int, RandomState or None, default None
        Seed of frequencies and offsets.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    sampler_ : RBFSampler
        The fitted map of scikit-learn, for offsets.
    frequencies_, offset_
        As in `OrthogonalFourierFeatures`, for pairs.

    Notes
    -----
    Inner products average to the kernel. For k(x, z) = kappa(x - z) their variance is
    ``(1 + kappa(2x - 2z) / 2 - kappa(x - z)^2) / D`` with offsets, and
    ``(1 + kappa(2x - 2z) - 2 kappa(x - z)^2) / D`` with pairs (Sutherland and Schneider, On the
    error of random Fourier features, UAI 2015).

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines,
    NIPS 2007, algorithm 1.

    Examples
    --------
    >>> RandomFourierFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _: KW_ONLY
    form: str = choice("offsets", ("offsets", "pairs"))

    def _frequencies(self, n_features, n_frequencies, rng):
        return rng.normal(size=(n_features, n_frequencies)) / self.bandwidth_

    def _fit(self, X):
        if self.form == "pairs":
            return super()._fit(X)
        self.bandwidth_ = self._resolve_bandwidth(X)
        self.sampler_ = RBFSampler(
            gamma=0.5 / self.bandwidth_**2,
            n_components=self.n_components,
            random_state=self.random_state,
        ).fit(on_host(take(X, slice(1))))
        return self.n_components

    def _transform(self, X):
        if self.form == "pairs":
            return super()._transform(X)
        W, offsets = self.sampler_.random_weights_, self.sampler_.random_offset_
        if isinstance(W, np.ndarray) and namespace(X) is np:
            return self.sampler_.transform(X).astype(X.dtype, copy=False)
        phases = X @ like(W, X)
        phases += like(offsets, X)
        return namespace(X).cos(phases) * float(np.sqrt(2.0 / self.n_components))

    def _gradient(self, X, coef):
        if self.form == "pairs":
            return super()._gradient(X, coef)
        xp, W = namespace(X), like(self.sampler_.random_weights_, X)
        slopes = xp.sin(X @ W + like(self.sampler_.random_offset_, X))
        slopes *= -float(np.sqrt(2.0 / self.n_components))
        return xp.stack([(slopes * coef[i, :]) @ W.T for i in range(coef.shape[0])])


class OrthogonalFourierFeatures(_FourierMap):
    """Orthogonal random Fourier features of the Gaussian kernel.

    ``phi(x) = sqrt(2 / D) (cos(w_1.x), ..., sin(w_1.x), ...)`` with D = `n_components` and D / 2
    frequencies w, which are orthogonal within blocks of `n_features`: that lowers the variance of
    the approximation.

    Parameters
    ----------
    n_components : int, default 300
        Number of features: two for each frequency.
    bandwidth : float or "median", default "median"
        Parameter of the kernel ``exp(-||x-z||^2 / (2 bandwidth^2))``; "median" is the
        median distance between training rows (of at most 500 of them).
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of the frequencies.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    frequencies_ : ndarray, shape (n_features, ceil(n_components / 2))
        One frequency per column.
    offset_ : float
        Phase of the last column where `n_components` is odd.

    References
    ----------
    F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice and S. Kumar,
    Orthogonal random features, NIPS 2016, eq. (3) and theorem 1.

    Examples
    --------
    >>> OrthogonalFourierFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    def _frequencies(self, n_features, n_frequencies, rng):
        return gaussian_orthogonal(n_features, n_frequencies, rng) / self.bandwidth_


@dataclass(eq=False, repr=False)
class QMCFourierFeatures(_FourierMap):
    """Quasi-Monte Carlo Fourier features of the Gaussian kernel.

    Features as in `OrthogonalFourierFeatures`, with the normal quantiles of a
    scrambled low-discrepancy sequence as frequencies.

    Parameters
    ----------
    n_components, bandwidth, bandwidth_factor, random_state
        As in `OrthogonalFourierFeatures`.
    sequence : {"sobol", "halton"}, default "sobol"
        The sequence; Sobol' exists up to 21,201 inputs.

    Attributes
    ----------
    bandwidth_, frequencies_, offset_
        As in `OrthogonalFourierFeatures`.

    Notes
    -----
    Few points of a sequence do not fill many dimensions. On 300 normal rows with a bandwidth of
    sqrt(n_inputs), the relative error of the Gram matrix, a mean over 20 seeds, was that of pairs
    with independent frequencies (`RandomFourierFeatures`, ``form="pairs"``) times .31 for 2 inputs
    and 64 features, .72 for 8, .98 for 20, 1.09 for 50 and 1.13 for 100 inputs. With 16 to 32
    features it was 1.10 to 1.15 times as large from 20 inputs on.

    References
    ----------
    J. Yang, V. Sindhwani, H. Avron and M. Mahoney, Quasi-Monte Carlo feature
    maps for shift-invariant kernels, ICML 2014, eq. (9); H. Avron et al.,
    JMLR 17 (2016).

    Examples
    --------
    >>> QMCFourierFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _: KW_ONLY
    sequence: str = choice("sobol", ("sobol", "halton"))

    def _frequencies(self, n_features, n_frequencies, rng):
        if self.sequence == "sobol" and n_features > 21_201:
            raise ValueError(
                f"sequence='sobol' takes at most 21201 input features, got {n_features}; "
                "use 'halton'"
            )
        return gaussian_qmc(n_features, n_frequencies, rng, self.sequence) / self.bandwidth_


@dataclass(eq=False, repr=False)
class LaplaceFourierFeatures(_FourierMap):
    """Random Fourier features of the Laplace kernel, with the L1 or the L2 norm.

    Features as in `OrthogonalFourierFeatures`, with frequencies from a Cauchy
    distribution (multivariate for ``norm="l2"``).

    Parameters
    ----------
    n_components, bandwidth_factor, random_state
        As in `OrthogonalFourierFeatures`.
    norm : {"l1", "l2"}, default "l1"
        "l1": ``exp(-||x-z||_1 / bandwidth)``, scikit-learn's ``laplacian_kernel``,
        with Cauchy frequencies. "l2": ``exp(-||x-z||_2 / bandwidth)``, the Matern
        kernel of order 1/2, with multivariate Cauchy frequencies.
    bandwidth : float or "median", default "median"
        Parameter of the kernel; "median" is the median distance in the same norm
        between training rows (of at most 500 of them).

    Attributes
    ----------
    bandwidth_, frequencies_, offset_
        As in `OrthogonalFourierFeatures`.

    References
    ----------
    A. Rahimi and B. Recht, Random features for large-scale kernel machines,
    NIPS 2007, figure 1.

    Examples
    --------
    >>> LaplaceFourierFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _: KW_ONLY
    norm: str = choice("l1", ("l1", "l2"))

    def _resolve_bandwidth(self, X):
        return resolve_bandwidth(self, X, self.norm)

    def _frequencies(self, n_features, n_frequencies, rng):
        if self.norm == "l1":
            return rng.standard_cauchy(size=(n_features, n_frequencies)) / self.bandwidth_
        return multivariate_t(n_features, n_frequencies, rng, nu=0.5) / self.bandwidth_


@dataclass(eq=False, repr=False)
class MaternFourierFeatures(_FourierMap):
    """Random Fourier features of the Matern kernel.

    Features as in `OrthogonalFourierFeatures`, with frequencies from a
    multivariate t distribution with 2 nu degrees of freedom.

    Parameters
    ----------
    n_components, bandwidth_factor, random_state
        As in `OrthogonalFourierFeatures`.
    nu : float, default 1.5
        Order of the kernel, > 0; 1/2, 3/2 and 5/2 are the usual ones.
    bandwidth : float or "median", default "median"
        Length scale: for nu = 3/2 the kernel is ``(1 + sqrt(3) r) exp(-sqrt(3) r)`` with
        r = ``||x-z||_2 / bandwidth``. "median" is the median distance between training
        rows (of at most 500 of them).

    Attributes
    ----------
    bandwidth_, frequencies_, offset_
        As in `OrthogonalFourierFeatures`.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, Gaussian processes for machine
    learning, MIT Press 2006, eq. (4.14) and (4.15).

    Examples
    --------
    >>> MaternFourierFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    _: KW_ONLY
    nu: float = number(1.5, above=0)

    def _frequencies(self, n_features, n_frequencies, rng):
        return multivariate_t(n_features, n_frequencies, rng, self.nu) / self.bandwidth_


def gaussian_gram(fitted, X, Y):
    """Gram matrix exp(-||x-z||^2 / (2 bandwidth^2)) that a fitted Gaussian map approximates."""
    return Gaussian(bandwidth=fitted.bandwidth_)(X, Y)


def laplace_gram(fitted, X, Y):
    """Gram matrix exp(-||x-z|| / bandwidth) in the norm of a fitted `LaplaceFourierFeatures`."""
    if fitted.norm == "l1":
        return laplacian_kernel(X, Y, gamma=1 / fitted.bandwidth_)
    return Matern(length_scale=fitted.bandwidth_, nu=0.5)(dense(X), dense(Y))


def matern_gram(fitted, X, Y):
    """Gram matrix of the Matern kernel of a fitted `MaternFourierFeatures`."""
    return Matern(length_scale=fitted.bandwidth_, nu=fitted.nu)(dense(X), dense(Y))

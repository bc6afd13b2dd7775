"""Random Maclaurin features of kernels that are functions of the inner product.

How many features each degree gets is random, or chosen as by Wacker, Kanagawa and Filippone,
arXiv:2201.08712, section 5: the numbers that minimise the expected variance of the approximate
kernel over pairs of training rows, and the highest degree that minimises this variance and the
squared bias.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
from scipy.special import comb, factorial
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from kbench.arrays import (
    empty,
    full,
    host_type,
    like,
    namespace,
    on_device,
    squared_norms,
    take,
    to_numpy,
    wide,
)
from kbench.kernels import Gaussian
from kbench.parameters import check_number, choice, integer, number
from kbench_baselines._base import BandwidthMap, column_means, resolve_bandwidth, root_mean_square
from kbench_baselines._sketches import (
    PROJECTIONS,
    draw_sketch,
    padded_size,
    real_features,
    row_blocks,
)


@dataclass(eq=False, repr=False)
class RandomMaclaurinFeatures(BandwidthMap):
    """Random Maclaurin features: products of Rademacher projections.

    A feature of degree N is ``c prod_j (w_j . x)`` over N random sign vectors.
    N is drawn in proportion to the size of its term in the series at the mean
    squared length of the training rows, in place of Kar and Karnick's geometric
    distribution: still unbiased, with less variance.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    kernel : {"polynomial", "exponential"}, default "exponential"
        ``(x.z / bandwidth^2 + coef0)^degree`` or ``exp(x.z / bandwidth^2)``. The latter is
        the Gaussian kernel of this bandwidth on rows of one length, up to a factor.
    degree : int, default 2
        Degree of the polynomial kernel.
    coef0 : float, default 1.0
        Constant in the polynomial kernel, >= 0.
    bandwidth : float or "norm", default "norm"
        Parameter of the kernel; "norm" is the root mean square length of the training rows.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    random_state : int, RandomState or None, default None
        Seed of degrees and signs.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    degrees_ : ndarray of int, shape (n_components,)
        Degree of each feature, in descending order.
    factors_ : ndarray, shape (n_components,)
        Factor c of each feature, for inputs in this unit.
    unit_ : float
        Root mean square length of the training rows, by which inputs are divided.
    signs_ : list of ndarray
        The j-th holds w_j of all features of degree above j, one per column.

    References
    ----------
    P. Kar and H. Karnick, Random feature maps for dot product kernels, AISTATS
    2012, algorithm 1.

    Examples
    --------
    >>> RandomMaclaurinFeatures(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    takes_any_namespace = True

    n_components: int = integer(300, least=1)
    _: KW_ONLY
    kernel: str = choice("exponential", ("polynomial", "exponential"))
    degree: int = integer(2, least=1)
    coef0: float = number(1.0, least=0)
    bandwidth: float | str = number("norm", above=0, otherwise=("norm",))

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        self.bandwidth_ = resolve_bandwidth(self, X, "inner")
        self.unit_ = root_mean_square(X) or 1.0
        size = (self.unit_ / self.bandwidth_) ** 2
        if self.kernel == "exponential":
            # the terms of exp(size) are Poisson probabilities up to a factor,
            # so that what is divided out is the same for every degree
            degrees, sum_of_terms = rng.poisson(size, size=self.n_components), np.exp(size)
        else:
            order = np.arange(self.degree + 1)
            terms = comb(self.degree, order) * size**order * self.coef0 ** (self.degree - order)
            sum_of_terms = terms.sum()
            degrees = rng.choice(order, size=self.n_components, p=terms / sum_of_terms)
        self.degrees_ = np.sort(degrees)[::-1]
        # a_N bandwidth^-2N / P(N) = sum_of_terms / unit^2N, of which inputs are divided by the unit
        self.factors_ = np.full(self.n_components, np.sqrt(sum_of_terms / self.n_components))
        values = np.array([-1.0, 1.0], dtype=host_type(X))
        self.signs_ = [
            rng.choice(values, size=(X.shape[1], int((self.degrees_ > j).sum())))
            for j in range(self.degrees_[0])
        ]
        return self.n_components

    def _transform(self, X):
        features = empty((X.shape[0], self.n_components), X)
        features[...] = like(self.factors_, X)
        X = X / like(self.unit_, X)
        for signs in self.signs_:
            features[:, : signs.shape[1]] *= X @ like(signs, X)
        return features


def maclaurin_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `RandomMaclaurinFeatures`."""
    inner = np.asarray(safe_sparse_dot(X, Y.T, dense_output=True), dtype=np.float64)
    return _dot_product_kernel(fitted, inner / fitted.bandwidth_**2)


@dataclass(frozen=True)
class Moments:
    """Means over pairs of rows, for the degrees 1, 2, ... of a series.

    `variances` are those of one feature. `covariances` are those of two features of a block
    of `block` ones, 0 if features are independent. `biases` are squared, for a series
    that ends with the degree.
    """

    variances: np.ndarray
    covariances: np.ndarray
    biases: np.ndarray
    block: float


def moments(X, coefficients, factors, kernel, projection, is_complex):
    """Estimate variances and biases from all pairs of the rows of `X`, without equal ones.

    `kernel` is the Gram matrix that the series ``f(x) f(z) sum_n a_n (x.z)^n`` approximates, with
    coefficients a_n and a factor f for each row. Variances of one feature are those
    of sums with signs, and an upper bound for hashed sums (Pham and Pagh, KDD 2013);
    covariances are those of two rows of a Hadamard matrix.
    """
    pairs = np.tril_indices(len(X), k=-1)
    squares = X**2
    inner, crossed = (X @ X.T)[pairs], (squares @ squares.T)[pairs]
    lengths = np.outer(squares.sum(axis=1), squares.sum(axis=1))[pairs]
    factor = np.outer(factors, factors)[pairs]
    block = float(padded_size(X.shape[1]))
    if is_complex:
        second = lengths + inner**2 - crossed
        mixed = lengths - crossed
    else:
        second = lengths + 2 * (inner**2 - crossed)
        mixed = lengths + inner**2 - 2 * crossed
    mixed = inner**2 - mixed / max(block - 1, 1.0)
    partial = np.full(len(inner), coefficients[0], dtype=np.float64)
    variances, covariances, biases = [], [], []
    for degree, coefficient in enumerate(coefficients[1:], start=1):
        mean = inner ** (2 * degree)
        one = lengths**degree + mean if projection == "countsketch" else second**degree - mean
        two = mixed**degree - mean if projection == "srht" else np.zeros(1)
        variances.append(np.mean(factor**2 * one) * coefficient**2)
        covariances.append(np.mean(factor**2 * two) * coefficient**2)
        partial += coefficient * inner**degree
        biases.append(np.mean((kernel[pairs] - factor * partial) ** 2))
    return Moments(np.array(variances), np.array(covariances), np.array(biases), block)


def allocate(found, n_components, least_degree=2):
    """Numbers of features for the degrees 1, 2, ..., with the sum `n_components`.

    Each degree up to the highest one has a feature at least. Expected variances are
    convex in the number of features, so that the largest decreases are the best ones.

    Examples
    --------
    >>> few = Moments(np.array([8.0, 2.0]), np.zeros(2), np.array([1.0, 0.0]), 1.0)
    >>> allocate(few, 6)
    array([4, 2])
    """
    best, best_score = np.zeros(0, dtype=int), np.inf
    most = min(len(found.variances), n_components)
    for highest in range(max(1, min(least_degree, most)), most + 1):
        counts, variance = _counts(found, highest, n_components)
        if (score := variance + found.biases[highest - 1]) <= best_score:
            best, best_score = counts, score
    return best


def _counts(found, highest, n_components):
    """Return the best numbers up to a degree, and the variance of the sum."""
    expected = _expected_error(found, highest, n_components - highest + 1)
    gains = expected[:, :-1] - expected[:, 1:]
    counts = np.ones(highest, dtype=int)
    chosen = np.argsort(-gains, axis=None, kind="stable")[: n_components - highest]
    degrees, times = np.unique(chosen // max(gains.shape[1], 1), return_counts=True)
    counts[degrees] += times
    return counts, expected[np.arange(highest), counts - 1].sum()


def _expected_error(found, highest, most):
    """Variance of each degree with 1, ..., `most` features, (highest, most)."""
    number = np.arange(1, most + 1)
    one, two = found.variances[:highest, None], found.covariances[:highest, None]
    in_one_block = one / number + (number - 1) / number * two
    in_blocks = (one + (found.block - 1) * two) / number
    return np.where((number <= found.block) & (two <= 0), in_one_block, in_blocks)


@dataclass(eq=False, repr=False)
class OptimizedMaclaurinFeatures(BandwidthMap):
    """Maclaurin features with the degrees that minimise the variance on the training inputs.

    The series ``k(x, z) = f(x) f(z) sum_n a_n (x.z)^n`` is cut after a degree. Its constant is one
    exact feature, and each degree n gets a number of features of a polynomial sketch, by its
    share of the variance over pairs of training rows. Use it for dot product kernels, and
    for the Gaussian kernel with a wide bandwidth and few features per input, where its
    error is below that of random Fourier features. With a narrow bandwidth the series is
    too long: it is cut, and the features are biased.

    Parameters
    ----------
    n_components : int, default 300
        Number of features, the constant included.
    kernel : {"gaussian", "exponential", "polynomial"}, default "gaussian"
        ``exp(-||x-z||^2 / (2 bandwidth^2))``, ``exp(x.z / bandwidth^2)``, or
        ``(x.z / bandwidth^2 + coef0)^degree``.
    projection : {"rademacher", "srht", "countsketch"}, default "rademacher"
        As in `ProductSketch`.
    complex_to_real : bool, default True
        As in `ProductSketch`.
    max_degree : int, default 10
        Highest degree of the cut series, >= 2.
    degree : int, default 2
        Degree of the polynomial kernel.
    coef0 : float, default 1.0
        Constant in the polynomial kernel, >= 0.
    bandwidth : float, "median" or "norm", default "median"
        Parameter of the kernel. "median", for the Gaussian kernel only, is the median distance
        between training rows (of at most 500 of them); "norm", for the other kernels only, is
        the root mean square length of the rows.
    bandwidth_factor : float, default 1.0
        Multiplies `bandwidth`.
    n_rows : int, default 1000
        Maximum number of training rows whose pairs decide the degrees; of more rows, a
        random sample of this size.
    random_state : int, RandomState or None, default None
        Seed of the projections and of these rows.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel, its factor included.
    mean_ : ndarray, shape (n_features,)
        Shift of the inputs for the Gaussian kernel, which makes its series shorter.
    coefficients_ : ndarray, shape (max_degree + 1,)
        Coefficients a_n.
    counts_ : ndarray of int
        Number of features of the degrees 1, 2, ...; complex ones count once.
    sketches_ : list
        The sketch of each degree.

    Notes
    -----
    Inner products average to the cut series. Numbers of features are chosen for the expected
    variance (signs, SRHT) or a bound of it (CountSketch).

    References
    ----------
    J. Wacker, M. Kanagawa and M. Filippone, Improved random features for dot product kernels,
    arXiv:2201.08712 (2022), section 5.

    Examples
    --------
    >>> map_ = OptimizedMaclaurinFeatures(n_components=5, random_state=0)
    >>> map_.fit_transform([[0.0, 1.0], [2.0, 1.0]]).shape
    (2, 5)
    """

    takes_any_namespace = True
    _accept_sparse = False

    n_components: int = integer(300, least=1)
    _: KW_ONLY
    kernel: str = choice("gaussian", ("gaussian", "exponential", "polynomial"))
    projection: str = choice("rademacher", PROJECTIONS)
    complex_to_real: bool = choice(True, (True, False))
    max_degree: int = integer(10, least=2)
    degree: int = integer(2, least=1)
    coef0: float = number(1.0, least=0)
    bandwidth: float | str = "median"
    n_rows: int = integer(1000, least=2)

    def _fit(self, X):
        rng = check_random_state(self.random_state)
        is_gaussian = self.kernel == "gaussian"
        heuristic = "median" if is_gaussian else "norm"
        if not (isinstance(self.bandwidth, str) and self.bandwidth == heuristic):
            check_number(self.bandwidth, "bandwidth", above=0, otherwise=repr(heuristic))
        self.bandwidth_ = resolve_bandwidth(self, X, "l2" if is_gaussian else "inner")
        self.mean_ = like(column_means(X) if is_gaussian else np.zeros(X.shape[1]), X)
        self.coefficients_ = self._coefficients()
        number = -(-(self.n_components - 1) // (1 + self.complex_to_real))
        self.counts_ = self._allocate(X, number, rng)
        given = self.complex_to_real, rng, host_type(X)
        self.sketches_ = [
            draw_sketch(self.projection, (X.shape[1], count), order, *given)
            for order, count in enumerate(self.counts_, start=1)
        ]
        return self.n_components

    def _coefficients(self):
        order = np.arange(self.max_degree + 1)
        if self.kernel != "polynomial":
            return 1 / factorial(order)
        order = order[: self.degree + 1]
        return comb(self.degree, order) * float(self.coef0) ** (self.degree - order)

    def _allocate(self, X, number, rng):
        """Numbers of features of the degrees, from pairs of training rows."""
        if X.shape[0] > self.n_rows:
            X = take(X, np.sort(rng.choice(X.shape[0], self.n_rows, replace=False)))
        inputs = to_numpy(self._scale(take(X, slice(None)))).astype(np.float64)
        if len(inputs) < 2:
            inputs = np.repeat(inputs, 2, axis=0)
        series = self.coefficients_, self._factors(inputs)[:, 0]
        if self.kernel == "gaussian":
            target = rbf_kernel(inputs, gamma=0.5)
        else:
            target = _dot_product_kernel(self, inputs @ inputs.T)
        found = moments(inputs, *series, target, self.projection, self.complex_to_real)
        return allocate(found, number)

    def _scale(self, X):
        return (X - on_device(self.mean_, X)) / like(self.bandwidth_, X)

    def _factors(self, scaled):
        """Factor f of each row, in a column."""
        if self.kernel != "gaussian":
            return full((scaled.shape[0], 1), 1.0, scaled)
        return namespace(scaled).exp(squared_norms(scaled) / -2)[:, None]

    def _transform(self, X):
        features = empty((X.shape[0], self._n_features_out), X)
        coefficients = to_numpy(self.coefficients_)
        for rows in row_blocks(X.shape[0], 2 * max(features.shape[1], X.shape[1])):
            scaled, first = self._scale(take(X, rows)), 1
            features[rows, 0] = float(np.sqrt(coefficients[0]))
            for coefficient, sketch in zip(coefficients[1:], self.sketches_, strict=False):
                drawn = sketch(scaled)
                stop = first + drawn.shape[1] * (1 + self.complex_to_real)
                stop = min(stop, self.n_components)
                part = real_features(drawn, stop - first)
                features[rows, first:stop] = part * wide(np.sqrt(coefficient), X)
                first = stop
            features[rows, :] *= self._factors(scaled)
        return features


def _dot_product_kernel(fitted, inner):
    """Kernel as a function of ``x.z / bandwidth^2``."""
    if fitted.kernel == "exponential":
        return np.exp(inner)
    return (inner + fitted.coef0) ** fitted.degree


srht_maclaurin = partial(OptimizedMaclaurinFeatures, projection="srht")


def optimized_maclaurin_gram(fitted, X, Y):
    """Gram matrix of the kernel of a fitted `OptimizedMaclaurinFeatures`."""
    if fitted.kernel == "gaussian":
        return Gaussian(bandwidth=fitted.bandwidth_)(X, Y)
    inner = np.asarray(X, dtype=np.float64) @ np.asarray(Y, dtype=np.float64).T
    return _dot_product_kernel(fitted, inner / fitted.bandwidth_**2)

"""The feature map of Lemma 1, as a transformer."""

import math
from dataclasses import KW_ONLY, dataclass
from itertools import combinations_with_replacement

import numpy as np
from scipy.fft import irfft, rfft
from sklearn.utils import check_random_state

from kbench.estimators import ExplicitMap
from kbench.parameters import integer, number
from kbench_zero_one._kernel import UnitBall, ZeroOneKernel


def truncation_degree(nu: float, tol: float) -> int:
    """Return the least D with nu^(D+1) + nu^(D+2) + ... = nu^(D+1) / (1 - nu) <= `tol`.

    `tol` is the largest error of the kernel on the unit ball.

    >>> truncation_degree(0.5, 1e-3)
    10
    """
    degree = max(0, math.ceil(math.log(tol * (1 - nu)) / math.log(nu)) - 1)
    # logarithms round: 0.5^10 / 0.5 must not count as more than 2^-9
    while degree > 0 and nu**degree / (1 - nu) <= tol:
        degree -= 1
    while nu ** (degree + 1) / (1 - nu) > tol:
        degree += 1
    return degree


def n_monomials(n_features: int, degree: int) -> int:
    """Count the monomials of exactly this degree.

    >>> n_monomials(3, 2)
    6
    """
    return math.comb(n_features + degree - 1, degree)


class MonomialTable:
    """All monomials up to a degree, each as a product of a shorter one and a feature.

    `steps` has for each degree from 1 the columns of the shorter monomials in the previous
    degree, the features to multiply with, and the square roots of the numbers of orders.
    """

    def __init__(self, n_features, degree):
        self.steps = []
        previous = {(): 0}
        for j in range(1, degree + 1):
            # nondecreasing feature indices, a tuple per monomial
            tuples = list(combinations_with_replacement(range(n_features), j))
            parent = np.array([previous[t[:-1]] for t in tuples], dtype=np.intp)
            feature = np.array([t[-1] for t in tuples], dtype=np.intp)
            orders = [
                math.factorial(j) // math.prod(math.factorial(t.count(i)) for i in set(t))
                for t in tuples
            ]
            self.steps.append((parent, feature, np.sqrt(np.array(orders, dtype=float))))
            previous = {t: i for i, t in enumerate(tuples)}

    def blocks(self, X, nu):
        """Yield weighted monomials of inputs in the unit ball, one array per degree.

        The shapes are (n_samples, monomials of degree 0, 1, 2, ...). Inner products within
        block j are nu^j <x, z>^j.
        """
        plain = np.ones((len(X), 1), dtype=X.dtype)
        yield plain
        for j, (parent, feature, weight) in enumerate(self.steps, start=1):
            plain = plain[:, parent] * X[:, feature]
            yield plain * (nu ** (j / 2) * weight).astype(X.dtype)


def sketch_blocks(X, nu, degrees, indices, signs, width):
    """Yield tensor sketches of the powers of <x, z>, one array per degree.

    Pham and Pagh, "Fast and scalable polynomial kernels via explicit feature maps"
    (KDD 2013): the count sketch of a tensor power is the convolution of independent
    count sketches of its factors, a product after the Fourier transform. All degrees
    share the factors, so degree j costs one more of them.

    `degrees` are increasing. For each factor, `indices` has the hash of each feature, below
    `width`, and `signs` its sign. Inner products within block j have expectation
    ``nu^j <x, z>^j``.
    """
    spectrum = None
    wanted = set(degrees)
    for j in range(1, max(degrees) + 1):
        count = np.zeros((width, X.shape[1]), dtype=X.dtype)
        count[indices[j - 1], np.arange(X.shape[1])] = signs[j - 1]
        factor = rfft(X @ count.T, axis=1)
        spectrum = factor if spectrum is None else spectrum * factor
        if j in wanted:
            yield irfft(spectrum, n=width, axis=1).astype(X.dtype) * X.dtype.type(nu ** (j / 2))


@dataclass(eq=False, repr=False)
class ZeroOneFeatures(ExplicitMap):
    """Monomials weighted by nu^(j/2), whose inner products are the 0-1 loss kernel.

    ``phi(x) = (nu^(j/2) x_{i_1} ... x_{i_j})`` over all degrees j and indices i_1, ..., i_j.
    Lemma 1 of Shalev-Shwartz, Shamir and Sridharan (IJCAI 2011) writes the kernel
    1 / (1 - nu <x, z>) as an inner product of all monomials. This map keeps those up to
    the degree D where the rest, nu^(D+1) / (1 - nu), is at most `tol`. The lowest degrees
    are exact as long as they fit into `n_components`; the others share the rest of it
    as tensor sketches (Pham and Pagh, KDD 2013). In low dimension everything is exact.

    Parameters
    ----------
    nu : float, default 0.5
        Parameter of the kernel, strictly between 0 and 1.
    tol : float, default 1e-3
        Largest error of the kernel on the unit ball that truncation may cause, in (0, 1).
    n_components : int, default 1024
        Maximum number of features of the map.
    scale : bool, default True
        Divide the inputs by the largest training norm if that exceeds 1. Later inputs
        outside the unit ball are projected on it.
    random_state : int, RandomState instance or None, default None
        Hash functions of the sketches.

    Attributes
    ----------
    degree_ : int
        Degree D of the truncation.
    exact_degree_ : int
        Degrees up to this one are exact.
    tail_ : float
        nu^(D+1) / (1 - nu), a bound of the truncation error.
    n_features_in_ : int
        Number of features of the inputs.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the inputs leave the unit ball and
        `scale` is False.

    Notes
    -----
    The variance of a sketch of degree j grows as nu^(2j) 3^j. Up to nu = 0.57 it falls
    with the degree; for larger nu, in dimensions where the high degrees do not fit
    exactly, use the Nystroem method with `ZeroOneKernel` instead.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.6, 0.0], [0.0, -0.8]])
    >>> Z = ZeroOneFeatures(nu=0.5, tol=1e-6).fit_transform(X)
    >>> (Z @ Z.T).round(4)
    array([[1.2195, 1.    ],
           [1.    , 1.4706]])
    >>> ZeroOneKernel(nu=0.5)(X).round(4)
    array([[1.2195, 1.    ],
           [1.    , 1.4706]])
    """

    takes_lazy_rows = True
    _accept_sparse = False

    nu: float = number(0.5, above=0, below=1)
    _: KW_ONLY
    tol: float = number(1e-3, above=0, below=1)
    n_components: int = integer(1024, least=1)
    scale: bool = True
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X):
        nu, n = float(self.nu), self.n_components
        self.ball_ = UnitBall.fit(X, ZeroOneKernel(nu), self.scale)
        self.degree_ = truncation_degree(nu, self.tol)
        self.tail_ = nu ** (self.degree_ + 1) / (1 - nu)
        self.exact_degree_, used = self._exact_degree(X.shape[1], n)
        self._table = MonomialTable(X.shape[1], self.exact_degree_)
        sketched = self.degree_ - self.exact_degree_
        # fewer components than degrees: the highest ones, which weigh least, are left out
        self._sketched = [self.exact_degree_ + 1 + i for i in range(min(sketched, n - used))]
        self._width = 0
        if self._sketched:
            width = (n - used) // len(self._sketched)
            # rounded down by less than a quarter, to a length that transforms fast
            self._width = width - width % (1 << max(0, width.bit_length() - 3))
            random = check_random_state(self.random_state)
            shape = (self._sketched[-1], X.shape[1])
            self._indices = random.randint(self._width, size=shape)
            self._signs = random.choice([-1.0, 1.0], size=shape)
        return used + self._width * len(self._sketched)

    def _exact_degree(self, n_features, n_components):
        """Return the largest degree up to which all monomials fit, and their number.

        Where not everything fits, half of the components are left to the sketches.
        """
        counts = np.cumsum([float(n_monomials(n_features, j)) for j in range(self.degree_ + 1)])
        if counts[-1] <= n_components:
            return self.degree_, int(counts[-1])
        degree = max(0, int(np.sum(counts <= n_components / 2)) - 1)
        return degree, int(counts[degree])

    def _transform(self, X):
        X = self.ball_.inside(X, clip=True)
        blocks = list(self._table.blocks(X, self.nu))
        if self._sketched:
            blocks += sketch_blocks(
                X, self.nu, self._sketched, self._indices, self._signs, self._width
            )
        return np.hstack(blocks)


def approximated_kernel(fitted, X, Y):
    """Return the Gram matrix that a fitted map approximates, for the kernel error.

    ``1 / (1 - nu <x, z>)`` of the scaled inputs; `X` and `Y` are as the map gets them.
    """
    X, Y = (fitted.ball_.inside(np.asarray(rows), clip=True) for rows in (X, Y))
    return ZeroOneKernel(fitted.nu)(X, Y)

"""The bounds of Shalev-Shwartz, Shamir and Sridharan (IJCAI 2011), as functions.

Their numbers soon leave the range of floats, hence everything that depends on B
is given as a logarithm too.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from kbench.parameters import check_number


class Bound(NamedTuple):
    """A positive number that may be too large for a float, and its natural logarithm.

    The value is infinite where it overflows.
    """

    value: float
    log: float


def sigmoid(a, L):
    """Evaluate the sigmoid transfer function, 1 / (1 + exp(-4 L a)), equation 4.

    Parameters
    ----------
    a : array-like
        Values <w, x>.
    L : float
        Lipschitz constant, positive.

    Returns
    -------
    ndarray
        Probabilities of label 1, of the shape of `a`.

    Examples
    --------
    >>> sigmoid([-0.5, 0.0, 0.5], L=3.0).round(3)
    array([0.002, 0.5  , 0.998])
    """
    # tanh does not overflow
    return 0.5 + 0.5 * np.tanh(2.0 * L * np.asarray(a, dtype=float))


def worst_case_B(L, epsilon):
    """Return a squared radius that always holds the sigmoid up to epsilon, Lemma 2.

    Parameters
    ----------
    L : float
        Lipschitz constant, at least 3.
    epsilon : float
        Largest distance of the polynomial to the sigmoid, in (0, 1).

    Returns
    -------
    Bound
        2 L^4 + exp(7 L log(2 L / epsilon) + 3), for nu = 1/2.

    Examples
    --------
    >>> worst_case_B(L=3.0, epsilon=0.1).log.__round__(2)
    88.98
    """
    check_number(L, "L", least=3)
    check_number(epsilon, "epsilon", above=0, below=1)
    log = float(np.logaddexp(math.log(2 * L**4), 7 * L * math.log(2 * L / epsilon) + 3))
    return Bound(math.exp(log) if log < 709.0 else math.inf, log)


class SigmoidPolynomial(NamedTuple):
    """A polynomial close to the sigmoid on [-1, 1].

    Parameters
    ----------
    chebyshev : ndarray, shape (degree + 1,)
        Coefficients in the Chebyshev basis: evaluate these.
    monomial : tuple of float
        beta_0 ... beta_degree, as in equation 10.
    error_bound : float
        Bound of its largest distance to the sigmoid on [-1, 1].
    log_norm : float
        Logarithm of sum_j beta_j^2 nu^-j: the polynomial is in P_B if log B is as large.
    """

    chebyshev: np.ndarray
    monomial: tuple[float, ...]
    error_bound: float
    log_norm: float

    @property
    def degree(self):
        """Degree of the polynomial."""
        return len(self.chebyshev) - 1

    def __call__(self, a):
        """Evaluate at values <w, x> in [-1, 1]; the result has the shape of `a`."""
        return np.polynomial.chebyshev.chebval(np.asarray(a, dtype=float), self.chebyshev)


def sigmoid_polynomial(L, epsilon, nu=0.5):
    """Approximate the sigmoid by its Chebyshev series, and take its P_B norm.

    Lemma 2 bounds the B that holds some polynomial within epsilon of the sigmoid; this
    polynomial shows how far below that bound such a B really lies.

    Parameters
    ----------
    L : float
        Lipschitz constant of the sigmoid, positive.
    epsilon : float
        Largest distance on [-1, 1], in (0, 1).
    nu : float, default 0.5
        Parameter of the kernel, in (0, 1); the norm is sum_j beta_j^2 nu^-j (2^j in
        equation 10).

    Returns
    -------
    SigmoidPolynomial
        Of the least degree at which the absolute values of all later coefficients sum
        up to at most `epsilon`, which bounds the error everywhere on [-1, 1].

    Examples
    --------
    >>> p = sigmoid_polynomial(L=3.0, epsilon=0.1)
    >>> p.error_bound <= 0.1
    True
    >>> p.log_norm < worst_case_B(L=3.0, epsilon=0.1).log
    True
    """
    check_number(L, "L", above=0)
    for name, value in (("epsilon", epsilon), ("nu", nu)):
        check_number(value, name, above=0, below=1)
    coefficients = _chebyshev_series(L)
    # tails[n]: what the terms after degree n can add up to
    tails = np.append(np.cumsum(np.abs(coefficients[::-1]))[::-1][1:], 0.0)
    degree = int(np.argmax(tails <= epsilon))
    chebyshev = coefficients[: degree + 1]
    # exactly: in floats, monomial coefficients cancel beyond degree 40
    beta = np.polynomial.chebyshev.cheb2poly([Fraction(float(c)) for c in chebyshev])
    logs = [2 * _log_abs(value) - j * math.log(nu) for j, value in enumerate(beta) if value != 0]
    return SigmoidPolynomial(
        chebyshev, tuple(map(float, beta)), float(tails[degree]), float(np.logaddexp.reduce(logs))
    )


def _chebyshev_series(L):
    """Return the Chebyshev coefficients of the sigmoid down to rounding errors."""
    # the nearest poles, +- i pi / (4 L), set the rate: |c_n| falls as rho^-n
    pole = math.pi / (4 * L)
    n = math.ceil(40 / math.log(pole + math.sqrt(1 + pole**2))) + 16
    coefficients = dct(sigmoid(np.cos((np.arange(n) + 0.5) * math.pi / n), L), type=2) / n
    coefficients[0] /= 2
    coefficients[2::2] = 0.0  # sigmoid minus 1/2 is odd
    return coefficients


def _log_abs(fraction):
    """Return the logarithm of |p/q| for integers of any size."""
    return math.log(abs(fraction.numerator)) - math.log(fraction.denominator)

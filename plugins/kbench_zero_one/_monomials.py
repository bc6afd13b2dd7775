"""The explicit feature space of Lemma 1, exactly and sketched.

1 / (1 - nu <x, z>) = sum_j nu^j <x, z>^j. The terms of degree j are the inner products
of all monomials of that degree, weighted by nu^(j/2); a monomial that Lemma 1 lists
once per order of its factors is kept once here, with the square root of the number of
orders as its weight.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
from scipy.fft import irfft, rfft


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

    Attributes
    ----------
    steps : list of (parent, feature, weight)
        For each degree from 1: column of the shorter monomial in the previous degree,
        the feature to multiply with, and the square root of the number of orders.
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

    Parameters
    ----------
    X : ndarray, shape (n_samples, n_features)
        Inputs in the unit ball.
    nu : float
        In (0, 1).
    degrees : sequence of int
        Increasing.
    indices : ndarray of int, shape (largest degree, n_features)
        Hash of each feature, in 0..width-1, for each factor.
    signs : ndarray of {-1, 1}, shape (largest degree, n_features)
        Signs of each feature, for each factor.
    width : int
        Length of a sketch.

    Yields
    ------
    ndarray, shape (n_samples, width)
        Inner products within block j have expectation nu^j <x, z>^j.
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

"""How many random features each degree of a Maclaurin series gets.

Wacker, Kanagawa and Filippone, arXiv:2201.08712, section 5: the numbers that minimise the expected
variance of the approximate kernel over pairs of training rows, and the highest degree that
minimises this variance and the squared bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kbench_baselines._hadamard import padded_size


@dataclass(frozen=True)
class Series:
    """Coefficients a_n of degrees 0, 1, ... of a kernel, and a factor for each row.

    The kernel is ``f(x) f(z) sum_n a_n (x.z)^n``.
    """

    coefficients: np.ndarray
    factors: np.ndarray


@dataclass(frozen=True)
class Moments:
    """Means over pairs of rows, for the degrees 1, 2, ... of a series.

    `variances` are those of one feature. `covariances` are those of two features of a block
    of `block` ones, 0 where features are independent. `biases` are squared, for a series
    that ends with the degree.
    """

    variances: np.ndarray
    covariances: np.ndarray
    biases: np.ndarray
    block: float


def moments(X, series, kernel, projection, is_complex):
    """Estimate variances and biases from all pairs of the rows of `X`, without equal ones.

    `kernel` is the Gram matrix that the series approximates. Variances of one feature are those
    of sums with signs, and an upper bound for hashed sums (Pham and Pagh, KDD 2013);
    covariances are those of two rows of a Hadamard matrix.
    """
    pairs = np.tril_indices(len(X), k=-1)
    squares = X**2
    inner, crossed = (X @ X.T)[pairs], (squares @ squares.T)[pairs]
    lengths = np.outer(squares.sum(axis=1), squares.sum(axis=1))[pairs]
    factor = np.outer(series.factors, series.factors)[pairs]
    block = float(padded_size(X.shape[1]))
    if is_complex:
        second = lengths + inner**2 - crossed
        mixed = lengths - crossed
    else:
        second = lengths + 2 * (inner**2 - crossed)
        mixed = lengths + inner**2 - 2 * crossed
    mixed = inner**2 - mixed / max(block - 1, 1.0)
    partial = np.full(len(inner), series.coefficients[0], dtype=np.float64)
    variances, covariances, biases = [], [], []
    for degree, coefficient in enumerate(series.coefficients[1:], start=1):
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
    expected = _expected(found, highest, n_components - highest + 1)
    gains = expected[:, :-1] - expected[:, 1:]
    counts = np.ones(highest, dtype=int)
    chosen = np.argsort(-gains, axis=None, kind="stable")[: n_components - highest]
    degrees, times = np.unique(chosen // max(gains.shape[1], 1), return_counts=True)
    counts[degrees] += times
    return counts, expected[np.arange(highest), counts - 1].sum()


def _expected(found, highest, most):
    """Variance of each degree with 1, ..., `most` features, (highest, most)."""
    number = np.arange(1, most + 1)
    one, two = found.variances[:highest, None], found.covariances[:highest, None]
    in_one_block = one / number + (number - 1) / number * two
    in_blocks = (one + (found.block - 1) * two) / number
    return np.where((number <= found.block) & (two <= 0), in_one_block, in_blocks)

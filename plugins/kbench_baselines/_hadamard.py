"""Walsh-Hadamard transforms as products with small Hadamard matrices."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.linalg import hadamard

_LARGEST_FACTOR = 5
"""Exponent of the largest Hadamard matrix that is multiplied as a whole, 2^5 = 32 rows."""


def padded_size(n_features):
    """Smallest power of two that is not below `n_features`.

    Examples
    --------
    >>> [padded_size(d) for d in (1, 2, 3, 1000, 1024)]
    [1, 2, 4, 1024, 1024]
    """
    return 1 << (n_features - 1).bit_length()


def walsh_hadamard(A):
    """Multiply `A` by the Hadamard matrix of its height, without a factor.

    ``H_ab = H_a (x) H_b``, so that each factor of at most 32 rows is one batched matrix
    product. Measured with d = 1,024 this takes as long as compiled butterflies, and a
    fifth of the time of butterflies in numpy.

    Parameters
    ----------
    A : ndarray, shape (2^k, n_columns)
        C-contiguous; it is used as memory for intermediate results.

    Returns
    -------
    ndarray, shape (2^k, n_columns)
        ``H A`` in Sylvester's order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> walsh_hadamard(np.eye(4)[:, :2]).T
    array([[ 1.,  1.,  1.,  1.],
           [ 1., -1.,  1., -1.]])
    """
    size, n_columns = A.shape
    other = np.empty_like(A)
    before = 1
    for factor in _factors(size, A.dtype):
        shape = (before, len(factor), size // (before * len(factor)) * n_columns)
        np.matmul(factor, A.reshape(shape), out=other.reshape(shape))
        A, other = other, A
        before *= len(factor)
    return A


@cache
def _factors(size, dtype):
    """Hadamard matrices of about equal size whose Kronecker product is that of `size`."""
    exponent = size.bit_length() - 1
    number = -(-exponent // _LARGEST_FACTOR)
    exponents = [(exponent + i) // number for i in range(number)]
    return [hadamard(2**each).astype(dtype) for each in exponents]


def rows_together(size):
    """How many rows of `size` numbers to transform at once: they stay in cache."""
    return min(256, max(8, 2**16 // size))

"""One pass of Balanced Winnow, compiled by numba when this module is imported."""

import numpy as np
from numba import njit, types


def _array(scalar, n_dim, *, written=False):
    """Return the type of a C-contiguous array; one not written may be a read-only memory map."""
    return types.Array(scalar, n_dim, "C", readonly=not written)


_vector = _array(types.float64, 1, written=True)


@njit(
    types.UniTuple(types.int64, 2)(
        _array(types.float64, 2),
        _array(types.float64, 1),
        _array(types.int64, 1),
        types.float64,
        types.float64,
        _vector,
        _vector,
        _vector,
        types.int64,
    ),
    cache=True,
    error_model="numpy",
    fastmath={"reassoc", "contract"},  # sums in vector registers
)
def winnow_pass(X, signs, order, learning_rate, largest_exponent, a, w, total, survived):
    """Do what `kbench_learners._winnow.winnow_pass` does, one row after the other."""
    count = 0
    p = X.shape[1]
    for i in order:
        row, sign = X[i], signs[i]
        margin = 0.0
        for j in range(p):
            margin += row[j] * w[j]
        survived += 1
        if (margin >= 0.0) == (sign > 0.0):
            continue
        count += 1
        for j in range(p):
            total[j] += survived * w[j]
            a[j] += sign * row[j]
            w[j] = np.sinh(min(max(learning_rate * a[j], -largest_exponent), largest_exponent))
        survived = 0
    return count, survived

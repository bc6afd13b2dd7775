"""Types and options that the compiled kernels share."""

import numpy as np
from numba import types

# Rows that go through the kernels together, transposed: steps then run along rows
# of independent numbers.
TOGETHER = 64

OPTIONS = {"cache": True, "error_model": "numpy"}

# Arrays are walked flat, by numbers without sign: a signed index may count from
# the end, and the check for that keeps loops from being vectorised.
U = np.uint64


def array(scalar, n_dim, *, written=False):
    """C-contiguous; an array that is only read may be a memory map without write access."""
    return types.Array(scalar, n_dim, "C", readonly=not written)

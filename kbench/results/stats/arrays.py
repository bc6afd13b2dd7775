"""Arrays of scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def checked(values: Array) -> Array:
    """Return scores as an array of shape (n_datasets, n_methods); all must be finite."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"values has {values.ndim} dimensions; (n_datasets, n_methods) is needed")
    if not np.isfinite(values).all():
        raise ValueError("values has numbers that are not finite; compare complete datasets only")
    return values

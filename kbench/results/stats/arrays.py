"""Arrays of scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def checked(values: Array, allow_nan: bool = False) -> Array:
    """Return scores as an array of shape (n_datasets, n_methods); all must be finite, or NaN."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"values must have shape (n_datasets, n_methods), got {values.shape}")
    if not (np.isfinite(values) | (allow_nan & np.isnan(values))).all():
        raise ValueError("values must be finite: compare only datasets that all methods finished")
    return values

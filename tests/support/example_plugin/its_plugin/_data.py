"""Two rings."""

import numpy as np

from kbench import Dataset


def load(n_samples=120, seed=0):
    """Draw points on two rings around 0, labelled by the ring."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 2
    angle = 2 * np.pi * rng.random(n_samples)
    radius = 1.0 + y + 0.1 * rng.standard_normal(n_samples)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return Dataset("its-data", X=X, y=y, target_names=("inner", "outer"))

"""Small inputs that satisfy the requirements of a component."""

from __future__ import annotations

import numpy as np

N_FEATURES = 4


def inputs(requires: str | None = None, n_samples: int = 60, seed: int = 0) -> np.ndarray:
    """Return random inputs, shape (n_samples, 4), whose rows satisfy what a map requires.

    They are multiples of 1/64, so that float32 holds the same numbers; a tenth of
    the entries are zero.

    Examples
    --------
    >>> X = inputs("unit_ball")
    >>> bool((X**2).sum(axis=1).max() <= 1)
    True
    """
    rng = np.random.default_rng(seed)
    if requires == "nonnegative":
        X = rng.random((n_samples, N_FEATURES))
    else:
        X = rng.standard_normal((n_samples, N_FEATURES))
    X[rng.random(X.shape) < 0.1] = 0.0
    if requires == "unit_ball":
        X /= 1.05 * np.linalg.norm(X, axis=1).max()
        return np.trunc(X * 64) / 64  # rounding must not leave the ball
    return np.round(X * 64) / 64


def labels(X: np.ndarray) -> np.ndarray:
    """Return labels 0 and 1 that inputs can tell apart, both of them present."""
    score = X[:, 0] + X[:, 1]
    return np.asarray(score > np.median(score), dtype=np.int64)


def blobs(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return 2 to 4 well separated classes in the unit cube, the first one twice as large."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.zeros(20, dtype=np.int64), np.repeat(np.arange(n_classes), 20)])
    y = rng.permutation(y)
    centres = 0.2 + 0.6 * np.eye(N_FEATURES)[:n_classes]
    X = centres[y] + 0.04 * rng.standard_normal((len(y), N_FEATURES))
    return np.clip(X, 0.0, 1.0), y


def noise(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform inputs, shape (80, 40), and labels that are independent of them.

    A third of the labels are 1. A model can only learn them by heart, and has
    enough columns to do so.
    """
    rng = np.random.default_rng(seed)
    return rng.random((80, 40)), np.asarray(rng.random(80) < 1 / 3, dtype=np.int64)

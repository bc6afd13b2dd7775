"""Small inputs that satisfy the requirements of a component."""

from __future__ import annotations

import numpy as np

from kbench.records import TaskType

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


def targets(X: np.ndarray, task: TaskType | None) -> np.ndarray:
    """Return what inputs determine: labels, or for regression standardised numbers."""
    return standardised(X[:, 0] + X[:, 1]) if task == "regression" else labels(X)


def standardised(y: np.ndarray) -> np.ndarray:
    """Return numbers with mean 0 and deviation 1, as kbench gives them to regressors."""
    return np.asarray((y - y.mean()) / y.std())


def linear(n_samples: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, shape (n_samples, 4), in the unit cube and linear targets with normal noise.

    The variance of the targets is about 1, of which the noise has a fifth.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, N_FEATURES))
    y = (X - 0.5) @ np.array([2.5, -1.5, 1.0, 0.0]) + 0.45 * rng.standard_normal(n_samples)
    return X, y


def blobs(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return 2 to 4 well separated classes in the unit cube, the first one twice as large."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.zeros(20, dtype=np.int64), np.repeat(np.arange(n_classes), 20)])
    y = rng.permutation(y)
    centres = 0.2 + 0.6 * np.eye(N_FEATURES)[:n_classes]
    X = centres[y] + 0.04 * rng.standard_normal((len(y), N_FEATURES))
    return np.clip(X, 0.0, 1.0), y


def noise(task: TaskType | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform inputs, shape (80, 40), and targets that are independent of them.

    A third of the labels are 1; targets of regression are normal. A model can only learn
    them by heart, and has enough columns to do so.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((80, 40))
    if task == "regression":
        return X, standardised(rng.standard_normal(80))
    return X, np.asarray(rng.random(80) < 1 / 3, dtype=np.int64)

"""Ridge regression on blocks of embedded rows, with all penalties at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

PENALTIES = np.logspace(-7, 2, 19)
"""Penalties, in units of the mean squared norm of the centred features."""

MAX_FACTORED = 4096
"""Largest matrix that is factored: with more features, at most so many rows are used."""

_BLOCK_VALUES = 2**22

Embed = Callable[[np.ndarray], object]
"""Returns the features of some rows, given by their numbers: an array or a CSR matrix."""


def blocks(rows: np.ndarray, width: int) -> Iterator[np.ndarray]:
    """Yield few of the rows at a time: as many as have `_BLOCK_VALUES` features."""
    step = max(64, _BLOCK_VALUES // max(1, width))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


@dataclass(frozen=True)
class Path:
    """Solutions of a ridge problem for all `PENALTIES`.

    With the i-th penalty, the functions are ``(phi(x) - shift) @ basis @ weights[i] + target``;
    `weights` has shape (n_penalties, n_directions, n_outputs).
    """

    basis: np.ndarray
    weights: np.ndarray
    shift: np.ndarray
    target: np.ndarray

    def coef(self, penalty: int) -> np.ndarray:
        """Coefficients of the features, (n_outputs, n_features), with a penalty."""
        return np.asarray((self.basis @ self.weights[penalty]).T)

    def losses(self, Z, targets: np.ndarray) -> np.ndarray:
        """Squared errors of rows, means over the outputs, (n_penalties, n_rows)."""
        projected = Z @ self.basis - self.shift @ self.basis
        errors = (projected @ weights + self.target - targets for weights in self.weights)
        return np.stack([np.mean(error**2, axis=1) for error in errors])


def ridge_path(embed: Embed, rows: np.ndarray, targets: np.ndarray, width: int) -> Path:
    """Solve ``min |targets - f(rows)|^2 + penalty |w|^2`` for all penalties.

    `targets`, (n_rows, n_outputs), are those of `rows`, in their order. With at least as many
    rows as features, `width`, the Gram matrix is added up over blocks of rows.
    """
    if width <= min(len(rows), MAX_FACTORED):
        return _from_columns(embed, rows, targets, width)
    if len(rows) > MAX_FACTORED:
        chosen = np.linspace(0, len(rows) - 1, MAX_FACTORED).astype(np.intp)
        rows, targets = rows[chosen], targets[chosen]
    return _from_rows(embed(rows), targets)


def _from_columns(embed: Embed, rows: np.ndarray, targets: np.ndarray, width: int) -> Path:
    gram, total = np.zeros((width, width)), np.zeros(width)
    target = targets.mean(axis=0)
    moments = np.zeros((width, targets.shape[1]))
    first, start = None, 0
    for part in blocks(rows, width):
        Z = _dense(embed(part))
        # without the shift, differences of large numbers would lose digits
        first = Z.mean(axis=0) if first is None else first
        Z -= first
        gram += Z.T @ Z
        total += Z.sum(axis=0)
        moments += Z.T @ (targets[start : start + len(part)] - target)
        start += len(part)
    mean = total / len(rows)
    gram -= len(rows) * np.outer(mean, mean)
    values, vectors = eigh(gram, overwrite_a=True, check_finite=False)
    values = np.maximum(values, 0.0)
    weights = _shrunk(values, vectors.T @ moments, len(rows))
    return Path(vectors, weights, first + mean, target)


def _from_rows(Z, targets: np.ndarray) -> Path:
    """Solve in the space of the rows, of which there are fewer than features."""
    mean, target = np.asarray(Z.mean(axis=0)).ravel(), targets.mean(axis=0)
    gram = Z @ Z.T
    gram = gram.toarray() if hasattr(gram, "toarray") else gram
    middle = gram.mean(axis=0)
    gram = gram - middle[:, None] - middle + middle.mean()
    values, vectors = eigh(gram, overwrite_a=True, check_finite=False)
    kept = values > len(gram) * np.finfo(float).eps * max(values[-1], 0.0)
    values, vectors = values[kept], vectors[:, kept]
    weights = _shrunk(values, vectors.T @ (targets - target), len(gram))
    # Vectors of small eigenvalues are orthogonal to a constant only to rounding, and are divided
    # by small penalties: the mean has to be subtracted.
    basis = np.asarray(Z.T @ vectors) - np.outer(mean, vectors.sum(axis=0))
    return Path(basis, weights, mean, target)


def _shrunk(values: np.ndarray, moments: np.ndarray, n_rows: int) -> np.ndarray:
    """Divide moments by eigenvalues plus each penalty: (n_penalties, n_directions, n_outputs)."""
    unit = values.sum() / n_rows
    penalties = PENALTIES * (unit or 1.0)
    return np.stack([moments / (values + penalty)[:, None] for penalty in penalties])


def _dense(Z) -> np.ndarray:
    return Z.toarray() if hasattr(Z, "toarray") else np.array(Z, dtype=np.float64)

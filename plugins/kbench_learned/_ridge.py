"""Ridge regression on blocks of embedded rows, with all penalties at once."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from kbench.arrays import Array, like, namespace, take, take_columns, to_numpy


@dataclass(frozen=True)
class Targets:
    """What is fitted: targets, or labels as -1 and 1, in units of their standard deviations.

    `columns` are standardised, one for each output; they are ``columns * scale + location`` in
    their own units. `strata` are the numbers of the classes, 0 in regression.
    """

    columns: np.ndarray
    strata: np.ndarray
    location: np.ndarray
    scale: np.ndarray

    def original(self, columns: np.ndarray) -> np.ndarray:
        """Return predictions of the columns in their own units."""
        return columns * self.scale + self.location


def encode_numbers(y: np.ndarray) -> Targets:
    """Return the targets of a regression."""
    return _standardise(y[:, None].astype(np.float64), np.zeros(len(y), dtype=np.intp))


def encode_labels(y: np.ndarray) -> Targets:
    """Return a column for each class against the rest, and one column for two classes."""
    classes, strata = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y has one class, and a metric cannot be learned from it")
    columns = np.where(strata[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return _standardise(columns[:, 1:] if len(classes) == 2 else columns, strata)


def _standardise(columns: np.ndarray, strata: np.ndarray) -> Targets:
    location, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return Targets((columns - location) / scale, strata, location, scale)


_PARTS = 5
"""A fold holds out one of so many parts of the rows."""

_HELD_OUT = 1_000
"""Rows that all folds together hold out, if there are enough of them."""


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, and held-out rows."""

    fit: np.ndarray
    held_out: np.ndarray


def make_folds(strata: np.ndarray, rng: np.random.RandomState) -> list[Fold]:
    """Hold out as many parts of the rows in turn as have 1,000 rows together.

    Errors of fewer rows choose a round by chance, and more rows take time. Strata have equal
    shares in all parts. Below four rows there is no fold.
    """
    n_parts = min(_PARTS, len(strata) // 2)
    if n_parts < 2:
        return []
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    part = np.empty(len(order), dtype=np.intp)
    part[order] = np.arange(len(order)) % n_parts
    n_folds = min(n_parts, math.ceil(_HELD_OUT * n_parts / len(strata)))
    return [Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_folds)]


PENALTIES = np.logspace(-7, 2, 19)
"""Penalties, in units of the mean squared norm of the centred features."""

MAX_FACTORED = 4096
"""Size of the largest matrix to factor: with more features, at most this many rows are used."""

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

    def coef(self, penalty: int) -> Array:
        """Coefficients of the features, (n_outputs, n_features), with a penalty."""
        return (self.basis @ self.weights[penalty, ...]).T

    def losses(self, Z, targets: np.ndarray) -> np.ndarray:
        """Squared errors of rows, means over the outputs, (n_penalties, n_rows)."""
        xp, projected = namespace(targets), Z @ self.basis - self.shift @ self.basis
        numbers = range(self.weights.shape[0])
        errors = (projected @ self.weights[i, ...] + self.target - targets for i in numbers)
        return to_numpy(xp.stack([xp.mean(error**2, axis=1) for error in errors]))


def ridge_path(embed: Embed, rows: np.ndarray, targets: np.ndarray, width: int) -> Path:
    """Solve ``min |targets - f(rows)|^2 + penalty |w|^2`` for all penalties.

    `targets`, (n_rows, n_outputs), are those of `rows`, in their order. With at least as many
    rows as features, `width`, the Gram matrix is added up over blocks of rows.
    """
    if width <= min(len(rows), MAX_FACTORED):
        return _from_columns(embed, rows, targets, width)
    if len(rows) > MAX_FACTORED:
        chosen = np.linspace(0, len(rows) - 1, MAX_FACTORED).astype(np.intp)
        rows, targets = rows[chosen], take(targets, chosen)
    return _from_rows(embed(rows), targets)


def _from_columns(embed: Embed, rows: np.ndarray, targets: np.ndarray, width: int) -> Path:
    xp = namespace(targets)
    gram, total = like(np.zeros((width, width)), targets), like(np.zeros(width), targets)
    target = xp.mean(targets, axis=0)
    moments = like(np.zeros((width, targets.shape[1])), targets)
    first, start = None, 0
    for part in blocks(rows, width):
        # a copy: the identity map returns its inputs
        Z = embed(part)
        Z = xp.asarray(to_numpy(Z) if xp is np else Z, dtype=xp.float64, copy=True)
        # without the shift, differences of large numbers would lose digits
        first = xp.mean(Z, axis=0) if first is None else first
        Z -= first
        gram += Z.T @ Z
        total += xp.sum(Z, axis=0)
        moments += Z.T @ (take(targets, slice(start, start + len(part))) - target)
        start += len(part)
    mean = total / len(rows)
    gram -= len(rows) * (mean[:, None] * mean)
    if hasattr(xp, "cholesky_solve"):  # of torch
        return Path(*_factored(gram, moments, len(rows)), first + mean, target)
    values, vectors = _eigh(gram)
    values = xp.clip(values, 0.0, None)
    return Path(vectors, _shrunk(values, vectors.T @ moments, len(rows)), first + mean, target)


def _from_rows(Z, targets: np.ndarray) -> Path:
    """Solve in the space of the rows, of which there are fewer than features."""
    xp = namespace(targets)
    mean = np.asarray(Z.mean(axis=0)).ravel() if xp is np else xp.mean(Z, axis=0)
    target = xp.mean(targets, axis=0)
    gram = Z @ Z.T
    gram = gram.toarray() if hasattr(gram, "toarray") else gram
    middle = xp.mean(gram, axis=0)
    gram = gram - middle[:, None] - middle + xp.mean(middle)
    if hasattr(xp, "cholesky_solve"):  # of torch
        vectors, weights = _factored(gram, targets - target, gram.shape[0])
    else:
        values, vectors = _eigh(gram)
        kept = values > gram.shape[0] * float(np.finfo(float).eps) * max(float(values[-1]), 0.0)
        values, vectors = values[kept], take_columns(vectors, kept)
        weights = _shrunk(values, vectors.T @ (targets - target), gram.shape[0])
    # Vectors of small eigenvalues are orthogonal to a constant only to rounding, and are divided
    # by small penalties: the mean has to be subtracted.
    return Path(Z.T @ vectors - mean[:, None] * xp.sum(vectors, axis=0), weights, mean, target)


def _shrunk(values: Array, moments: Array, n_rows: int) -> Array:
    """Divide moments by eigenvalues plus each penalty: (n_penalties, n_directions, n_outputs)."""
    xp = namespace(values)
    penalties = PENALTIES * (float(xp.sum(values)) / n_rows or 1.0)
    return xp.stack([moments / (values + float(penalty))[:, None] for penalty in penalties])


def _factored(gram: Array, moments: Array, n_rows: int) -> tuple[Array, Array]:
    """Return a basis, the identity, and solutions in it for each penalty, by torch.

    On a GPU, factorisations for all penalties take less time than one eigendecomposition.
    """
    xp, weights = namespace(gram), []
    identity = xp.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    for penalty in PENALTIES * (float(xp.linalg.trace(gram)) / n_rows or 1.0):
        shifted = gram + float(penalty) * identity
        factor, is_singular = xp.linalg.cholesky_ex(shifted)
        if is_singular:
            weights.append(xp.linalg.solve(shifted, moments))
        else:
            weights.append(xp.cholesky_solve(moments, factor))
    return identity, xp.stack(weights)


def _eigh(gram: Array) -> Array:
    """Eigenvalues, ascending, and eigenvectors; numpy's matrix is overwritten."""
    if (xp := namespace(gram)) is not np:
        return xp.linalg.eigh(gram)
    return eigh(gram, overwrite_a=True, check_finite=False)

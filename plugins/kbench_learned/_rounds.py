"""Rounds of learning: fit, judge on held-out rows, and average gradient outer products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone

from kbench_learned._ridge import Path, blocks, ridge_path


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, and held-out rows."""

    fit: np.ndarray
    held_out: np.ndarray


@dataclass
class Trajectory:
    """What the rounds learned.

    Parameters
    ----------
    losses : list of ndarray
        Squared errors of the held-out rows after 0, 1, ... rounds, means over the outputs.
    matrices : list of ndarray
        The matrix of each round, the first being the identity.
    lost_rank : bool
        Whether it ended because all gradients were 0.
    """

    losses: list[np.ndarray] = field(default_factory=list)
    matrices: list[np.ndarray] = field(default_factory=list)
    lost_rank: bool = False

    @property
    def errors(self) -> np.ndarray:
        """Root mean squared error of held-out rows after 0, 1, ... rounds."""
        return np.sqrt([losses.mean() for losses in self.losses])

    @property
    def best(self) -> int:
        """The round with the smallest error; the first of equal ones."""
        return int(np.argmin(self.errors)) if self.losses else 0


def choose(tried: list[Trajectory]) -> tuple[int, int]:
    """Choose a trajectory and its round by the errors of the same held-out rows.

    That is the smallest error, if it is smaller than the smallest one without learning by more
    than a standard error of the difference, which is over the rows; else the latter.
    """
    if not tried[0].losses:
        return 0, 0
    plain = min(range(len(tried)), key=lambda i: tried[i].errors[0])
    best = min(range(len(tried)), key=lambda i: tried[i].errors.min())
    number = tried[best].best
    gains = tried[plain].losses[0] - tried[best].losses[number]
    if gains.mean() > gains.std() / np.sqrt(len(gains)):
        return best, number
    return plain, 0


def folds_of(strata: np.ndarray, n_parts: int, n_folds: int, rng) -> list[Fold]:
    """Hold out the first `n_folds` of `n_parts` parts of the rows, with all strata alike."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    part = np.empty(len(order), dtype=np.intp)
    part[order] = np.arange(len(order)) % n_parts
    return [Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_folds)]


@dataclass(frozen=True)
class Fitted:
    """A base map with ridge functions of its features, and their errors on held-out rows."""

    base: object
    path: Path
    transform: np.ndarray
    penalty: int
    losses: np.ndarray
    width: int

    def outer_product(self, X: np.ndarray) -> np.ndarray:
        """Average the outer products of the gradients in x over all rows, in blocks."""
        coef, transform = self.path.coef(self.penalty), self.transform
        inner = np.zeros((transform.shape[1],) * 2)
        for part in blocks(np.arange(len(X)), self.width):
            for gradients in self.base.input_gradient(X[part] @ transform, coef):
                inner += gradients.T @ gradients
        # the chain rule: gradients in x are the transform times those in its image
        return transform @ (inner / len(X)) @ transform.T


def fits(
    base, X: np.ndarray, targets: np.ndarray, folds: list[Fold], transforms: list[np.ndarray]
) -> list[Fitted]:
    """Fit the base map and a ridge regression in each fold, to inputs times its transform."""
    pairs = zip(folds, transforms, strict=True)
    return [_fitted(base, X, targets, fold, transform) for fold, transform in pairs]


def _fitted(base, X: np.ndarray, targets: np.ndarray, fold: Fold, transform) -> Fitted:
    fitted = clone(base).fit(X[fold.fit] @ transform)

    def embed(rows: np.ndarray):
        return fitted.transform(X[rows] @ transform)

    width = embed(fold.fit[:1]).shape[1]
    path = ridge_path(embed, fold.fit, targets[fold.fit], width)
    parts = [path.losses(embed(part), targets[part]) for part in blocks(fold.held_out, width)]
    losses = np.hstack(parts)
    penalty = int(np.argmin(losses.mean(axis=1)))
    return Fitted(fitted, path, transform, penalty, losses[penalty], width)


def learn(
    base,
    X: np.ndarray,
    targets: np.ndarray,
    folds: list[Fold],
    rounds: int,
    patience: int,
    root: Callable[[np.ndarray], np.ndarray],
    shape: Callable[[np.ndarray], np.ndarray],
    first: list[Fitted],
) -> Trajectory:
    """Alternate fits and metrics in each fold, for at most so many rounds.

    `first` are the `fits` to the inputs as they are. `shape` makes an average gradient outer
    product a metric of the wanted form, `root` makes a metric a linear map of the inputs. The
    matrix of a round is the sum of those of the folds, each divided by its trace.
    """
    found, fitted = Trajectory(matrices=[np.eye(X.shape[1])]), first
    while True:
        found.losses.append(np.concatenate([each.losses for each in fitted]))
        number = len(found.losses) - 1
        if number == rounds or number - found.best >= patience:
            return found
        total, transforms = np.zeros((X.shape[1], X.shape[1])), []
        for each in fitted:
            matrix = shape(each.outer_product(X))
            trace = np.trace(matrix)
            has_slope = trace > 0 and np.isfinite(trace)
            transforms.append(root(matrix) if has_slope else each.transform)
            total += matrix / trace if has_slope else 0.0
        if not total.any():
            found.lost_rank = True
            return found
        found.matrices.append(total)
        fitted = fits(base, X, targets, folds, transforms)

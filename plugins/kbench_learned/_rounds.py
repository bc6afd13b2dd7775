"""Rounds of learning: fit, judge on held-out rows, and average gradient outer products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone

from kbench_learned._ridge import Path, blocks, ridge_path


@dataclass
class Fold:
    """Rows to fit on and held-out rows, and the linear map of the inputs that they led to."""

    fit: np.ndarray
    held_out: np.ndarray
    transform: np.ndarray


@dataclass
class Trajectory:
    """What the rounds learned.

    Parameters
    ----------
    errors : list of float
        Root mean squared error of held-out rows after 0, 1, ... rounds, in units of the
        deviation of the targets.
    matrices : list of ndarray
        The matrix of each round, the first being the identity.
    lost_rank : bool
        Whether it ended because all gradients were 0.
    """

    errors: list[float] = field(default_factory=list)
    matrices: list[np.ndarray] = field(default_factory=list)
    lost_rank: bool = False

    @property
    def best(self) -> int:
        """The round with the smallest error; the first of equal ones."""
        return int(np.argmin(self.errors)) if self.errors else 0


def folds_of(strata: np.ndarray, n_parts: int, n_folds: int, rng) -> list[Fold]:
    """Hold out the first `n_folds` of `n_parts` parts of the rows, with all strata alike."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    part = np.empty(len(order), dtype=np.intp)
    part[order] = np.arange(len(order)) % n_parts
    return [
        Fold(np.flatnonzero(part != k), np.flatnonzero(part == k), np.empty(0))
        for k in range(n_folds)
    ]


def learn(
    base,
    X: np.ndarray,
    targets: np.ndarray,
    folds: list[Fold],
    rounds: int,
    patience: int,
    root: Callable[[np.ndarray], np.ndarray],
    shape: Callable[[np.ndarray], np.ndarray],
) -> Trajectory:
    """Alternate fits and metrics in each fold, for at most so many rounds.

    `shape` makes an average gradient outer product a metric of the wanted form, `root` makes a
    metric a linear map of the inputs. The matrix of a round is the sum of those of the folds,
    each divided by its trace.
    """
    found = Trajectory(matrices=[np.eye(X.shape[1])])
    for fold in folds:
        fold.transform = np.eye(X.shape[1])
    n_held_out = sum(len(fold.held_out) for fold in folds)
    for number in range(rounds + 1):
        fitted = [_fitted(base, X, targets, fold) for fold in folds]
        loss = sum(each.loss for each in fitted)
        found.errors.append(float(np.sqrt(loss / (n_held_out * targets.shape[1]))))
        if number == rounds or number - found.best >= patience:
            break
        total = np.zeros((X.shape[1], X.shape[1]))
        for fold, each in zip(folds, fitted, strict=True):
            matrix = shape(each.outer_product(X, fold.transform))
            trace = np.trace(matrix)
            if trace > 0 and np.isfinite(trace):
                fold.transform = root(matrix)
                total += matrix / trace
        if not total.any():
            found.lost_rank = True
            break
        found.matrices.append(total)
    return found


@dataclass(frozen=True)
class _Fitted:
    """A base map and ridge functions on its features, with their loss on held-out rows."""

    base: object
    path: Path
    penalty: int
    loss: float
    width: int

    def outer_product(self, X: np.ndarray, transform: np.ndarray) -> np.ndarray:
        """Average the outer products of the gradients in x over all rows, in blocks."""
        coef = self.path.coef(self.penalty)
        inner = np.zeros((transform.shape[1],) * 2)
        for part in blocks(np.arange(len(X)), self.width):
            for gradients in self.base.input_gradient(X[part] @ transform, coef):
                inner += gradients.T @ gradients
        # the chain rule: gradients in x are the transform times those in its image
        return transform @ (inner / len(X)) @ transform.T


def _fitted(base, X: np.ndarray, targets: np.ndarray, fold: Fold) -> _Fitted:
    fitted = clone(base).fit(X[fold.fit] @ fold.transform)

    def embed(rows: np.ndarray):
        return fitted.transform(X[rows] @ fold.transform)

    width = embed(fold.fit[:1]).shape[1]
    path = ridge_path(embed, fold.fit, targets[fold.fit], width)
    losses = sum(path.losses(embed(part), targets[part]) for part in blocks(fold.held_out, width))
    penalty = int(np.argmin(losses))
    return _Fitted(fitted, path, penalty, float(losses[penalty]), width)

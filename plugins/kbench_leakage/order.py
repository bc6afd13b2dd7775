"""Rows that stand next to each other in the file, on both sides of a split."""

from __future__ import annotations

import numpy as np

from kbench_leakage.scoring import Score, Targets, score

BINS = 20
"""Ranges of a numeric target within which columns are compared along the file."""

SORTED = 0.95
"""Rank correlation of a numeric target with the order of the file, from which it is sorted."""

LEAST_RUNS, RUNS = 20, 3
"""Runs of one class along the file, and times each class comes, of which there must be more."""


def neighbours(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each test row the nearest training rows before and after it in the file.

    They are positions in `train`, which rises; at an end both are the same row.
    """
    after = np.searchsorted(train, test)
    before = np.maximum(after - 1, 0)
    after = np.minimum(after, len(train) - 1)
    return np.where(after == 0, 0, before), after


def of_neighbours(before: np.ndarray, after: np.ndarray, train: Targets, test: Targets) -> Score:
    """Score the prediction of test rows by the targets of two neighbours."""
    # of two classes the one before wins
    return score(0.51 * train.columns[before] + 0.49 * train.columns[after], test, train)


def smoothness(
    before: np.ndarray, after: np.ndarray, values: np.ndarray, test: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return how well the neighbours predict each column, beyond what the target explains.

    `values` and `labels` are those of training rows, `test` the values of test rows; the last
    entries of `labels` are those of test rows. In a file that is sorted by its target, columns
    are smooth for that reason only: the mean of each class, or range of the target, is taken
    off first.
    """
    both = np.concatenate([values, test])
    ok = np.isfinite(both)
    with np.errstate(all="ignore"):
        both = both / np.maximum(np.abs(np.where(ok, both, 0.0)).max(axis=0), 1e-300)
    both = np.where(ok, both, 0.0)
    for label in np.unique(labels):
        of_label = labels == label
        both[of_label] -= both[of_label].mean(axis=0)
    known, new = both[: len(values)], both[len(values) :]
    error = ((new - (known[before] + known[after]) / 2) ** 2).sum(axis=0)
    total = ((new - new.mean(axis=0)) ** 2).sum(axis=0)
    varies = total > 1e-20 * len(new)
    return np.where(varies, 1.0 - error / np.where(varies, total, 1.0), 0.0)


def ranges(y: np.ndarray, is_numeric: bool) -> np.ndarray:
    """Return the classes of rows, or the ranges of their numbers."""
    if not is_numeric:
        return np.asarray(y)
    cuts = np.quantile(y, np.linspace(0, 1, BINS + 1)[1:-1])
    return np.searchsorted(cuts, y)


def is_sorted(y: np.ndarray, is_numeric: bool) -> bool:
    """Tell whether rows stand in the order of their targets, or class after class.

    Classes may come again a few times, as in a training file with a test file behind it.
    """
    if is_numeric:
        ranks = np.unique(y, return_inverse=True)[1].reshape(-1).astype(float)
        ranks -= ranks.mean()
        places = np.arange(len(y)) - (len(y) - 1) / 2
        size = np.sqrt((ranks**2).sum() * (places**2).sum())
        return bool(size > 0 and abs((ranks * places).sum()) >= SORTED * size)
    n_runs = 1 + int((y[1:] != y[:-1]).sum())
    return n_runs < min(max(LEAST_RUNS, RUNS * len(np.unique(y))), len(y) / 2)

"""Test rows whose inputs, all or all but one, are those of training rows."""

from __future__ import annotations

import numpy as np

from kbench.features import SALT, hashed
from kbench_leakage.scoring import NONE, Score, Targets, score


def of_column(values: np.ndarray, column: int) -> np.ndarray:
    """Return the part of a column in the hashes of its rows, which can be subtracted."""
    return hashed(values, np.array(column + 1, dtype=np.uint64) * SALT)


def looked_up(
    keys: np.ndarray, known: np.ndarray, train: Targets, test: Targets
) -> tuple[np.ndarray, Score]:
    """Tell which keys are known, and how well the mean targets of the equal ones predict."""
    order = np.argsort(known, kind="stable")
    known = known[order]
    low, high = np.searchsorted(known, keys), np.searchsorted(known, keys, "right")
    found = high > low
    if not found.any():
        return found, NONE
    sums = np.zeros((len(train) + 1, train.columns.shape[1]))
    np.cumsum(train.columns[order], axis=0, out=sums[1:])
    means = (sums[high] - sums[low])[found] / (high - low)[found][:, None]
    return found, score(means, test[found], train)


def interpolated(
    keys: np.ndarray,
    x: np.ndarray,
    known: np.ndarray,
    x_known: np.ndarray,
    train: Targets,
    test: Targets,
    nominal: bool,
) -> tuple[np.ndarray, Score]:
    """Look rows up by all inputs but one, along which targets are interpolated."""
    if nominal:
        return looked_up(keys, known, train, test)
    both = np.unique(np.concatenate([x_known, x]), return_inverse=True)[1].reshape(-1)
    rank, rank_known = both[len(x_known) :], both[: len(x_known)]
    order = np.lexsort((rank_known, known))
    groups, group_known = np.unique(known[order], return_inverse=True)
    group = np.minimum(np.searchsorted(groups, keys), len(groups) - 1)
    found = groups[group] == keys
    if not found.any():
        return found, NONE
    width = int(both.max()) + 1
    places = group_known.reshape(-1).astype(np.int64) * width + rank_known[order]
    place = group[found].astype(np.int64) * width + rank[found]
    right = np.searchsorted(places, place)
    of_right = np.minimum(right, len(places) - 1)
    of_left = np.maximum(right - 1, 0)
    has_right = group_known[of_right] == group[found]
    has_left = (group_known[of_left] == group[found]) & (right > 0)
    of_right = np.where(has_right, of_right, of_left)
    of_left = np.where(has_left, of_left, of_right)
    values = x_known[order]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        part = (x[found] - values[of_left]) / (values[of_right] - values[of_left])
    part = np.clip(np.where(np.isfinite(part), part, 0.5), 0.0, 1.0)[:, None]
    columns = train.columns[order]
    predicted = (1 - part) * columns[of_left] + part * columns[of_right]
    return found, score(predicted, test[found], train)

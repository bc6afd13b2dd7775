"""What one number of a row tells of its target: any function of it, monotone or not."""

from __future__ import annotations

import numpy as np

from kbench_leakage.scoring import Score, Targets, score

WINDOW = 10
"""Training rows on either side that are averaged."""


FARTHEST = 10.0
"""Distances between values to which targets are extrapolated."""


def of_one(
    x_train: np.ndarray, train: Targets, x_test: np.ndarray, test: Targets, nominal: bool = False
) -> Score:
    """Score the best of a few predictions of test rows by a column.

    They are: the means of the targets at its values, interpolated, and beyond its ends either
    kept or extrapolated; the average over the nearest training rows; of numbers, a line. Of
    a nominal column, only rows with the same value count.
    """
    order = np.argsort(x_train, kind="stable")
    x, sums = x_train[order], _sums(train.columns[order])
    first = np.flatnonzero(np.concatenate([[True], _differ(x[1:], x[:-1])]))
    ends = np.append(first[1:], len(x))
    values, means = x[first], (sums[ends] - sums[first]) / (ends - first)[:, None]
    right = np.searchsorted(values, x_test)
    right_ = np.minimum(right, len(values) - 1)
    is_known = ~_differ(values[right_], x_test)
    if nominal:
        overall = sums[-1:] / len(x)
        return score(np.where(is_known[:, None], means[right_], overall), test, train)
    part, before, after = _between(values, x_test, is_known, right_)
    predicted = [
        (1 - share) * means[before] + share * means[after]
        for share in (np.clip(part, 0.0, 1.0)[:, None], part[:, None])
    ]
    if train.is_numeric:
        predicted.append(_on_a_line(x_train, train.values, x_test)[:, None])
    low = np.maximum(np.minimum(np.searchsorted(x, x_test) - WINDOW, len(x) - 1), 0)
    high = np.minimum(np.searchsorted(x, x_test, "right") + WINDOW, len(x))
    predicted.append((sums[high] - sums[low]) / (high - low)[:, None])
    return max(score(each, test, train) for each in predicted)


def _between(
    values: np.ndarray, x: np.ndarray, is_known: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how far numbers are from one of the rising values to the next, and which these are.

    Beyond the ends the two last values count.
    """
    after = np.clip(right, min(1, len(values) - 1), None)
    before = np.maximum(after - 1, 0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        part = (x - values[before]) / (values[after] - values[before])
    part = np.where(np.isfinite(part), np.clip(part, -FARTHEST, FARTHEST), 0.5)
    # exactly, as an infinite value has no distance
    return np.where(is_known, np.where(right == after, 1.0, 0.0), part), before, after


def _on_a_line(x: np.ndarray, y: np.ndarray, x_test: np.ndarray) -> np.ndarray:
    """Predict numbers by least squares on a column; missing and infinite values as their mean."""
    ok = np.isfinite(x)
    if not ok.any():
        return np.zeros(len(x_test))
    size = np.abs(x[ok]).max() or 1.0
    x, x_test = (np.where(np.isfinite(each), each, np.nan) / size for each in (x, x_test))
    centre = x[ok].mean()
    offset, offset_test = (np.nan_to_num(each - centre) for each in (x, x_test))
    slope = (offset @ (y - y.mean())) / ((offset @ offset) or 1.0)
    return np.asarray(y.mean() + np.clip(offset_test, -1e6, 1e6) * slope)


def screened(values: np.ndarray, targets: Targets) -> np.ndarray:
    """Return for each column how alike the targets of rows are that are next to each other in it.

    1 is for equal targets, 0 for those of rows in random order (Chatterjee, 2021). It is a
    fast screen of many columns by few rows.
    """
    order = np.argsort(values, axis=0, kind="stable")
    if targets.is_numeric:
        spread = 2.0 * targets.values.var()
        steps = np.diff(targets.values[order], axis=0) ** 2
    else:
        spread = 1.0 - float(((np.bincount(targets.values) / len(targets)) ** 2).sum())
        steps = np.diff(targets.values[order], axis=0) != 0
    return np.asarray(1.0 - steps.mean(axis=0) / (spread or 1.0))


def _sums(columns: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(columns, axis=0)])


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell which values differ; NaN equals NaN."""
    return np.asarray((a != b) & ~(np.isnan(a) & np.isnan(b)))

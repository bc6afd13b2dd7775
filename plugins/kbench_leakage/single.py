"""What one number of a row tells of its target: any function of it, monotone or not."""

from __future__ import annotations

import numpy as np

from kbench_leakage.scoring import Score, Targets, score

WINDOW = 10
"""Training rows on either side that are averaged."""


def of_one(
    x_train: np.ndarray, train: Targets, x_test: np.ndarray, test: Targets, nominal: bool = False
) -> Score:
    """Score the better of two predictions of test rows by a column.

    One interpolates the means of the targets at its values, the other one averages the targets
    of the nearest training rows. Of a nominal column, only rows with the same value count.
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
    left = np.where(is_known, right_, np.maximum(right - 1, 0))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        part = (x_test - values[left]) / (values[right_] - values[left])
    part = np.where(np.isfinite(part), part, 0.5)[:, None]
    interpolated = (1 - part) * means[left] + part * means[right_]
    low = np.maximum(np.minimum(np.searchsorted(x, x_test) - WINDOW, len(x) - 1), 0)
    high = np.minimum(np.searchsorted(x, x_test, "right") + WINDOW, len(x))
    averaged = (sums[high] - sums[low]) / (high - low)[:, None]
    return max(score(interpolated, test, train), score(averaged, test, train))


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

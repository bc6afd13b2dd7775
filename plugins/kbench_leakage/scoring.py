"""Scores of predictions of a target without a model: by columns, pairs, neighbours, copies."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from kbench.features import SALT, hash_values

MAX_CLASSES = 50
"""Maximum number of classes; of more, the rarest count as one."""


@dataclass(frozen=True)
class Targets:
    """Targets of some rows: standardised numbers, or numbers of classes."""

    values: np.ndarray
    n_classes: int = 0
    """0 for numbers."""

    @classmethod
    def from_values(cls, y: np.ndarray, is_numeric: bool) -> "Targets":
        """Return the targets of all rows."""
        if is_numeric:
            y = np.asarray(y, dtype=float)
            y = y / (np.abs(y).max(initial=0.0) or 1.0)  # no square overflows
            return cls((y - y.mean()) / (y.std() or 1.0) if len(y) else y)
        _, labels, counts = np.unique(y, return_inverse=True, return_counts=True)
        place = np.empty(len(counts), dtype=np.intp)
        place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        labels = np.minimum(place[labels.reshape(-1)], MAX_CLASSES - 1)
        return cls(labels, min(len(counts), MAX_CLASSES))

    def __getitem__(self, rows: np.ndarray) -> "Targets":
        return Targets(self.values[rows], self.n_classes)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_numeric(self) -> bool:
        """Whether they are numbers."""
        return not self.n_classes

    @cached_property
    def columns(self) -> np.ndarray:
        """Columns whose means are predictions: the numbers, or an indicator for each class."""
        if self.is_numeric:
            return self.values[:, None]
        return np.asarray(np.eye(self.n_classes)[self.values])

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to predict."""
        return not len(self) or bool((self.values == self.values[0]).all())


@dataclass(frozen=True)
class Score:
    """Quality of predictions: R2, or the share of the errors that are avoided.

    `value` is at most 1. Of classes, `base` is the accuracy of the most frequent one.
    """

    value: float
    accuracy: float = 0.0
    base: float = 0.0

    def __lt__(self, other: "Score") -> bool:
        return self.value < other.value

    def least(self, n_rows: int, is_numeric: bool) -> float:
        """Return the value less two standard errors (R2), or by Wilson's bound (classes).

        >>> round(Score(1.0, 1.0, 0.5).least(27, is_numeric=False), 3)
        0.742
        >>> round(Score(0.97).least(30, is_numeric=True), 3)
        0.948
        """
        n = max(n_rows, 1)
        if is_numeric:
            return self.value - 4.0 * (1.0 - self.value) * math.sqrt(max(self.value, 0.0) / n)
        p = self.accuracy
        centre, half = p + 2.0 / n, 2.0 * math.sqrt(p * (1.0 - p) / n + 1.0 / n**2)
        bound = (centre - half) / (1.0 + 4.0 / n)
        return (bound - self.base) / (1.0 - self.base) if self.base < 1.0 else 0.0


NONE = Score(0.0)
"""The score of predictions without information, or of no rows."""


def score(predicted: np.ndarray, targets: Targets, train: Targets) -> Score:
    """Score predicted columns of targets; predicting the training rows' mean has about 0."""
    if targets.is_constant:
        return NONE
    if targets.is_numeric:
        total = float(((targets.columns - targets.columns.mean(axis=0)) ** 2).sum())
        return Score(1.0 - float(((predicted - targets.columns) ** 2).sum()) / total)
    truth = targets.values
    accuracy = float((predicted.argmax(axis=1) == truth).mean())
    base = float((truth == np.bincount(train.values).argmax()).mean())
    return Score((accuracy - base) / (1.0 - base) if base < 1.0 else 0.0, accuracy, base)


WINDOW = 10
"""Training rows on either side that are averaged."""


FARTHEST = 10.0
"""Distances between values to which targets are extrapolated."""


def score_one(
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
    right_ = np.minimum(np.searchsorted(values, x_test), len(values) - 1)
    is_known = ~_differ(values[right_], x_test)
    if nominal:
        return score(np.where(is_known[:, None], means[right_], sums[-1:] / len(x)), test, train)
    part, before, after = _interpolate_between(values, x_test, is_known, right_)
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


def _interpolate_between(
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


def screen_columns(values: np.ndarray, targets: Targets) -> np.ndarray:
    """Return for each column how similar the targets of rows with neighbouring values are.

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


MAX_PAIRED = 50
"""Maximum number of columns to try in pairs."""

MAX_GROUPS = 10
"""Columns of groups within which the others are tried."""

MIN_GROUPS, MIN_ROWS = 5, 5
"""Groups that a column has at least, and their rows on average."""


@dataclass(frozen=True)
class Pair:
    """One number made of two columns, by their positions."""

    a: int
    b: int
    how: Literal["sum", "difference", "within"]

    def combine(self, values: np.ndarray) -> np.ndarray:
        """Return the number for each row."""
        a, b = values[:, self.a], values[:, self.b]
        with np.errstate(all="ignore"):
            if self.how == "within":
                return np.asarray(group_numbers(a) + ranks(b))
            return np.asarray(a + b if self.how == "sum" else a - b)


def all_pairs(values: np.ndarray, nominal: np.ndarray) -> Iterator[Pair]:
    """Yield the pairs of the columns of some training rows."""
    d = values.shape[1]
    numeric = [j for j in range(d) if not nominal[j]]
    for i, a in enumerate(numeric):
        for b in numeric[i + 1 :]:
            yield Pair(a, b, "sum")
            yield Pair(a, b, "difference")
    sizes = [len(np.unique(values[:, j])) for j in range(d)]
    groups = [j for j in range(d) if MIN_GROUPS <= sizes[j] <= len(values) / MIN_ROWS]
    groups.sort(key=lambda j: -sizes[j])
    for a in groups[:MAX_GROUPS]:
        yield from (Pair(a, b, "within") for b in numeric if b != a)


def group_numbers(a: np.ndarray) -> np.ndarray:
    """Number the distinct values of a column in their order, as float."""
    return np.asarray(np.unique(a, return_inverse=True)[1].reshape(-1), dtype=float)


def ranks(b: np.ndarray) -> np.ndarray:
    """Return the ranks of values, the same for equal ones, from 0 to less than 1."""
    numbers = group_numbers(b)
    return np.asarray(numbers / (numbers.max(initial=0.0) + 1.0))


BINS = 20
"""Ranges of a numeric target within which columns are compared along the file."""

SORTED = 0.95
"""Rank correlation of a numeric target with the order of the file, from which it is sorted."""

MIN_RUNS, RUNS = 20, 3
"""Runs of one class along the file, and times each class comes, of which there must be more."""


def neighbours(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each test row the nearest training rows before and after it in the file.

    They are positions in `train`, which rises; at an end both are the same row.
    """
    after = np.searchsorted(train, test)
    before = np.maximum(after - 1, 0)
    after = np.minimum(after, len(train) - 1)
    return np.where(after == 0, 0, before), after


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
    old, new = both[: len(values)], both[len(values) :]
    error = ((new - (old[before] + old[after]) / 2) ** 2).sum(axis=0)
    total = ((new - new.mean(axis=0)) ** 2).sum(axis=0)
    varies = total > 1e-20 * len(new)
    return np.where(varies, 1.0 - error / np.where(varies, total, 1.0), 0.0)


def ranges(y: np.ndarray, is_numeric: bool) -> np.ndarray:
    """Return the classes of rows, or the ranges of their numbers."""
    if not is_numeric:
        return np.asarray(y)
    return np.searchsorted(np.quantile(y, np.linspace(0, 1, BINS + 1)[1:-1]), y)


def is_sorted(y: np.ndarray, is_numeric: bool) -> bool:
    """Return whether rows are in the order of their targets, or class after class.

    Classes may come again a few times, as in a training file with a test file behind it.
    """
    if is_numeric:
        numbers = group_numbers(y)
        if len(y) < 2 or numbers.max() == 0:
            return False
        return bool(abs(np.corrcoef(numbers, np.arange(len(y)))[0, 1]) >= SORTED)
    n_runs = 1 + int((y[1:] != y[:-1]).sum())
    return n_runs < min(max(MIN_RUNS, RUNS * len(np.unique(y))), len(y) / 2)


def column_key(values: np.ndarray, column: int) -> np.ndarray:
    """Return the part of a column in the hashes of its rows, which can be subtracted."""
    return hash_values(values, np.array(column + 1, dtype=np.uint64) * SALT)


def look_up(
    keys: np.ndarray, train_keys: np.ndarray, train: Targets, test: Targets
) -> tuple[np.ndarray, Score]:
    """Return which keys occur in training, and how well the mean targets of equal ones predict."""
    order = np.argsort(train_keys, kind="stable")
    train_keys = train_keys[order]
    low, high = np.searchsorted(train_keys, keys), np.searchsorted(train_keys, keys, "right")
    matched = high > low
    if not matched.any():
        return matched, NONE
    sums = _sums(train.columns[order])
    means = (sums[high] - sums[low])[matched] / (high - low)[matched][:, None]
    return matched, score(means, test[matched], train)


def interpolate(
    keys: np.ndarray,
    x: np.ndarray,
    train_keys: np.ndarray,
    x_known: np.ndarray,
    train: Targets,
    test: Targets,
    nominal: bool,
) -> tuple[np.ndarray, Score]:
    """Look rows up by all inputs but one, along which targets are interpolated."""
    if nominal:
        return look_up(keys, train_keys, train, test)
    both = np.unique(np.concatenate([x_known, x]), return_inverse=True)[1].reshape(-1)
    rank, rank_known = both[len(x_known) :], both[: len(x_known)]
    order = np.lexsort((rank_known, train_keys))
    groups, group_known = np.unique(train_keys[order], return_inverse=True)
    group = np.minimum(np.searchsorted(groups, keys), len(groups) - 1)
    matched = groups[group] == keys
    if not matched.any():
        return matched, NONE
    width = int(both.max()) + 1
    places = group_known.reshape(-1).astype(np.int64) * width + rank_known[order]
    right = np.searchsorted(places, group[matched].astype(np.int64) * width + rank[matched])
    of_right = np.minimum(right, len(places) - 1)
    of_left = np.maximum(right - 1, 0)
    of_right = np.where(group_known[of_right] == group[matched], of_right, of_left)
    of_left = np.where((group_known[of_left] == group[matched]) & (right > 0), of_left, of_right)
    values = x_known[order]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        part = (x[matched] - values[of_left]) / (values[of_right] - values[of_left])
    part = np.clip(np.where(np.isfinite(part), part, 0.5), 0.0, 1.0)[:, None]
    columns = train.columns[order]
    predicted = (1 - part) * columns[of_left] + part * columns[of_right]
    return matched, score(predicted, test[matched], train)

"""Targets and weights of a user's table: labels of classes, or numbers to predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kbench.errors import DatasetError, DatasetParameterError
from kbench.messages import option, plural
from kbench.parameters import check_choice
from kbench.records import TASK_TYPES, TaskType
from kbench.tables.texts import is_number

if TYPE_CHECKING:
    from kbench.tables.table import Column

MAX_NUMERIC_LABELS = 100
"""Maximum number of different values for which a numeric target is treated as class labels."""

MANY_CLASSES = 50
"""Classes beyond which most of them must have several rows."""

_REGRESSION = option("task", "regression")


@dataclass(frozen=True)
class Target:
    """The target of a table."""

    task: TaskType
    values: np.ndarray
    """Labels 0..k-1, -1 if there is none; or numbers in float64; shape (n_rows,)."""
    names: Sequence[str] = ()


def read_target(column: Column, source: str, task: str | None = None) -> Target:
    """Return the target that a column holds.

    Without a task, numbers with at least one non-integer are those of a regression task; all other
    values are labels. Classes are numbered in the order of their declared values without those that
    no row has; other strings and numbers are sorted.
    """
    if task is not None:
        check_choice(task, f"{source}: task", TASK_TYPES, error=DatasetParameterError)
    if column.kind == "numeric":
        infinite = np.flatnonzero(np.isinf(column.values))
        if len(infinite):
            raise DatasetError(
                f"{source}: the target {column.name!r} is infinite in "
                f"{plural(len(infinite), 'row')} of {len(column.values):,}, the first is row "
                f"{infinite[0] + 1}"
            )
        if task is None and np.any(column.values % 1 > 0):
            task = "regression"
    if task == "regression":
        return Target("regression", _numbers(column, source))
    codes, names = _encode(column, source, is_asked=task is not None)
    return Target("classification", *_occurring(codes, names, column, source))


def read_weights(column: Column, source: str) -> np.ndarray:
    """Return the weights of rows that a column holds, in float64.

    Raises DatasetError if a row has none, or one that is not a finite number >= 0; or all are 0.
    """
    if column.kind != "numeric":
        raise DatasetError(f"{source}: the weights {column.name!r} are not numbers")
    weights: np.ndarray = column.values
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        got = weights[wrong[0]]
        value = "no weight" if np.isnan(got) else f"the weight {got:g}"
        raise DatasetError(
            f"{source}: weights must be finite numbers >= 0; {plural(len(wrong), 'row')} of "
            f"{len(weights):,} {'has' if len(wrong) == 1 else 'have'} another {column.name!r}, "
            f"the first is row {wrong[0] + 1} with {value}"
        )
    if not weights.any():
        raise DatasetError(f"{source}: all weights {column.name!r} are 0")
    return weights


def _numbers(column: Column, source: str) -> np.ndarray:
    if column.kind == "numeric":
        values: np.ndarray = np.asarray(column.values, dtype=np.float64)
        missing = np.isnan(values)
    else:
        texts = _texts(column)
        missing = np.array([text is None for text in texts])
        values = np.array([np.nan if text is None else _number(text) for text in texts])
        wrong = np.flatnonzero(np.isnan(values) & ~missing)
        if len(wrong):
            raise DatasetError(
                f"{source}: regression needs a target of numbers, but {column.name!r} is not "
                f"numeric in {plural(len(wrong), 'row')} of {len(values):,}, the first is row "
                f"{wrong[0] + 1}: {texts[wrong[0]]!r}"
            )
    if missing.any():
        raise DatasetError(
            f"{source}: the target {column.name!r} is missing in "
            f"{plural(int(missing.sum()), 'row')} of {len(values):,}, the first is row "
            f"{np.argmax(missing) + 1}; regression needs a number in each row"
        )
    return values


def _texts(column: Column) -> list[str | None]:
    """Return the values of a column that is not numeric as texts; None if missing."""
    if column.kind == "string":
        return list(column.values)
    names = [*column.categories, None]  # the last one is for -1
    return [names[code] for code in column.values]


def _number(text: str) -> float:
    """Parse a finite number; NaN if the text is none."""
    value = float(text) if is_number(text) else np.nan
    return value if np.isfinite(value) else np.nan


def _encode(column: Column, source: str, is_asked: bool) -> tuple[np.ndarray, list[str]]:
    if column.kind == "nominal":
        return np.asarray(column.values, dtype=np.int64), list(column.categories)
    if column.kind == "string":
        names = sorted({value for value in column.values if value is not None})
        number = {name: code for code, name in enumerate(names)}
        return np.array([number.get(value, -1) for value in column.values], dtype=np.int64), names
    values = column.values
    present = ~np.isnan(values)
    different = np.unique(values[present])
    if len(different) > MAX_NUMERIC_LABELS:
        kind = "numbers" if is_asked else "integers"
        remedy = (
            "Choose another target" if is_asked else f"Use {_REGRESSION}, or choose another target"
        )
        raise DatasetError(
            f"{source}: the target {column.name!r} has {len(different):,} different {kind}, more "
            f"than the {MAX_NUMERIC_LABELS} that are treated as classes. {remedy}."
        )
    codes = np.where(present, np.searchsorted(different, values), -1)
    return codes, [f"{v:.0f}" if v == np.round(v) else repr(float(v)) for v in different]


def _occurring(
    codes: np.ndarray, names: list[str], column: Column, source: str
) -> tuple[np.ndarray, list[str]]:
    """Number the classes that occur; -1 if the label is missing."""
    occurring = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(names)))
    renumbered = np.full(len(names) + 1, -1, dtype=np.int64)  # the last one is for -1
    renumbered[occurring] = np.arange(len(occurring))
    if len(occurring) < 2:
        raise DatasetError(
            f"{source}: the target {column.name!r} has {len(occurring)} "
            f"{'class' if len(occurring) == 1 else 'classes'}; classification needs at least 2"
        )
    n_labelled = int(np.count_nonzero(codes >= 0))
    if len(occurring) > max(MANY_CLASSES, n_labelled // 2):
        remedy = f"Use {_REGRESSION}, or choose" if column.kind == "numeric" else "Choose"
        raise DatasetError(
            f"{source}: the target {column.name!r} has {len(occurring):,} different labels in "
            f"{n_labelled:,} rows and is not a class label. {remedy} another target."
        )
    return renumbered[codes], [names[k] for k in occurring]

"""A user's own splits: a CSV file with one column per split, 1 for each row to test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kbench import Dataset, DatasetError, Split
from kbench.messages import counted
from kbench_files._csv import csv_table
from kbench_files._reading import existing, first_line


def with_splits(dataset: Dataset, n_rows: int, path: str | None, overlapping: bool) -> Dataset:
    """Return a dataset with the splits of a file, or as it is where there is none.

    `n_rows` are those of the data's own file, before rows without a label were left out.
    Unless `overlapping`, no row may be tested in two splits.

    Raises
    ------
    DatasetError
        The file cannot be read, has other values than 0 and 1 or another number of rows,
        or its columns are not splits.
    """
    if path is None:
        return dataset
    _, what = existing(path, "splits file")
    is_test, names = _read(path, n_rows, what)
    if dataset.row_ids is not None:
        is_test = is_test[np.asarray(dataset.row_ids)]
    counts = is_test.sum(axis=0)
    for name, count in zip(names, counts, strict=True):
        if count in (0, len(is_test)):
            which = "no row" if count == 0 else f"all {len(is_test):,} rows"
            raise DatasetError(
                f"{what}: column {name!r} tests {which}; a split needs rows to train and to test"
            )
    if not overlapping:
        _refuse_overlap(is_test, names, what)
    splits = [
        Split(index, np.flatnonzero(~tested), np.flatnonzero(tested))
        for index, tested in enumerate(is_test.T)
    ]
    return replace(dataset, splits=splits, checksum="")


def _read(path: str, n_rows: int, what: str) -> tuple[np.ndarray, list[str]]:
    """Return which row is tested in which split, and the names of the splits."""
    try:
        frame = csv_table(path)
    except DatasetError as error:
        raise DatasetError(f"splits {error}") from None  # it begins with "file"
    except Exception as error:  # pandas' errors have no common base
        raise DatasetError(f"{what}: it cannot be read as CSV: {first_line(error)}") from None
    if len(frame) != n_rows:
        raise DatasetError(
            f"{what}: it has {counted(len(frame), 'row')} below its line of names, but the data "
            f"have {n_rows:,}"
        )
    names = [str(name) for name in frame.columns]
    columns = [
        _column(frame.iloc[:, place].to_numpy(), name, what) for place, name in enumerate(names)
    ]
    return np.column_stack(columns), names


def _column(values: np.ndarray, name: str, what: str) -> np.ndarray:
    """Return whether rows are tested, from the 0 and 1 of a column."""
    is_number = values.dtype.kind in "iuf"
    is_test = values == 1 if is_number else np.zeros(len(values), dtype=bool)
    wrong = np.flatnonzero(~(is_test | (values == 0))) if is_number else _not_flags(values)
    if len(wrong):
        raise DatasetError(
            f"{what}: column {name!r} must be 0 or 1 (a row to test), got "
            f"{_written(values[wrong[0]])} in row {wrong[0] + 1}"
        )
    return is_test


def _not_flags(values: np.ndarray) -> np.ndarray:
    return np.array([row for row, value in enumerate(values) if str(value) not in ("0", "1")])


def _written(value: Any) -> str:
    if value != value:  # NaN
        return "nothing"
    return repr(value) if isinstance(value, str) else f"{value}"


def _refuse_overlap(is_test: np.ndarray, names: list[str], what: str) -> None:
    often = is_test.sum(axis=1) > 1
    if often.any():
        row = int(np.argmax(often))
        first, second = np.flatnonzero(is_test[row])[:2]
        raise DatasetError(
            f"{what}: folds must not overlap, but {counted(int(often.sum()), 'row')} of "
            f"{len(is_test):,} {'is' if often.sum() == 1 else 'are'} tested more than once: row "
            f"{row + 1} in {names[first]!r} and {names[second]!r}. If the columns are repeated "
            "holdouts, say overlapping_splits = true."
        )

"""Splits that a user defines: by a file of them, by groups of rows, or by their order."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas

from kbench import Dataset, DatasetError, DatasetParameterError, Split
from kbench.messages import plural
from kbench.tables.table import no_column, split_by_group
from kbench.tables.table_rows import TableRows
from kbench.tables.texts import ISO, DateColumn, parse_days
from kbench_files._csv import OPTIONS
from kbench_files._reading import existing, first_line, open_bounded


def add_splits(dataset: Dataset, n_rows: int, path: str | None, overlapping: bool) -> Dataset:
    """Return a dataset with the splits of a file, or unchanged without a file.

    `n_rows` are those of the data file, before rows without a label were left out.
    Unless `overlapping`, no row may be tested in two splits.
    """
    if path is None:
        return dataset
    file, label = existing(path, "splits file")
    is_test, names = _read(file, n_rows, label)
    if dataset.row_ids is not None:
        is_test = is_test[np.asarray(dataset.row_ids)]
    for name, count in zip(names, is_test.sum(axis=0), strict=True):
        if count in (0, len(is_test)):
            which = "no row" if count == 0 else f"all {len(is_test):,} rows"
            raise DatasetError(
                f"{label}: column {name!r} has {which} in the test set; a split needs training "
                "rows and test rows"
            )
    often = is_test.sum(axis=1) > 1
    if often.any() and not overlapping:
        row = int(np.argmax(often))
        first, second = np.flatnonzero(is_test[row])[:2]
        raise DatasetError(
            f"{label}: folds must not overlap, but {plural(int(often.sum()), 'row')} of "
            f"{len(is_test):,} {'is' if often.sum() == 1 else 'are'} tested more than once: row "
            f"{row + 1} in {names[first]!r} and {names[second]!r}. If the columns are repeated "
            "holdouts, set overlapping_splits = true."
        )
    splits = [
        Split(index, np.flatnonzero(~tested), np.flatnonzero(tested))
        for index, tested in enumerate(is_test.T)
    ]
    return replace(dataset, splits=splits, checksum="")


def _read(file: Path, n_rows: int, label: str) -> tuple[np.ndarray, list[str]]:
    try:
        # a stream, not a name: pandas would fetch what looks like an address
        with open_bounded(file, label) as stream:
            frame = pandas.read_csv(stream, **OPTIONS)
    except DatasetError:
        raise
    except Exception as error:  # pandas' errors have no common base
        raise DatasetError(f"{label}: it cannot be read as CSV: {first_line(error)}") from None
    if len(frame) != n_rows:
        raise DatasetError(
            f"{label}: it has {plural(len(frame), 'row')} below its header, but the data have "
            f"{n_rows:,}"
        )
    names = [str(name).strip() for name in frame.columns]
    columns = [_column(frame.iloc[:, place], name, label) for place, name in enumerate(names)]
    return np.column_stack(columns), names


def _column(values: pandas.Series, name: str, label: str) -> np.ndarray:
    # as text, or booleans would be numbers
    flags = pandas.to_numeric(values.astype(str), errors="coerce")
    wrong = np.flatnonzero(~flags.isin([0, 1]))
    if len(wrong):
        value = values.iloc[wrong[0]]
        shown = "nothing" if value != value else repr(value) if isinstance(value, str) else value
        raise DatasetError(
            f"{label}: column {name!r} must be 0 or 1 (a test row), got {shown} in row "
            f"{wrong[0] + 1}"
        )
    return (flags == 1).to_numpy()


TEST_SHARE, MAX_TEST_ROWS, N_BLOCKS = 0.2, 50_000, 3
"""Size of the test part of a split by order, and the number of such splits."""


def add_holdout_splits(
    dataset: Dataset,
    rows: TableRows,
    groups: str | None,
    time_column: str | None,
    dates: Sequence[str] = (),
) -> Dataset:
    """Return a dataset with splits by a column of its table, or as it is without one.

    `dates` are those of the reader, ``"COLUMN=FORMAT"``.
    """
    if groups is None and time_column is None:
        return dataset
    if groups is not None and time_column is not None:
        raise DatasetParameterError(f"{rows.what}: give one of groups and time_column, not both")
    kind, name = ("time_column", str(time_column)) if groups is None else ("groups", groups)
    if name not in rows.names:
        raise DatasetParameterError(f"{rows.what}, {kind}: {no_column(name, rows.names)}")
    values = pandas.concat([block[name] for block in rows.blocks([name])], ignore_index=True)
    if dataset.row_ids is not None:
        values = values.iloc[np.asarray(dataset.row_ids)].reset_index(drop=True)
    if values.isna().any():
        missing = int(values.isna().sum())
        raise DatasetError(
            f"{rows.what}, {kind}: {plural(missing, 'row')} {'has' if missing == 1 else 'have'} "
            f"no value in column {name!r}"
        )
    if groups is not None:
        numbers = pandas.factorize(values.astype(str))[0]
        return split_by_group(dataset, numbers, f"{rows.what}, groups: column {name!r}")
    splits = _split_by_time(_places(values, name, dates, rows.what), dataset)
    return replace(dataset, splits=splits, checksum="")


def _split_by_time(places: np.ndarray, dataset: Dataset) -> list[Split]:
    """Return splits that test the last rows, the rows before them, and so on.

    Each trains on all rows before its test rows. Training rows of the second and later splits
    have all classes of the first, and different targets.
    """
    order, y = np.argsort(places, kind="stable"), np.asarray(dataset.y)
    n_test = max(1, min(round(TEST_SHARE * len(order)), MAX_TEST_ROWS))
    n_values = len(np.unique(y[order[:-n_test]])) if dataset.task == "classification" else 2
    splits = list[Split]()
    for number in range(N_BLOCKS):
        # training rows in their order, which inner folds divide into blocks
        train, test = np.split(order[: len(order) - number * n_test], [-n_test])
        if not number or len(np.unique(y[train])) >= n_values:
            splits.append(Split(number, train, np.sort(test)))
    return splits


def _places(values: pandas.Series, name: str, dates: Sequence[str], label: str) -> np.ndarray:
    if values.dtype.kind in "iufM":
        return np.asarray(values)
    formats = {date.name: date.format for date in (DateColumn.parse(d, label) for d in dates)}
    days = parse_days(values, formats.get(name, ISO))
    if np.isnan(days).any():
        other = values.iloc[int(np.isnan(days).argmax())]
        raise DatasetError(
            f"{label}, time_column: column {name!r} must hold numbers or dates, got {other!r}; "
            "date_formats gives the format of dates"
        )
    return days

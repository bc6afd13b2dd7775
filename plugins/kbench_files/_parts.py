"""Splits by a column of the data: rows of one group stay together, or later rows are tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kbench import Dataset, DatasetError, DatasetParameterError, Split
from kbench.messages import counted
from kbench.tables.rows import TableRows
from kbench.tables.table import no_column
from kbench.tables.texts import ISO, DateColumn

N_FOLDS = 5
"""Splits by groups."""

TEST_SHARE, MOST_TEST_ROWS = 0.2, 50_000
"""Size of the test part of a split by order."""


def with_parts(
    dataset: Dataset,
    rows: TableRows,
    group_by: str | None,
    order_by: str | None,
    dates: Sequence[str] = (),
) -> Dataset:
    """Return a dataset with splits by a column of its table, or as it is without one.

    `dates` are those of the reader, ``"COLUMN=FORMAT"``.

    Raises
    ------
    DatasetError
        There is no such column, a row lacks a value, or there are too few groups.
    """
    if group_by is None and order_by is None:
        return dataset
    if group_by is not None and order_by is not None:
        raise DatasetParameterError(f"{rows.what}: give one of group_by and order_by, not both")
    what = "group_by" if group_by is not None else "order_by"
    name = str(group_by if group_by is not None else order_by)
    if name not in rows.names:
        raise DatasetParameterError(f"{rows.what}, {what}: {no_column(name, rows.names)}")
    values = _values(rows, name)
    if dataset.row_ids is not None:
        values = values.iloc[np.asarray(dataset.row_ids)].reset_index(drop=True)
    if values.isna().any():
        missing = int(values.isna().sum())
        raise DatasetError(
            f"{rows.what}, {what}: {counted(missing, 'row')} {'has' if missing == 1 else 'have'} "
            f"no value in column {name!r}"
        )
    if group_by is not None:
        splits = _by_group(dataset, values, name, rows.what)
    else:
        splits = [_by_order(_places(values, name, dates, rows.what))]
    return replace(dataset, splits=splits, checksum="")


def _values(rows: TableRows, name: str) -> Any:
    import pandas

    return pandas.concat([block[name] for block in rows.blocks([name])], ignore_index=True)


def _by_group(dataset: Dataset, values: Any, name: str, what: str) -> list[Split]:
    """Return folds that keep the rows of one group together, stratified by class."""
    import pandas
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    groups = pandas.factorize(values.astype(str))[0]
    n_groups = int(groups.max()) + 1
    if n_groups < N_FOLDS:
        raise DatasetError(
            f"{what}, group_by: column {name!r} has {counted(n_groups, 'value')}; "
            f"{N_FOLDS} folds need at least as many"
        )
    y = np.asarray(dataset.y)
    nothing = np.zeros(len(y))
    if dataset.task == "classification":
        folds = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=0).split(
            nothing, y, groups
        )
    else:
        folds = GroupKFold(N_FOLDS).split(nothing, y, groups)
    return [Split(index, train, test) for index, (train, test) in enumerate(folds)]


def _by_order(places: np.ndarray) -> Split:
    """Return one split that tests the last rows."""
    order = np.argsort(places, kind="stable")
    n_test = max(1, min(round(TEST_SHARE * len(order)), MOST_TEST_ROWS))
    # training rows in their order, which inner folds divide into blocks
    return Split(0, order[:-n_test], np.sort(order[-n_test:]))


def _places(values: Any, name: str, dates: Sequence[str], what: str) -> np.ndarray:
    """Return numbers in the order of numbers or dates."""
    import pandas

    if values.dtype.kind in "iufM":
        return np.asarray(values)
    formats = {date.name: date.format for date in (DateColumn.parsed(d, what) for d in dates)}
    try:
        parsed = pandas.to_datetime(values.astype(str), format=formats.get(name, ISO), utc=True)
    except (ValueError, TypeError):
        first = values.iloc[0]
        raise DatasetError(
            f"{what}, order_by: column {name!r} must hold numbers or dates, got {first!r}; "
            "date says how dates are written"
        ) from None
    return np.asarray(parsed.astype("int64"))

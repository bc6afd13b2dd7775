"""The table that a dataset was made of: as the user's file has it, or decoded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from kbench.features import Registry
from kbench.records import Cell, Dataset
from kbench.tables.texts import ISO, DateColumn
from kbench_tables.frames import read_table


def raw_table(cell: Cell, dataset: Dataset, registry: Registry) -> Any:
    """Return the rows and columns of a user's own table; None for other datasets."""
    frame, params = read_table(cell.dataset, registry), cell.dataset.params
    if frame is None:
        return None
    left_out = {params["target"], *params.get("ignore", ())}
    left_out |= {params[role] for role in ("weight", "group_by") if params.get(role)}
    return frame.iloc[row_ids_of(dataset)].drop(columns=list(left_out)).reset_index(drop=True)


def row_ids_of(dataset: Dataset) -> np.ndarray:
    """Return the numbers of a dataset's rows in its table."""
    return np.arange(len(dataset.y)) if dataset.row_ids is None else dataset.row_ids


def plain_rows(fitted: Any, n_rows: int) -> list[dict[str, object]]:
    """Return the first rows of a fitted table as mappings of texts, numbers and None."""
    table = fitted.table.iloc[:n_rows]
    formats = {
        date.name: date.format
        for date in (DateColumn.parsed(d, "dates") for d in fitted.pipeline[0].dates)
    }
    columns = {}
    for name in table.columns:
        values = table[name].astype(object).where(table[name].notna(), None).tolist()
        columns[str(name)] = [_plain(value, formats.get(str(name))) for value in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: object, format_: str | None) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, date):
        return value.isoformat() if format_ in (None, ISO) else value.strftime(str(format_))
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def dates_of(cell: Cell) -> list[DateColumn]:
    """Return the columns of a user's table that are read as dates."""
    what = cell.dataset.label
    return [DateColumn.parsed(spec, what) for spec in cell.dataset.params.get("date", ())]


def columns_of(
    dataset: Dataset,
    header: Sequence[str] | None = None,
    raw: Any = None,
    dates: Sequence[DateColumn] = (),
) -> list[tuple[str, list[str] | None]]:
    """Return the columns of a dataset's table as `TableEncoder` takes them.

    Nominal features are called ``column=category``. Where the `header` is not known, the
    column's name ends at the first ``=``. Without the `raw` table, numbers of categories
    stay numbers.
    """
    names, kinds = list(dataset.feature_names), list(dataset.feature_kinds)
    known = iter(header) if header is not None else None
    widths = {date.name: len(date.feature_names) for date in dates}
    columns: list[tuple[str, list[str] | None]] = []
    at = 0
    while at < len(names):
        column = next(known, names[at]) if known is not None else names[at]
        if column in widths or kinds[at] == "numeric":
            columns.append((column, None))
            at += widths.get(column, 1)
            continue
        if kinds[at] == "category":
            codes = np.asarray(dataset.X[:, at])
            columns.append((column, None if raw is None else _categories(codes, raw[column])))
            at += 1
            continue
        if known is None:
            column = names[at].partition("=")[0]
        start = f"{column}="
        categories = []
        while at < len(names) and kinds[at] == "nominal" and names[at].startswith(start):
            categories.append(names[at].removeprefix(start))
            at += 1
        if categories:
            columns.append((column, categories))
        else:  # an indicator that is a column itself
            columns.append((names[at], None))
            at += 1
    return columns


def _categories(codes: np.ndarray, values: Any) -> list[str]:
    """Return the categories that the numbers of a column stand for; "" where no row has one."""
    present = np.flatnonzero(~np.isnan(codes))
    different, first = np.unique(codes[present], return_index=True)
    categories = [""] * (int(different[-1]) + 1 if len(different) else 0)
    for code, row in zip(different.astype(int), present[first], strict=True):
        categories[code] = str(values.iloc[row])
    return categories


def decoded(dataset: Dataset, columns: Sequence[tuple[str, Sequence[str] | None]]) -> Any:
    """Return a dataset as the table that it was made of."""
    import pandas

    X = np.asarray(dataset.X)
    table: dict[str, object] = {}
    at = 0
    for name, categories in columns:
        if categories is None:
            table[name] = X[:, at]
            at += 1
            continue
        block = X[:, at : at + len(categories)]
        at += len(categories)
        named = np.array([*categories, None], dtype=object)
        codes = np.where(
            np.isnan(block).any(axis=1), len(categories), np.nan_to_num(block).argmax(1)
        )
        table[name] = named[codes]
    return pandas.DataFrame(table)

"""From blocks of a table to a dataset: one pass finds the columns, another encodes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kbench import Dataset, DatasetError
from kbench.messages import listed
from kbench.tables.rows import TableRows
from kbench.tables.table import Column, Table, check_columns, no_column, to_dataset
from kbench.tables.texts import DateColumn, UnitColumn
from kbench_files._columns import ColumnScan, numbers
from kbench_files._dated import DatedRows
from kbench_files._unit_rows import UnitRows

VALUES = 1 << 21
"""Values of a block of a table."""


def block_rows(n_columns: int) -> int:
    """Return the rows of a block; each column of a block takes the time of many rows."""
    return max(2048, VALUES // max(n_columns, 1))


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for; parameters of the readers of files."""

    target: str
    ignore: Sequence[str] = ()
    nominal: Sequence[str] = ()
    date: Sequence[str] = ()
    by_target: Sequence[str] = ()
    unit: Sequence[str] = ()
    task: str | None = None
    weight: str | None = None


def encoded(rows: TableRows, roles: Roles, facts: Mapping[str, str]) -> tuple[Dataset, int]:
    """Return the dataset of a table, and the number of the table's rows.

    DatasetError is raised where the table has no rows, or a column does not exist, has no
    value or is text.
    """
    what, target, weight, ignore = rows.what, roles.target, roles.weight, tuple(roles.ignore)
    check_columns(list(rows.names), what, target, ignore, weight)
    dates = {}
    for spec in roles.date:
        column = DateColumn.parsed(spec, what)
        dates[column.name] = column
    units = {column.name: column for column in (UnitColumn.parsed(s, what) for s in roles.unit)}
    for option, given in (
        ("nominal", roles.nominal),
        ("date", dates),
        ("by_target", roles.by_target),
        ("unit", units),
    ):
        unknown = [name for name in given if name not in rows.names]
        if unknown:
            raise DatasetError(f"{what}, {option}: {no_column(unknown[0], rows.names)}")
    if dates:
        dates = {n: c for n, c in dates.items() if n not in (target, weight, *ignore)}
        rows = DatedRows(rows, dates)
    units = {n: c for n, c in units.items() if n not in (*ignore, *roles.nominal, *dates)}
    if units:
        rows = UnitRows(rows, units)
    names = list(rows.names)
    kept = (target, weight)
    nominal = {*roles.nominal, *roles.by_target}
    scans = {
        name: ColumnScan(name, what, name in nominal, name in kept)
        for name in names
        if name in kept or name not in ignore
    }
    n_rows = rows.scan(scans)
    if not n_rows:
        raise DatasetError(f"{what}: it has no rows")
    numeric = rows.numeric()
    features = {name for name in scans if name not in kept}
    refuse = partial(_refuse_empty, what)
    refuse([n for n in names if n in features and n not in numeric and not scans[n].has_values])
    columns = [
        _column(scans.get(name), name, n_rows, name in kept, None if name in nominal else numeric)
        for name in names
    ]
    for column in columns:
        column.by_target = column.name in roles.by_target
    read = partial(_encoded_blocks, rows, scans, {c.name: c for c in columns}, refuse)
    table = Table(columns, n_rows, read=read)
    return to_dataset(table, what, target, ignore, roles.task, weight, **facts), n_rows


def _column(
    scan: ColumnScan | None,
    name: str,
    n_rows: int,
    is_kept: bool,
    numeric: Mapping[str, np.dtype] | None,
) -> Column:
    if scan is None:  # left out
        return Column(name, "numeric")
    if numeric is not None and name in numeric and not is_kept:
        return Column(name, "numeric", dtype=numeric[name])
    return scan.column(n_rows, any_text=is_kept)


def _refuse_empty(what: str, empty: Sequence[str]) -> None:
    if empty:
        raise DatasetError(
            f"{what}: no row has a value in {listed(empty)}. Leave out what is empty: "
            f"ignore {', '.join(map(repr, empty[:3]))}."
        )


def _encoded_blocks(
    rows: TableRows,
    scans: Mapping[str, ColumnScan],
    columns: Mapping[str, Column],
    refuse_empty: Callable[[Sequence[str]], None],
    names: Sequence[str],
) -> Iterator[list[np.ndarray]]:
    """Yield numbers and codes of categories of some columns."""
    is_empty = dict.fromkeys(names, True)
    for block in rows.blocks(names):
        values = []
        for name in names:
            series = block[name]
            if columns[name].kind == "numeric":
                values.append(numbers(series))
                if is_empty[name]:
                    is_empty[name] = bool(np.isnan(values[-1]).all())
            else:
                values.append(scans[name].codes(series))
                is_empty[name] = False
        yield values
    refuse_empty([name for name in names if is_empty[name]])

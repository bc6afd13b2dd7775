"""From blocks of a table to a dataset: one pass finds the columns, another encodes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kbench import Dataset, DatasetError
from kbench.messages import listed
from kbench.tables.table import Column, Table, check_columns, no_column, to_dataset
from kbench.tables.table_rows import Scan, TableRows
from kbench.tables.texts import (
    MISSING,
    DateColumn,
    UnitColumn,
    days_of,
    is_dates,
    moments,
)
from kbench_files._columns import ColumnScan, numbers

if TYPE_CHECKING:
    import pandas

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
    dates = {column.name: column for column in (DateColumn.parsed(d, what) for d in roles.date)}
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
    dates = {n: c for n, c in dates.items() if n not in (target, weight, *ignore)}
    units = {n: c for n, c in units.items() if n not in (*ignore, *roles.nominal, *dates)}
    if dates or units:
        rows = ConvertedRows(rows, {**units, **dates})
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


class ConvertedRows:
    """The rows of another table, of which some columns become columns of numbers.

    Parameters
    ----------
    rows : TableRows
    columns : mapping of str to DateColumn or UnitColumn
        How dates, and numbers with a unit, are written.
    """

    def __init__(self, rows: TableRows, columns: Mapping[str, DateColumn | UnitColumn]) -> None:
        self._rows, self._columns = rows, columns
        self.what, self.files = rows.what, rows.files
        self._source: dict[str, str] = {}
        for name in rows.names:
            self._source |= dict.fromkeys(self.made_of(name), name)
        self.names = list(self._source)

    def made_of(self, name: str) -> list[str]:
        """Return the names of the columns that one becomes."""
        column = self._columns.get(name)
        return column.feature_names if isinstance(column, DateColumn) else [name]

    def scan(self, scans: Mapping[str, Scan]) -> int:
        """Show columns to their scans, converted ones as numbers."""
        shown = {name: s for name, s in scans.items() if self._source[name] not in self._columns}
        for name in self._columns:
            shown[name] = _AsNumbers(self, name, [scans[each] for each in self.made_of(name)])
        return self._rows.scan(shown)

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of columns of numbers, which converted ones are now."""
        known = {n: kind for n, kind in self._rows.numeric().items() if n not in self._columns}
        converted = [name for name, source in self._source.items() if source in self._columns]
        return {**known, **dict.fromkeys(converted, np.dtype(np.float64))}

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, pandas.Series]]:
        """Yield the series of these columns, for consecutive rows."""
        start = 0
        sources = list(dict.fromkeys(self._source[name] for name in names))
        for block in self._rows.blocks(sources):
            found = dict(block)
            for name in self._columns.keys() & block.keys():
                made = self.converted(block[name], name, start)
                found |= zip(self.made_of(name), made, strict=True)
            start += len(next(iter(block.values()), ()))
            yield {name: found[name] for name in names}

    def converted(self, series: pandas.Series, name: str, start: int) -> list[Any]:
        """Return the numbers of a series; `start` rows come before it."""
        import pandas

        column = self._columns[name]
        if isinstance(column, DateColumn):
            when = moments(series, column.format)
            wrong = series.notna().to_numpy() & when.isna().to_numpy()
            if wrong.any() and not is_dates(series):
                raise self._wrong(
                    series, name, int(np.argmax(wrong)), start, f"a date written as {column.format}"
                )
            return [pandas.Series(values) for values in column.of_days(days_of(when)).T]
        if pandas.api.types.is_numeric_dtype(series.dtype):
            return [series.astype(np.float64)]
        codes, different = pandas.factorize(series)
        values = np.append(np.empty(len(different)), np.nan)
        for place, value in enumerate(different):
            try:
                values[place] = _number(value, column)
            except (ValueError, TypeError):
                unit = f"a number{f' with {column.unit!r}' if column.unit else ''}"
                raise self._wrong(
                    series, name, int(np.argmax(codes == place)), start, unit
                ) from None
        return [pandas.Series(values[codes], index=series.index)]

    def _wrong(
        self, series: pandas.Series, name: str, place: int, start: int, wanted: str
    ) -> DatasetError:
        return DatasetError(
            f"{self.what}: row {start + place + 1:,} of {name!r} is not {wanted}: "
            f"{str(series.iloc[place])[:40]!r}"
        )


def _number(value: object, column: UnitColumn) -> float:
    if not isinstance(value, str):
        return float(value)
    return np.nan if value.strip() in MISSING else column.number(value)


class _AsNumbers:
    """Shows a column that is converted to the scans of what it becomes."""

    def __init__(self, rows: ConvertedRows, name: str, scans: Sequence[Scan]) -> None:
        self._rows, self._name, self._scans = rows, name, scans
        self.note = ""
        self._n_rows = 0

    def wants(self, series: pandas.Series | None = None) -> bool:
        return True

    def restart(self) -> None:
        self._n_rows = 0
        for scan in self._scans:
            scan.restart()

    def add(self, series: pandas.Series) -> None:
        made = self._rows.converted(series, self._name, self._n_rows)
        for scan, values in zip(self._scans, made, strict=True):
            scan.add(values)
        self._n_rows += len(series)

"""Tables whose dates are read as columns of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kbench import DatasetError
from kbench.tables.rows import TableRows
from kbench.tables.texts import DateColumn, is_dates, moments


class DatedRows:
    """The rows of another table, of which some columns are dates.

    Parameters
    ----------
    rows : TableRows
    dates : mapping of str to DateColumn
        The dates by their columns.
    """

    def __init__(self, rows: TableRows, dates: Mapping[str, DateColumn]) -> None:
        self._rows, self._dates = rows, dates
        self.what, self.files = rows.what, rows.files
        self._source = {}
        for name in rows.names:
            made = dates[name].feature_names if name in dates else [name]
            self._source |= dict.fromkeys(made, name)
        self.names = list(self._source)

    def scan(self, scans: Mapping[str, Any]) -> int:
        """Show columns that are not dates to their scans; check those that are."""
        plain = {
            name: scan for name, scan in scans.items() if self._source[name] not in self._dates
        }
        checks = {name: _Check(self.what, column) for name, column in self._dates.items()}
        n_rows = self._rows.scan({**plain, **checks})
        for name, check in checks.items():
            for each in self._dates[name].feature_names:
                if each in scans:
                    scans[each].has_values = check.has_values
        return n_rows

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of columns of numbers, which dates are now."""
        known = self._rows.numeric()
        dated = [n for n, source in self._source.items() if source in self._dates]
        return {
            **{name: kind for name, kind in known.items() if name not in self._dates},
            **dict.fromkeys(dated, np.dtype(np.float64)),
        }

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the series of these columns, for consecutive rows."""
        import pandas

        sources = list(dict.fromkeys(self._source[name] for name in names))
        for block in self._rows.blocks(sources):
            found = dict(block)
            for name in sources:
                if column := self._dates.get(name):
                    encoded = column.encode(block[name])
                    for each, values in zip(column.feature_names, encoded.T, strict=True):
                        found[each] = pandas.Series(values)
            yield {name: found[name] for name in names}


class _Check:
    """A scan of a column that has dates only."""

    def __init__(self, what: str, column: DateColumn) -> None:
        self.note = ""
        self._what, self._column = what, column
        self.restart()

    def restart(self) -> None:
        self.has_values = False
        self._n_rows = 0

    def wants(self, series: Any = None) -> bool:
        return True

    def add(self, series: Any) -> None:
        present = series.notna().to_numpy()
        self.has_values = self.has_values or bool(present.any())
        if not is_dates(series):
            wrong = present & moments(series, self._column.format).isna().to_numpy()
            if wrong.any():
                place = int(np.argmax(wrong))
                raise DatasetError(
                    f"{self._what}: row {self._n_rows + place + 1:,} of {self._column.name!r} is "
                    f"not a date written as {self._column.format}: {str(series.iloc[place])[:40]!r}"
                )
        self._n_rows += len(series)

"""Tables of which some texts are read as numbers with a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kbench import DatasetError
from kbench.tables.rows import TableRows
from kbench.tables.texts import MISSING, UnitColumn


class UnitRows:
    """The rows of another table, of which some columns have a unit that is left out.

    Parameters
    ----------
    rows : TableRows
    units : mapping of str to UnitColumn
        How the numbers are written, by their columns.
    """

    def __init__(self, rows: TableRows, units: Mapping[str, UnitColumn]) -> None:
        self._rows, self._units = rows, units
        self.what, self.files, self.names = rows.what, rows.files, rows.names

    def scan(self, scans: Mapping[str, Any]) -> int:
        """Show columns to their scans, those with a unit as numbers."""
        shown = dict(scans)
        for name in self._units.keys() & scans.keys():
            shown[name] = _AsNumbers(self, name, scans[name])
        return self._rows.scan(shown)

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of columns of numbers."""
        return {**self._rows.numeric(), **dict.fromkeys(self._units, np.dtype(np.float64))}

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the series of these columns, for consecutive rows."""
        start = 0
        for block in self._rows.blocks(names):
            found = dict(block)
            for name in self._units.keys() & found.keys():
                found[name] = self.numbers(found[name], name, start)
            start += len(next(iter(found.values()), ()))
            yield found

    def numbers(self, series: Any, name: str, start: int) -> Any:
        """Return the numbers of the texts of a series; `start` rows come before it."""
        import pandas

        if pandas.api.types.is_numeric_dtype(series.dtype):
            return series.astype(np.float64)
        codes, different = pandas.factorize(series)
        values = np.append(np.empty(len(different)), np.nan)
        for place, value in enumerate(different):
            try:
                values[place] = self._number(value, self._units[name])
            except (ValueError, TypeError):
                row = start + int(np.argmax(codes == place)) + 1
                unit = self._units[name].unit
                raise DatasetError(
                    f"{self.what}: row {row:,} of {name!r} is not a number"
                    f"{f' with {unit!r}' if unit else ''}: {str(value)[:40]!r}"
                ) from None
        return pandas.Series(values[codes], index=series.index)

    @staticmethod
    def _number(value: Any, column: UnitColumn) -> float:
        if not isinstance(value, str):
            return float(value)
        return np.nan if value.strip() in MISSING else column.number(value)


class _AsNumbers:
    """Shows the numbers of a column of texts to another scan."""

    def __init__(self, rows: UnitRows, name: str, scan: Any) -> None:
        self._rows, self._name, self._scan = rows, name, scan
        self.note = ""
        self._n_rows = 0

    def wants(self, series: Any = None) -> bool:
        return True

    def restart(self) -> None:
        self._n_rows = 0
        self._scan.restart()

    def add(self, series: Any) -> None:
        self._scan.add(self._rows.numbers(series, self._name, self._n_rows))
        self._n_rows += len(series)

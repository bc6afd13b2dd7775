"""Dense ARFF files as a table in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbench import DatasetParameterError
from kbench.tables.arff import is_sparse_arff, read_arff
from kbench.tables.rows import Opened, Scan
from kbench.tables.table import Column, Table
from kbench_files._encoding import block_rows
from kbench_files._reading import existing

ONLY_DENSE = ("nominal", "date", "by_target", "unit", "group_by", "order_by")
"""Parameters that need a table with columns of text, dates or groups."""


def arff_rows(path: str | Path, **given: Any) -> Opened | None:
    """Return a dense ARFF file as a table in blocks; None where it is sparse."""
    file, what = existing(path)
    if is_sparse_arff(file, what):
        refuse_for_sparse(given, what)
        return None
    return Opened(ArffRows(path), {}, "dense ARFF; the types of columns are those that it declares")


def arff_table(path: str | Path, **_: Any) -> Any:
    """Return a dense ARFF file as a data frame; None where it is sparse."""
    import pandas

    if is_sparse_arff(*existing(path)):
        return None
    rows = ArffRows(path)
    blocks = [pandas.DataFrame(dict(block)) for block in rows.blocks(rows.names)]
    return pandas.concat(blocks, ignore_index=True)


def refuse_for_sparse(given: Mapping[str, Any], what: str) -> None:
    """Refuse parameters that have no meaning for sparse rows."""
    asked = [name for name in ONLY_DENSE if given.get(name)]
    if asked:
        raise DatasetParameterError(
            f"{what}: it is sparse, and {asked[0]} has no meaning for sparse rows: their columns "
            "are numbers and declared categories"
        )


class ArffRows:
    """The rows of a dense ARFF file; see `kbench.tables.rows.TableRows`.

    Declared categories keep their order. Columns of texts and dates are texts.
    """

    def __init__(self, path: str | Path) -> None:
        file, self.what = existing(path)
        self.files: Sequence[Path] = [file]
        self._table: Table = read_arff(file, self.what)
        self.names: Sequence[str] = [column.name for column in self._table.columns]

    def scan(self, scans: Mapping[str, Scan]) -> int:
        """Show columns to their `Scan`, in one pass; return the number of rows."""
        numeric = self.numeric()
        needed = {n: s for n, s in scans.items() if n not in numeric or s.wants()}
        for block in self.blocks(list(needed)) if needed else ():
            for name, scan in needed.items():
                scan.add(block[name])
        return self._table.n_rows

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of columns of numbers."""
        columns = self._table.columns
        return {c.name: np.dtype(np.float64) for c in columns if c.kind == "numeric"}

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield series by the names of their columns."""
        columns = {column.name: column for column in self._table.columns}
        step = block_rows(len(names))
        for start in range(0, self._table.n_rows, step):
            yield {name: _series(columns[name], start, start + step) for name in names}


def _series(column: Column, start: int, stop: int) -> Any:
    import pandas

    values = column.values[start:stop]
    if column.kind == "nominal":
        return pandas.Series(pandas.Categorical.from_codes(values, list(column.categories)))
    if column.kind == "string":
        return pandas.Series(values, dtype=object)
    return pandas.Series(np.array(values))

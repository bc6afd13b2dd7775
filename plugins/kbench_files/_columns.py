"""Columns of a table that is read block by block: their kinds, categories and values.

The result is that of pandas on the whole table, whatever the blocks are.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas

from kbench import DatasetError
from kbench.messages import option
from kbench.tables import cell_values
from kbench.tables.cell_values import Texts
from kbench.tables.table import TEXT_ABOVE, Column
from kbench.tables.texts import MISSING, is_dates

MAX_DIFFERENT = 1_000_000
"""A column with more distinct strings has too many to be labels or categories."""


class ColumnScan:
    """What one scan of a column finds: its kind, its categories, and optionally its values.

    With `is_nominal`, numbers are categories. Values that are kept are needed at once, as those
    of a target; `texts` says how these are written if they have a unit. `note` is what messages
    add to the name of the column, `has_values` whether there was one that is not missing.
    """

    def __init__(
        self, name: str, file: str, is_nominal: bool, keeps_values: bool, texts: Texts | None = None
    ) -> None:
        self.name, self.note = name, ""
        self._what, self._is_nominal, self._keeps_values = file, is_nominal, keeps_values
        self._texts = texts
        self.restart()

    def restart(self) -> None:
        """Discard all values: another scan begins."""
        self.has_values = False
        self._declared: dict[Any, int] | None = None
        self._different: list[Any] = []  # series of values without repetition
        self._n_different = self._n_compact = 0
        self._is_numeric = False
        self._n_rows = 0
        self._blocks: list[Any] = []

    def wants(self, series: pandas.Series | None = None) -> bool:
        """Whether values matter: numbers do only as labels, weights or categories."""
        is_asked = self._keeps_values or self._is_nominal
        return is_asked or (series is not None and not is_numeric(series.dtype))

    def add(self, series: pandas.Series) -> None:
        """Look at the next values."""
        if self._texts is not None:
            try:
                values = cell_values.numbers(series, self.name, self._texts, self._n_rows + 1)
            except ValueError as error:
                raise DatasetError(f"{self._what}: {error}") from None
            series = pandas.Series(values)
        self._n_rows += len(series)
        has_values = bool(series.notna().any())
        self.has_values = self.has_values or has_values
        if not has_values and isinstance(series.dtype, np.dtype):
            # pandas takes a block without values for one of numbers
            if self._keeps_values:
                self._blocks.append(len(series))
        elif isinstance(series.dtype, pandas.CategoricalDtype):
            self._add_declared(series)
        elif is_numeric(series.dtype) and not self._is_nominal:
            self._is_numeric = True
            if self._keeps_values:
                self._blocks.append(numbers(series))
        else:
            different = series.drop_duplicates()
            self._different.append(different)
            self._n_different += len(different)
            if self._n_different > 2 * self._n_compact + 10_000:
                self._compact()
            if self._keeps_values:
                self._blocks.append(pandas.factorize(series))

    def column(self, n_rows: int, any_text: bool) -> Column:
        """Return the column; its values only where they are kept.

        Free text becomes categories where `any_text` is allowed.
        """
        if self._is_numeric or not (self._different or self._declared):
            values = self._join(np.nan).astype(np.float64) if self._keeps_values else None
            return Column(self.name, "numeric", (), values)
        if self._declared is not None:
            names = [str(value) for value in self._declared]
            values = self._join(-1) if self._keeps_values else None
            return Column(self.name, "nominal", names, values)
        self._compact()
        series = self._different[0]
        _, different = pandas.factorize(series, sort=True)
        is_bool = pandas.api.types.is_bool_dtype(series.dtype)
        is_plain = self._is_nominal or is_bool or is_numeric(series.dtype)
        if not (is_plain or any_text) and is_free_text(different, n_rows):
            kind: Literal["date", "string"] = "date" if is_dates(series) else "string"
            return Column(self.name, kind, (), None, note=self.note)
        values = None
        if self._keeps_values:
            index = pandas.Index(different)
            self._blocks = [
                block
                if isinstance(block, int)
                else np.append(index.get_indexer(block[1]), -1)[block[0]].astype(np.int32)
                for block in self._blocks
            ]
            values = self._join(-1)
        names = [str(value) for value in different]
        return Column(self.name, "nominal", names, values, note=self.note)

    def _join(self, missing: float) -> np.ndarray:
        """Return the values of all blocks; of those without any, only the length is kept."""
        return np.concatenate(
            [np.full(b, missing) if isinstance(b, int) else b for b in self._blocks]
        )

    def _add_declared(self, series: pandas.Series) -> None:
        codes = self._declared = {} if self._declared is None else self._declared
        new = [codes.setdefault(category, len(codes)) for category in series.cat.categories]
        if self._keeps_values:
            self._blocks.append(np.array([*new, -1], np.int32)[np.asarray(series.cat.codes)])

    def _compact(self) -> None:
        if len(self._different) > 1:
            self._different = [pandas.concat(self._different, ignore_index=True).drop_duplicates()]
        self._n_different = self._n_compact = len(self._different[0])
        if self._n_compact > MAX_DIFFERENT:
            raise DatasetError(
                f"{self._what}: {self.name!r} has more than {MAX_DIFFERENT:,} different "
                f"values{self.note}, which are too many for labels or categories. Choose another "
                f"target, or drop the column: {option('drop', [self.name])}."
            )


def is_numeric(dtype: object) -> bool:
    """Whether a pandas type is numeric; booleans are not."""
    types = pandas.api.types
    return bool(types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype))


def numbers(series: pandas.Series) -> np.ndarray:
    """Return the numbers of a series, NaN for missing ones."""
    if isinstance(series.dtype, np.dtype):
        return np.asarray(series)
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def text_places(series: pandas.Series) -> np.ndarray:
    """Return the places of strings that are neither numbers nor marks of missing values."""
    is_no_number = pandas.to_numeric(series, errors="coerce").isna()
    return np.flatnonzero(is_no_number & series.notna() & ~series.isin(MISSING))


def is_free_text(different: Sequence[Any], n_rows: int) -> bool:
    """Distinguish free text and dates, which are not features, from names of categories.

    `different` are the different values of a column that is neither numeric nor declared to be
    nominal, without missing ones. Values other than strings and booleans are not categories; nor
    are more than `TEXT_ABOVE` different ones that are more than half as many as rows.

    >>> is_free_text(["red", "blue"], n_rows=3)
    False
    >>> is_free_text([f"comment {i}" for i in range(60)], n_rows=100)
    True
    """
    return not {*map(type, different)} <= {str, bool} or (
        len(different) > TEXT_ABOVE and len(different) > n_rows / 2
    )

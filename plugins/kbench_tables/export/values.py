"""Cells of a user's table become numbers: texts, or values of any type, without pandas."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from kbench.tables.texts import ISO, MISSING, DateColumn, UnitColumn, as_plain, signed

_TRUTHS = {
    **dict.fromkeys(("0", "0.0", "False", "false", "FALSE"), "False"),
    **dict.fromkeys(("1", "1.0", "True", "true", "TRUE"), "True"),
}
"""Spellings of truth values."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")


@dataclass(frozen=True)
class Texts:
    """How texts are read.

    Examples
    --------
    >>> Texts(decimal=",", thousands=".").number(" 1.234,5 ")
    1234.5
    """

    decimal: str = "."
    """One of {".", ","}. Decimal mark of numbers."""
    thousands: str = ""
    """Sign between groups of three digits; empty where there is none."""
    missing: Sequence[str] = ()
    """Texts of missing values, beside `MISSING`."""

    @cached_property
    def marks(self) -> frozenset[str]:
        """All texts of missing values."""
        return frozenset((*MISSING, *self.missing))

    @cached_property
    def is_plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands

    def __str__(self) -> str:
        return "" if self.is_plain else f" with {self.decimal!r} as the decimal mark"

    def number(self, text: str) -> float:
        """Return the number of a text, NaN for a missing one; `ValueError` for others."""
        text = text.strip()
        if text in self.marks:
            return math.nan
        if not self.is_plain:
            if not signed(self.decimal, self.thousands).fullmatch(text):
                raise ValueError(text)
            text = text.translate(as_plain(self.decimal, self.thousands))
        elif "_" in text:  # which Python allows in numbers
            raise ValueError(text)
        return float(text)


@dataclass(frozen=True)
class UnitTexts(Texts):
    """How texts of a column are read that are numbers with a unit around them.

    Examples
    --------
    >>> UnitTexts(column=UnitColumn("price", "$", thousands=",")).number("$1,200")
    1200.0
    """

    column: UnitColumn = field(default_factory=lambda: UnitColumn(""))

    @cached_property
    def is_plain(self) -> bool:
        """Return False."""
        return False

    def number(self, text: str) -> float:
        """Return the number of a text, NaN for a missing one; `ValueError` for others."""
        text = text.strip()
        return math.nan if text in self.marks else self.column.number(text)

    def __str__(self) -> str:
        unit = f" with {self.column.unit!r} or without a unit" if self.column.unit else ""
        mark = f"{' and' if unit else ' with'} {self.column.decimal!r} as the decimal mark"
        return unit + mark * (self.column.decimal != ".")


def is_missing(value: object) -> bool:
    """Whether a value that is not a text is a missing one: None, NaN, NaT or pandas' NA."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.floating | np.datetime64) and bool(value != value))
    )


def numbers(values: Any, name: str, texts: Texts) -> np.ndarray:
    """Return the numbers of a column, NaN where they are missing; shape (n_rows,).

    A `ValueError` names the first row with something else, from 1.
    """
    found = _plain_numbers(values, texts)
    if found is None:
        cells = (_number(value, row, name, texts) for row, value in enumerate(values, 1))
        found = np.fromiter(cells, np.float64, len(values))
    if np.isinf(found).any():
        row = int(np.isinf(found).argmax())
        raise ValueError(
            f"column {name!r} must be finite numbers, got {values[row]} in row {row + 1:,}"
        )
    return found


def _plain_numbers(values: Any, texts: Texts) -> np.ndarray | None:
    """Return a column of numbers, or of texts that all are plain numbers; None for others."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if not texts.is_plain or not len(values) or not isinstance(values[0], str):
        return None
    try:
        found = np.array(list(map(float, values)))
        return None if "_" in "".join(values) else found
    except (ValueError, TypeError):
        return None


def _number(value: object, row: int, name: str, texts: Texts) -> float:
    try:
        if isinstance(value, str):
            return texts.number(value)
        if is_missing(value):
            return math.nan
        if isinstance(value, bool | int | float | np.number | np.bool_ | Decimal):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"column {name!r} must be numbers{texts}, got {value!r} in row {row:,}")


def dates(values: Any, column: DateColumn, texts: Texts) -> np.ndarray:
    """Return the columns of numbers of dates, NaN where they are missing.

    A `ValueError` names the first row with something else, from 1.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        stamps = values.astype("datetime64[us]")
        days = stamps.astype(np.int64) / (86_400.0 * 1e6)
        return column.of_days(np.where(np.isnat(stamps), np.nan, days))
    known: dict[Any, float] = {}
    days = np.empty(len(values))
    for row, value in enumerate(values):
        day = known.get(value) if isinstance(value, str) else None
        if day is None:
            try:
                day = _day(value, column.format, texts)
            except (ValueError, OverflowError):
                raise ValueError(
                    f"column {column.name!r} must be dates written as {column.format}: {value!r} "
                    f"in row {row + 1:,}"
                ) from None
            if isinstance(value, str):
                known[value] = day
        days[row] = day
    return column.of_days(days)


def _day(value: object, format_: str, texts: Texts) -> float:
    """Return the days of one date since 1970; times without a zone are UTC."""
    if isinstance(value, str):
        text = value.strip()
        if text in texts.marks:
            return math.nan
        value = _parsed(text, format_)
    elif is_missing(value):
        return math.nan
    elif isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        value = _parsed(f"{value:.15g}", format_)  # 20240131 is a date too
    if not isinstance(value, date):
        raise ValueError(value)
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return float((aware - _EPOCH) / _DAY)


def _parsed(text: str, format_: str) -> datetime:
    if format_ != ISO:
        return datetime.strptime(text, format_)
    if short := _MONTH.fullmatch(text):
        return datetime(int(short[1]), int(short[2] or 1), 1)
    return datetime.fromisoformat(text)


def categories(values: Iterable[object], known: Sequence[str], texts: Texts) -> np.ndarray:
    """Return the numbers of categories, -1 for others, NaN where the value is missing."""
    of = _Categories(known, texts)
    return np.array([of(value) for value in values], dtype=np.float64)


class _Categories:
    """The number of each value; texts and numbers are compared as the table has them."""

    def __init__(self, known: Sequence[str], texts: Texts) -> None:
        self._place = {category: j for j, category in enumerate(known) if category}
        self._numbers = _as_numbers(known)
        # 1.0 in a file means the category 1 only where that was a number
        written = {str(int(n)) if n.is_integer() else str(n) for n in self._numbers}
        written |= {str(n) for n in self._numbers}
        self._are_numbers = bool(self._place) and set(self._place) <= written
        self._texts = texts
        self._found: dict[Any, float] = {}

    def __call__(self, value: object) -> float:
        key = value if isinstance(value, str) else (type(value), str(value))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._of(value)
        return found

    def _of(self, value: Any) -> float:
        is_text = isinstance(value, str)
        if not is_text and is_missing(value):
            return math.nan
        text = str(value).strip()
        if not text:
            return math.nan
        j = self._place.get(text)
        if j is None and is_text and text in self._texts.marks:
            return math.nan
        if j is None and (not is_text or self._are_numbers):
            with contextlib.suppress(ValueError, TypeError, OverflowError):
                number = self._texts.number(text) if is_text else float(value)
                j = self._numbers.get(number)
        if j is None and text in _TRUTHS:
            # 1 in one table is True in another
            truth = _TRUTHS[text]
            j = self._place.get(truth, self._numbers.get(float(truth == "True")))
        return -1.0 if j is None else float(j)


def _as_numbers(known: Sequence[str]) -> Mapping[float, int]:
    """Return the places of categories that are numbers: 1 in one table is 1.0 in another."""
    places: dict[float, int] = {}
    for j, category in enumerate(known):
        with contextlib.suppress(ValueError):
            places.setdefault(float(category), j)
    return places


def columns_of(table: Any) -> dict[Any, Any] | None:
    """Return the columns of a table by their names; None for an array or a matrix.

    A table is a data frame, a mapping of columns, a list of mappings (one for each row), or
    one such mapping.
    """
    if isinstance(table, Mapping):
        cells = [isinstance(v, str) or not hasattr(v, "__len__") for v in table.values()]
        return {name: [v] for name, v in table.items()} if all(cells) else dict(table)
    if isinstance(table, list | tuple) and table and isinstance(table[0], Mapping):
        names = dict.fromkeys(name for row in table for name in row)
        return {name: [row.get(name) for row in table] for name in names}
    found = getattr(table, "column_names", None)
    found = getattr(table, "columns", None) if found is None else found
    if found is None or hasattr(table, "indptr"):
        return None
    header = list(found)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"several columns of the table are named {twice!r}")
    return {name: _values(table[name]) for name in header}


def _values(series: object) -> Any:
    """Return the values of a column of a data frame."""
    if hasattr(series, "to_pylist"):  # pyarrow
        return series.to_pylist()
    return series.to_numpy() if hasattr(series, "to_numpy") else np.asarray(series)

"""Cells of a user's table become numbers: in training, and in exported models.

This module leaves with an exported model, and imports no scikit-learn: most files are read sooner.
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from kbench.tables.texts import (
    MISSING,
    DateColumn,
    UnitColumn,
    build_sign_pattern,
    build_translation,
    convert_cells,
    is_number,
    parse_days,
)

Convert: TypeAlias = Callable[..., np.ndarray]
"""``convert(values, first_row=1)`` returns the numbers of a column, or of its categories."""

_TRUTHS = {
    **dict.fromkeys(("0", "0.0", "False", "false", "FALSE"), "False"),
    **dict.fromkeys(("1", "1.0", "True", "true", "TRUE"), "True"),
}
"""Spellings of booleans."""


@dataclass(frozen=True)
class Texts:
    """The notation of strings.

    Examples
    --------
    >>> Texts(decimal=",", thousands=".").number(" 1.234,5 ")
    1234.5
    >>> Texts(unit=UnitColumn("price", "$", thousands=",")).number("$1,200")
    1200.0
    """

    decimal: str = "."
    """One of {".", ","}. Decimal mark of numbers."""
    thousands: str = ""
    """Thousands separator; empty if there is none."""
    na_values: Sequence[str] = ()
    """Values to read as missing, in addition to `MISSING`."""
    unit: UnitColumn | None = None
    """Unit of the numbers, which have marks of their own then."""

    @cached_property
    def marks(self) -> frozenset[str]:
        """All strings that mean a missing value."""
        return frozenset((*MISSING, *self.na_values))

    @cached_property
    def absent(self) -> Sequence[float]:
        """Given marks that are numbers, which mean missing however they are written."""
        return [float(mark) for mark in self.na_values if is_number(mark)]

    @cached_property
    def is_plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands and self.unit is None

    def __str__(self) -> str:
        unit = f" with {self.unit.unit!r} or without a unit" if self.unit and self.unit.unit else ""
        decimal = (self.unit or self).decimal
        if self.is_plain or (self.unit and decimal == "."):
            return unit
        return f"{unit}{' and' if unit else ' with'} {decimal!r} as the decimal mark"

    def number(self, text: str) -> float:
        """Parse a number, NaN for a missing one; raises ValueError for other strings."""
        text = text.strip()
        if text in self.marks:
            return math.nan
        if self.unit is not None:
            return self.unit.number(text)
        if not self.is_plain:
            if not build_sign_pattern(self.decimal, self.thousands).fullmatch(text):
                raise ValueError(text)
            text = text.translate(build_translation(self.decimal, self.thousands))
        elif "_" in text:  # which Python allows in numbers
            raise ValueError(text)
        return float(text)


def is_missing(value: object) -> bool:
    """Whether a value that is not a string is a missing one: None, NaN, NaT or pandas' NA."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.floating | np.datetime64) and bool(value != value))
    )


def numbers(values: Any, name: str, texts: Texts, first_row: int = 1) -> np.ndarray:
    """Return the numbers of a column, NaN if they are missing; shape (n_rows,).

    A `ValueError` names the first row with something else.
    """
    converted = _plain_numbers(values, texts)
    if converted is None:
        converted = convert_cells(values, partial(_number, texts=texts))
        _refuse_others(
            values, converted, texts, f"column {name!r} must be numbers{texts}, got", first_row
        )
    converted = drop_marks(converted, texts)
    if np.isinf(converted).any():
        row = int(np.isinf(converted).argmax())
        raise ValueError(
            f"column {name!r} must be finite numbers, got {list(values)[row]} in row "
            f"{first_row + row:,}"
        )
    return converted


def drop_marks(values: np.ndarray, texts: Texts) -> np.ndarray:
    """Return numbers with NaN for those that are marks: -999.0 is missing where -999 is."""
    return np.where(np.isin(values, texts.absent), np.nan, values) if texts.absent else values


def _plain_numbers(values: Any, texts: Texts) -> np.ndarray | None:
    """Return a column of numbers, or of texts that all are plain numbers; None for others."""
    if getattr(getattr(values, "dtype", None), "kind", "O") in "fiub":
        with contextlib.suppress(ValueError, TypeError):  # missing values of pandas' own types
            return np.asarray(values, dtype=np.float64)
    if not texts.is_plain or not len(values) or not isinstance(next(iter(values)), str):
        return None
    try:
        converted = np.array(list(map(float, values)))
        return None if "_" in "".join(values) or np.isnan(converted).any() else converted
    except (ValueError, TypeError):
        return None


def _number(value: object, texts: Texts) -> float:
    if isinstance(value, str):
        return texts.number(value)
    if is_missing(value):
        return math.nan
    if isinstance(value, bool | int | float | np.number | np.bool_ | Decimal):
        return float(value)
    raise ValueError(value)


def dates(values: Any, column: DateColumn, texts: Texts, first_row: int = 1) -> np.ndarray:
    """Return the columns of numbers of dates, NaN if they are missing.

    A `ValueError` names the first row with something else.
    """
    days = parse_days(values, column.format)
    head = f"column {column.name!r} must be dates written as {column.format}:"
    _refuse_others(values, days, texts, head, first_row)
    days[np.isin(days, parse_days(texts.na_values, column.format))] = np.nan
    return column.encode_days(days)


def _refuse_others(values: Any, array: np.ndarray, texts: Texts, head: str, first_row: int) -> None:
    """Raise a `ValueError` for the first cell that has become NaN and is not a missing value."""
    absent = np.flatnonzero(np.isnan(array))
    cells = list(values) if len(absent) else []
    for row in absent:
        cell = cells[row]
        if not (cell.strip() in texts.marks if isinstance(cell, str) else is_missing(cell)):
            raise ValueError(f"{head} {cell!r} in row {first_row + row:,}")


class Categories:
    """The number of each value of a column: -1 if it is unknown, NaN if it is missing.

    Strings and numbers are compared as the table has them.

    >>> Categories(["Oslo", "Rome"], Texts())(["Rome", "Bergen", None])
    array([ 1., -1., nan])
    """

    def __init__(self, categories: Sequence[str], texts: Texts) -> None:
        self._place = {category: j for j, category in enumerate(categories)}
        # places of categories that are numbers: 1 in one table is 1.0 in another
        # reversed, so that of equal numbers the first one counts
        self._numbers = {
            float(name): j for name, j in reversed(self._place.items()) if is_number(name)
        }
        self._truths = {_TRUTHS[name]: j for name, j in self._place.items() if name in _TRUTHS}
        # 1.0 in a file means the category 1 only where that was a number
        written = {str(int(n)) if n.is_integer() else str(n) for n in self._numbers}
        written |= {str(n) for n in self._numbers}
        self._are_numbers = bool(self._place) and set(self._place) <= written
        self._texts = texts
        self._found: dict[Any, float] = {}

    def __call__(self, values: Any, first_row: int = 1) -> np.ndarray:
        """Return the numbers of the categories of values; every row is allowed to have any."""
        if hasattr(values, "factorize"):  # a column of pandas, in training
            codes, different = values.factorize()
            return np.asarray(np.array([*map(self._find, different), np.nan])[codes])
        return np.array([self._code(value) for value in values], dtype=np.float64)

    def _code(self, value: object) -> float:
        key = value if isinstance(value, str) else (type(value), str(value))
        number = self._found.get(key)
        if number is None:
            number = self._found[key] = self._find(value)
        return number

    def _find(self, value: Any) -> float:
        is_text = isinstance(value, str)
        if not is_text and is_missing(value):
            return math.nan
        label = str(value)
        if label in self._place:
            return self._place[label]
        label = label.strip()
        j = self._place.get(label)
        if j is None and label in self._texts.marks:
            return math.nan
        if j is None and (not is_text or self._are_numbers):
            with contextlib.suppress(ValueError, TypeError, OverflowError):
                j = self._numbers.get(self._texts.number(label) if is_text else float(value))
        if j is None and label in _TRUTHS:
            j = self._truths.get(_TRUTHS[label])  # 1 in one table is True or true in another
        if j is None and is_number(label) and float(label) in self._texts.absent:
            return math.nan
        return -1.0 if j is None else float(j)


@dataclass(eq=False, repr=False)
class TableColumns:
    """The parameters of the encoder of exported models, and all that it does with blocks."""

    columns: Sequence[tuple[str, Sequence[str] | None]] = ()
    coded: Sequence[str] = ()
    dates: Sequence[str] = ()
    decimal: str = "."
    thousands: str = ""
    na_values: Sequence[str] = ()
    units: Sequence[str] = ()

    def encode(self, table: Mapping[Any, Any], first_row: int = 1) -> np.ndarray:
        """Return encoded rows of a table, of which a `ValueError` gives the number."""
        chosen, parts = self.select(table), []
        categories_of = dict(self.columns)
        for name, convert in self.converters().items():
            part = convert(chosen[name], first_row=first_row)
            part = part[:, None] if part.ndim == 1 else part
            categories = categories_of[name]
            if categories is not None and name not in self.coded:
                # a column of 0 and 1 for each category; NaN if the value is missing
                absent = np.isnan(part[:, 0])
                part = np.asarray(part == np.arange(len(categories)), dtype=np.float64)
                part[absent] = np.nan
            parts.append(part)
        return np.asarray(np.hstack(parts))

    def converters(self) -> dict[str, Convert]:
        """Return what makes numbers of the values of each column, or numbers of categories."""
        dated = {date.name: date for date in self._dates()}
        units = {unit.name: unit for unit in self._units()}
        made: dict[str, Convert] = {}
        for name, categories in self.columns:
            if name in dated:
                made[name] = partial(dates, column=dated[name], texts=self.texts)
            elif categories is not None:
                made[name] = Categories(categories, self.texts)
            else:
                texts = replace(self.texts, unit=units.get(name))
                made[name] = partial(numbers, name=name, texts=texts)
        return made

    def select(self, table: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the values of the columns, of those of a table; blanks around names are ignored.

        A `ValueError` names the columns that are missing.
        """
        place = {str(name).strip(): name for name in table} | {name: name for name in table}
        missing = [name for name, _ in self.columns if name not in place]
        if missing:
            raise ValueError(f"the table has no column {', '.join(map(repr, missing[:8]))}")
        return {name: table[place[name]] for name, _ in self.columns}

    @property
    def texts(self) -> Texts:
        """The notation of strings."""
        return Texts(self.decimal, self.thousands, tuple(self.na_values))

    def places(self) -> dict[str, slice]:
        """Return the columns of the encoded table that each column becomes."""
        widths = {date.name: len(date.feature_names) for date in self._dates()}
        places, start = {}, 0
        for name, categories in self.columns:
            width = 1 if categories is None or name in self.coded else len(categories)
            width = widths.get(name, width)
            places[name] = slice(start, start + width)
            start += width
        return places

    def _dates(self) -> list[DateColumn]:
        return [DateColumn.parse(spec, "dates") for spec in self.dates]

    def _units(self) -> list[UnitColumn]:
        return [UnitColumn.parse(spec, "units") for spec in self.units]

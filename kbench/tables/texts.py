"""Reading of the strings of a table: numbers, units, dates, missing values.

Numbers may have signs around them: `$1,200`, `45 %`, `20 °C`, `(1 200)`. All values of a
column have one unit, which is left out: 45 % is 45. Dates become days since 1970, and the place
in the year, the week and the day. This module leaves with an exported model.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kbench.errors import DatasetError

if TYPE_CHECKING:
    import pandas

BLANKS = " \u00a0\u2009\u202f"
"""Blanks that may stand between groups of three digits; a thousands mark " " is any of them."""

MISSING = (
    *("", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Strings that mean a missing value, unless they are a category of the column."""

_CURRENCY = "\u00a4$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20ba\u20aa\u0e3f\u20ab\u20b4\u20b1\u00a2"
_CODES = (
    "USD|EUR|GBP|JPY|CHF|CNY|INR|RUB|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|ILS|BRL|MXN|ZAR|"
    "KRW|SGD|HKD|THB|AED|SAR"
)
MONEY = re.compile(rf"[A-Z]{{0,3}}[{_CURRENCY}]|(?:{_CODES})|Rs\.?|kr\.?|z\u0142|K\u010d")
"""The sign or name of a currency."""

_BODY = rf"(?:\d(?:[\d.,'\u2019{BLANKS}]*[\d.,])?|[.,]\d+)(?:[eE][+-]?\d+(?!\w))?"
_AFTER = (
    rf"(?:[^\W\d_]|[%\u2030\u00b0{_CURRENCY}])[\w%\u00b0\u00b2\u00b3/.^*\u00b7 {_CURRENCY}]{{0,15}}"
)
_FORM = re.compile(
    rf"(?P<sign>[+\u2212-]?)\s*(?P<before>{MONEY.pattern})?\s*(?P<sign2>[+\u2212-]?)"
    rf"(?P<body>{_BODY})\s*(?P<after>{_AFTER})?(?P<sign3>[\u2212-]?)"
)
MARKS = ("", ",", ".", " ", "'")
"""Thousands separators; the empty one stands for none."""


@cache
def build_unsigned_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of numbers without a sign, with groups of exactly three digits.

    >>> bool(build_unsigned_pattern(",", ".").fullmatch("1.234,5"))
    True
    """
    whole = r"\d+"
    if thousands:
        group = "".join(map(re.escape, _same_mark(thousands)))
        whole = rf"(?:[1-9]\d{{0,2}}(?:[{group}]\d{{3}})+|\d+)"
    mark = re.escape(decimal)
    return re.compile(rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?")


@cache
def build_sign_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of numbers with a sign or none, which may be infinite."""
    finite = build_unsigned_pattern(decimal, thousands).pattern
    return re.compile(rf"[+-]?(?:{finite}|inf|Inf|infinity|Infinity)")


@cache
def build_translation(decimal: str, thousands: str) -> dict[int, str | None]:
    """Return the translation of numbers into those that Python writes.

    >>> "1.234,5".translate(build_translation(",", "."))
    '1234.5'
    """
    return {**dict.fromkeys(map(ord, _same_mark(thousands))), ord(decimal): "."}


def _same_mark(thousands: str) -> str:
    """Return the signs that stand for a sign between groups of three digits."""
    if thousands and thousands in BLANKS:
        return BLANKS
    return {"'": "'\u2019"}.get(thousands, thousands)


def is_number(text: str) -> bool:
    """Whether a string is a number as Python writes it, but without underscores."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


@dataclass(frozen=True)
class Parts:
    """A string that may be a number: its sign, its digits and marks, and what is around them."""

    is_negative: bool
    body: str
    unit: str


def split_number(text: str) -> Parts | None:
    """Split a string that may be a number; None for other strings.

    Brackets around a number are a minus, as accountants write it.

    >>> split_number("($1,200)"), split_number("18-25")
    (Parts(is_negative=True, body='1,200', unit='$'), None)
    """
    text = text.strip()
    in_brackets = text.startswith("(") and text.endswith(")")
    match = _FORM.fullmatch(text[1:-1].strip() if in_brackets else text)
    if match is None:
        return None
    signs = match["sign"] + match["sign2"] + match["sign3"]
    if len(signs) > 1 or (in_brackets and signs):
        return None
    unit = " ".join(part.strip() for part in (match["before"], match["after"]) if part)
    return Parts(in_brackets or signs in ("-", "\u2212"), match["body"], unit)


@dataclass(frozen=True)
class UnitColumn:
    """The notation of the numbers of a column that have a unit around them.

    Examples
    --------
    >>> column = UnitColumn.parse("price=$|.,", "mine.csv")
    >>> column.number("$1,200.50"), column.number("-$3"), column.number("(7)")
    (1200.5, -3.0, -7.0)
    """

    name: str
    unit: str = ""
    """What is left out; empty if numbers have brackets or marks of thousands only."""
    decimal: str = "."
    thousands: str = ""
    """Decimal mark, and the thousands separator."""

    @classmethod
    def parse(cls, spec: str, source: str) -> "UnitColumn":
        """Parse ``"COLUMN=UNIT"``, optionally with ``"|"``, a decimal and a thousands mark."""
        name, equals, rest = str(spec).rpartition("=")
        unit, _, marks = rest.partition("|")
        decimal, thousands = (marks or ".")[0], marks[1:]
        if not equals or not name or decimal not in ".," or thousands not in MARKS:
            raise DatasetError(
                f"{source}: unit must be COLUMN=UNIT, such as 'price=$', optionally with '|' and "
                f"the marks of decimals and thousands after it, 'price=\u20ac|,.', got {spec!r}"
            )
        return cls(name, unit, decimal, thousands)

    @property
    def spec(self) -> str:
        """The string that `parsed` reads."""
        marks = self.decimal + self.thousands
        return f"{self.name}={self.unit}" + (f"|{marks}" if marks != "." else "")

    def number(self, text: str) -> float:
        """Parse a number with the unit or without one; raises ValueError for other strings."""
        parts = split_number(text)
        if parts is None or parts.unit not in ("", self.unit):
            raise ValueError(text)
        if not build_unsigned_pattern(self.decimal, self.thousands).fullmatch(parts.body):
            raise ValueError(text)
        value = float(parts.body.translate(build_translation(self.decimal, self.thousands)))
        return -value if parts.is_negative else value


PARTS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Periods in days of which the sine and the cosine may be columns."""

ISO = "ISO8601"
"""The format of all dates and times of ISO 8601."""

_SECONDS_A_DAY = 86_400.0
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
_LOOSE = re.compile(r"^(\d{4})([-/. ])(\d{1,2})\2(\d{1,2})(?!\d)")
"""A date of ISO 8601 except for its signs between numbers, or zeros before them."""


@dataclass(frozen=True)
class DateColumn:
    """The conversion of the dates of a column to numbers.

    Examples
    --------
    >>> column = DateColumn.parse("joined=%d.%m.%Y|year", "mine.csv")
    >>> column.feature_names
    ['joined', 'joined: sine of the year', 'joined: cosine of the year']
    """

    name: str
    format: str = ISO
    """As of `datetime.datetime.strptime`, or ``"ISO8601"``. Columns that hold dates already, as
    in parquet and Excel files, need none."""
    parts: Sequence[str] = ()
    """Periods whose sine and cosine are columns too."""

    @classmethod
    def parse(cls, spec: str, source: str) -> "DateColumn":
        """Parse ``"COLUMN=FORMAT"``, optionally with ``"|year|week|day"`` or some of these."""
        name, equals, rest = str(spec).rpartition("=")
        format_, *parts = rest.split("|")
        unknown = [part for part in parts if part not in PARTS]
        if not equals or not name or unknown or not ("%" in format_ or format_ == ISO):
            raise DatasetError(
                f"{source}: date must be COLUMN=FORMAT, such as 'joined=%d.%m.%Y' or "
                f"'joined={ISO}', optionally with '|year', '|week' or '|day' after it, got {spec!r}"
            )
        return cls(name, format_, tuple(parts))

    @property
    def spec(self) -> str:
        """The string that `parsed` reads."""
        return "|".join([f"{self.name}={self.format}", *self.parts])

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of numbers."""
        return [
            self.name,
            *(f"{self.name}: {wave} of the {part}" for part in self.parts for wave in WAVES),
        ]

    def encode_days(self, days: np.ndarray) -> np.ndarray:
        """Return the numbers of dates that are days since 1970."""
        columns = [days]
        for part in self.parts:
            angle = 2 * np.pi * days / PARTS[part]
            columns += [np.sin(angle), np.cos(angle)]
        return np.column_stack(columns)


WAVES = ("sine", "cosine")


def is_dates(series: "pandas.Series") -> bool:
    """Whether a series holds dates or times already, not strings."""
    import pandas

    if pandas.api.types.is_datetime64_any_dtype(series.dtype):
        return True
    return series.dtype == object and pandas.api.types.infer_dtype(series, skipna=True) in (
        *("date", "datetime", "datetime64"),
    )


def parse_days(values: Any, format_: str = ISO) -> np.ndarray:
    """Return days since 1970, with fractions: of strings, numbers such as 20240131, and moments.

    NaN stands for a missing value, and for what is no date. Times without a zone are UTC.

    >>> parse_days(["02.01.1970 06:00", "soon"], "%d.%m.%Y %H:%M")
    array([1.25,  nan])
    """
    if str(getattr(values, "dtype", "")).startswith("datetime64"):
        stamps = np.asarray(values, dtype="datetime64[us]")
        return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / (_SECONDS_A_DAY * 1e6))
    return convert_cells(values, lambda value: (_moment(value, format_) - _EPOCH) / _DAY)


def convert_cells(values: Iterable[Any], convert: Callable[[Any], float]) -> np.ndarray:
    """Convert cells, equal strings once; NaN stands for what raises a `ValueError`."""
    number_of: dict[str, float] = {}
    numbers = []
    for value in values:
        number = number_of.get(value) if isinstance(value, str) else None
        if number is None:
            try:
                number = convert(value)
            except (ValueError, OverflowError):
                number = np.nan
            if isinstance(value, str):
                number_of[value] = number
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)


def _moment(value: Any, format_: str) -> datetime:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        value = f"{value:.15g}"  # 20240131 is a date too, and 2020.1 was 2020.10
        value = value.ljust(len(_EPOCH.strftime(format_)), "0") if "." in value else value
    if isinstance(value, str):
        value = value.strip() if "." in format_ else value.strip().removesuffix(".0")
        if value.isdecimal() and format_ != ISO and not format_.startswith("%Y"):
            value = value.zfill(len(_EPOCH.strftime(format_)))  # 1022020 was 01022020
        month = _MONTH.fullmatch(value) if format_ == ISO else None
        if month is not None:
            value = datetime(int(month[1]), int(month[2] or 1), 1)
        elif format_ == ISO:
            written = _LOOSE.sub(lambda m: f"{m[1]}-{int(m[3]):02}-{int(m[4]):02}", value, count=1)
            value = datetime.fromisoformat(written)
        else:
            value = datetime.strptime(value, format_)
    if not isinstance(value, date) or value != value:  # NaT is a date that is not equal to itself
        raise ValueError(value)
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    moment: datetime = value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment

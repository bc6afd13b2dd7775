"""Detect numbers with a unit, and date formats, among the strings of a column."""

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from kbench.tables.texts import (
    BLANKS,
    ISO,
    MARKS,
    MISSING,
    MONEY,
    UnitColumn,
    build_unsigned_pattern,
    is_number,
    parse_days,
    split_number,
)

# Maximum share of different nonzero values without the unit of the others.
PLAIN_SHARE = 0.1

# Maximum number of different strings that count as units.
MAX_UNITS = 6

# Number of different values after which the scan of a column of mostly other strings stops.
TRIED = 200


class UnitScan:
    """Detects numbers with a unit among the strings of a column.

    An ambiguous number is read with the file's `decimal` mark.

    >>> scan = UnitScan()
    >>> scan.add(["1.200,50 \u20ac", "7 \u20ac"])
    >>> scan.column("price").spec
    'price=\u20ac|,.'
    """

    def __init__(self, decimal: str = ".") -> None:
        other = "," if decimal == "." else "."
        self._marks = [(d, t) for d in (decimal, other) for t in MARKS if t != d]
        self._units: Counter[str] = Counter()
        self._example: dict[str, str] = {}
        self.n_odd = self.n_numbers = 0
        self.odd = ""
        self._is_given_up = self._is_dressed = self.has_missing = False

    def add(self, texts: Iterable[object]) -> None:
        """Add different values."""
        for value in texts:
            if self._is_given_up:
                return
            self._add(str(value).strip())

    def _add(self, value: str) -> None:
        if value in MISSING:
            self.has_missing = True
            return
        parts = split_number(value)
        marks = [] if parts is None else self._fitting(parts.body)
        if parts is None or not marks:
            self.n_odd += 1
            self.odd = self.odd or value
            self._is_given_up = self.n_odd > max(TRIED, self.n_numbers)
            return
        self._marks = marks
        self.n_numbers += 1
        if parts.unit or parts.body.strip("0.,"):  # a zero needs no unit
            self._units[parts.unit] += 1
            self._example.setdefault(parts.unit, value)
        self._is_dressed = self._is_dressed or bool(parts.unit) or not is_number(value)
        self._is_given_up = len(self._units) > TRIED

    def _fitting(self, body: str) -> list[tuple[str, str]]:
        """Return the decimal marks with which this and all previous values are numbers."""
        return [marks for marks in self._marks if build_unsigned_pattern(*marks).fullmatch(body)]

    def column(self, name: str) -> UnitColumn | None:
        """Return the format of all numbers; None for plain numbers and other strings."""
        if self._is_given_up or self.n_odd or not self._is_dressed or self.advice():
            return None
        if len(self._units) - ("" in self._units) > 1:
            return None
        unit = self.unit
        decimal, thousands = self._marks[0]
        other = "," if decimal == "." else "."
        # whether all marks could be thousands separators, and there are some
        is_three = (other, decimal) in self._marks and (other, "") not in self._marks
        if not thousands and MONEY.fullmatch(unit) and is_three:
            decimal, thousands = other, decimal  # amounts of money have no three decimals
        return UnitColumn(name, unit, decimal, thousands)

    @property
    def unit(self) -> str:
        """The most frequent unit."""
        return next((each for each, _ in self._units.most_common() if each), "")

    def is_nearly(self, least: int) -> bool:
        """Whether more than `least` numbers have one unit, and a few strings are no numbers."""
        is_few = self.n_numbers > least and 0 < self.n_odd < self.n_numbers / 4
        return is_few and bool(self.unit) and not self.advice()

    def advice(self) -> str:
        """Return advice if the values have several units, else an empty string."""
        if self._is_given_up and len(self._units) <= TRIED:
            return ""
        units = [each for each, _ in self._units.most_common() if each]
        n_plain, n_all = self._units[""], sum(self._units.values())
        is_mixed = 1 < len(units) <= MAX_UNITS  # more are codes such as seats
        if len(units) == 1 and n_plain:
            is_mixed = units[0] == "%" or n_plain > PLAIN_SHARE * n_all
        if not is_mixed or self.n_odd > self.n_numbers:
            return ""
        shown = [repr(self._example[each][:20]) for each in [*units, ""] if each in self._example]
        return f"numbers with several units, such as {shown[0]} and {shown[1]}: use one unit"


def sentence(column: UnitColumn) -> str:
    """Describe how the strings of a column are parsed."""
    parts = [f"`{column.unit}` left out"] if column.unit else []
    if column.unit == "%":
        parts.append("45 % is 45")
    if column.decimal != ".":
        parts.append(f"`{column.decimal}` as the decimal mark")
    if column.thousands:
        mark = "a blank" if column.thousands in BLANKS else f"`{column.thousands}`"
        parts.append(f"{mark} between thousands")
    return ", ".join(parts) or "brackets or a minus sign at the end mean negative"


# Maximum numbers of strings and of formats to compare if dates may have several formats.
MAX_MIXED, MAX_FORMATS = 1000, 4

# Formats that pandas does not detect.
_SHORT_YEARS = [
    day + time
    for day in ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y")
    for time in ("", " %H:%M", " %H:%M:%S")
]


def guess_formats(values: Sequence[str]) -> list[str]:
    """Return the date formats that a few strings match, day first before month first."""
    from pandas.tseries.api import guess_datetime_format

    forms: list[str] = []
    for value in values:
        if len(value) > 40 or len(re.findall(r"\d", value)) < 4:
            return []
        guesses: list[str | None] = [ISO] if re.match(r"\d{4}-\d{2}", value) else []
        with warnings.catch_warnings(action="ignore"):  # a format that does not fit is skipped
            guesses += [guess_datetime_format(value, dayfirst=first) for first in (True, False)]
        guesses += _SHORT_YEARS
        forms += [guess for guess in guesses if guess and _is_usual(guess) and guess not in forms]
    return [each for each in forms if not np.isnan(parse_days(values, each)).any()]


def several_formats(values: Iterable[str]) -> list[tuple[str, str]]:
    """Return the date formats of a column, each with an example; empty if it has no dates.

    >>> several_formats(["2024-03-31", "31.03.2024", "2024-04-01"])
    [('ISO8601', '2024-03-31'), ('%d.%m.%Y', '31.03.2024')]
    """
    formats: list[tuple[str, str]] = []
    rest = [value.strip() for value in itertools.islice(values, MAX_MIXED)]
    while rest and len(formats) < MAX_FORMATS:
        forms = guess_formats(rest[:1])
        if not forms:
            return []
        formats.append((forms[0], rest[0]))
        rest = [each for each in rest if np.isnan(parse_days([each], forms[0])[0])]
    return [] if rest else formats


def _is_usual(format_: str) -> bool:
    """Whether a format has a day or month and a year, in a usual order."""
    if format_ == ISO:
        return True
    has_month = any(sign in format_ for sign in ("%m", "%b", "%B"))
    odd = format_.startswith("%m.%d") or re.match("%Y.%d.%m", format_)
    return has_month and ("%Y" in format_ or "%y" in format_) and not odd

"""Numbers with signs around them: `$1,200`, `45 %`, `20 °C`, `(1 200)`.

All values of a column have one unit, which is left out: 45 % is 45. This module leaves with
an exported model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from kbench.errors import DatasetError

BLANKS = " \u00a0\u2009\u202f"
"""Blanks that may stand between groups of three digits; a thousands mark " " is any of them."""

MISSING = (
    *("", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "None"),
    *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Texts that mean a missing value, unless they are a known category."""

_CURRENCY = "$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20ba\u20aa\u0e3f\u20ab\u20b4\u20b1\u00a2"
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
"""Signs between groups of three digits."""


@cache
def unsigned(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of numbers without a sign, with groups of exactly three digits.

    >>> bool(unsigned(",", ".").fullmatch("1.234,5")), bool(unsigned(".", "").fullmatch("1,5"))
    (True, False)
    """
    whole = r"\d+"
    if thousands:
        group = f"[{BLANKS}]" if thousands in BLANKS else re.escape(thousands)
        group = "['\u2019]" if thousands == "'" else group
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)"
    mark = re.escape(decimal)
    return re.compile(rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?")


def plain(text: str, decimal: str, thousands: str) -> str:
    """Return a number as Python writes it."""
    for mark in {" ": BLANKS, "'": "'\u2019"}.get(thousands, thousands):
        text = text.replace(mark, "")
    return text.replace(decimal, ".")


@dataclass(frozen=True)
class Parts:
    """A text that may be a number: its sign, its digits and marks, and what is around them."""

    is_negative: bool
    body: str
    unit: str


def parts_of(text: str) -> Parts | None:
    """Divide a text that may be a number; None for other texts.

    Brackets around a number are a minus, as accountants write it.

    >>> parts_of("($1,200)"), parts_of("18-25")
    (Parts(is_negative=True, body='1,200', unit='$'), None)
    """
    text = text.strip()
    in_brackets = text.startswith("(") and text.endswith(")")
    found = _FORM.fullmatch(text[1:-1].strip() if in_brackets else text)
    if found is None:
        return None
    signs = found["sign"] + found["sign2"] + found["sign3"]
    if len(signs) > 1 or (in_brackets and signs):
        return None
    unit = " ".join(part.strip() for part in (found["before"], found["after"]) if part)
    return Parts(in_brackets or signs in ("-", "\u2212"), found["body"], unit)


@dataclass(frozen=True)
class UnitColumn:
    """How the numbers of a column are written, that have a unit around them.

    Examples
    --------
    >>> column = UnitColumn.parsed("price=$|.,", "mine.csv")
    >>> column.number("$1,200.50"), column.number("-$3"), column.number("(7)")
    (1200.5, -3.0, -7.0)
    """

    name: str
    """The column."""
    unit: str = ""
    """What is left out; empty where numbers have brackets or marks of thousands only."""
    decimal: str = "."
    thousands: str = ""
    """Decimal mark, and the sign between groups of three digits."""

    @classmethod
    def parsed(cls, spec: str, what: str) -> UnitColumn:
        """Parse ``"COLUMN=UNIT"``, perhaps with ``"|"``, a decimal and a thousands mark."""
        name, equals, rest = str(spec).rpartition("=")
        unit, _, marks = rest.partition("|")
        decimal, thousands = (marks or ".")[0], marks[1:]
        if not equals or not name or decimal not in ".," or thousands not in MARKS:
            raise DatasetError(
                f"{what}: unit must be COLUMN=UNIT, such as 'price=$', perhaps with '|' and the "
                f"marks of decimals and thousands after it, 'price=\u20ac|,.', got {spec!r}"
            )
        return cls(name, unit, decimal, thousands)

    @property
    def spec(self) -> str:
        """The text that `parsed` reads."""
        marks = self.decimal + self.thousands
        return f"{self.name}={self.unit}" + (f"|{marks}" if marks != "." else "")

    def number(self, text: str) -> float:
        """Return the number of a text with the unit or none; `ValueError` for others."""
        parts = parts_of(text)
        if parts is None or parts.unit not in ("", self.unit):
            raise ValueError(text)
        if not unsigned(self.decimal, self.thousands).fullmatch(parts.body):
            raise ValueError(text)
        value = float(plain(parts.body, self.decimal, self.thousands))
        return -value if parts.is_negative else value

    def sentence(self) -> str:
        """Say what is left out."""
        parts = [f"`{self.unit}` left out"] if self.unit else []
        if self.unit == "%":
            parts.append("45 % is 45")
        if self.decimal != ".":
            parts.append(f"`{self.decimal}` as the decimal mark")
        if self.thousands:
            mark = "a blank" if self.thousands in BLANKS else f"`{self.thousands}`"
            parts.append(f"{mark} between thousands")
        return ", ".join(parts) or "brackets or a sign at the end are a minus"

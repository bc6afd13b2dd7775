"""Formats of the dates in a column of texts."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable, Sequence

from kbench.tables.texts import ISO

MOST_MIXED, MOST_FORMATS = 1000, 4
"""Different texts that are looked at where dates may have several formats, and these formats."""

_SHORT_YEARS = [
    day + time
    for day in ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y")
    for time in ("", " %H:%M", " %H:%M:%S")
]
"""Formats that pandas does not guess."""


def formats_of(values: Sequence[str]) -> list[str]:
    """Return the formats that a few texts may be dates in, day first before month first."""
    import pandas
    from pandas.tseries.api import guess_datetime_format

    found: list[str] = []
    for text in values:
        if len(text) > 40 or len(re.findall(r"\d", text)) < 4:
            return []
        guesses: list[str | None] = [ISO] if re.match(r"\d{4}-\d{2}", text) else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a guess that does not fit is no problem
            guesses += [guess_datetime_format(text, dayfirst=first) for first in (True, False)]
        guesses += _SHORT_YEARS
        found += [guess for guess in guesses if guess and _is_usual(guess) and guess not in found]
    several = pandas.Series(list(values))
    return [
        each
        for each in found
        if pandas.to_datetime(several, utc=True, errors="coerce", format=each).notna().all()
    ]


def several_formats(values: Iterable[str]) -> list[tuple[str, str]]:
    """Return the formats that a column of dates mixes, each with a date; empty if it has no dates.

    >>> several_formats(["2024-03-31", "31.03.2024", "2024-04-01"])
    [('ISO8601', '2024-03-31'), ('%d.%m.%Y', '31.03.2024')]
    """
    import pandas

    found: list[tuple[str, str]] = []
    left = pandas.Series([value.strip() for value in itertools.islice(values, MOST_MIXED)])
    while len(left) and len(found) < MOST_FORMATS:
        forms = formats_of([str(left.iloc[0])])
        if not forms:
            return []
        found.append((forms[0], str(left.iloc[0])))
        read = pandas.to_datetime(left, utc=True, errors="coerce", format=forms[0])
        left = left[read.isna()]
    return [] if len(left) else found


def _is_usual(format_: str) -> bool:
    """Whether a format has a day or month and a year, in an order that is in use."""
    if format_ == ISO:
        return True
    has_month = any(sign in format_ for sign in ("%m", "%b", "%B"))
    odd = format_.startswith("%m.%d") or re.match("%Y.%d.%m", format_)
    return has_month and ("%Y" in format_ or "%y" in format_) and not odd

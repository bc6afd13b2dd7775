"""Dates as numbers: days since 1970, and the place in the year, the week and the day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.errors import DatasetError

PARTS = {"year": 365.2425, "week": 7.0, "day": 1.0}
"""Periods in days of which the sine and the cosine may be columns."""

ISO = "ISO8601"
"""The format of all dates and times of ISO 8601."""

_SECONDS_A_DAY = 86_400.0


@dataclass(frozen=True)
class DateColumn:
    """How the dates of a column become numbers.

    Examples
    --------
    >>> column = DateColumn.parsed("joined=%d.%m.%Y|year", "mine.csv")
    >>> column.feature_names
    ['joined', 'joined: sine of the year', 'joined: cosine of the year']
    """

    name: str
    """The column."""
    format: str = ISO
    """As of `datetime.datetime.strptime`, or ``"ISO8601"``. Columns that hold dates already, as
    in parquet and Excel files, need none."""
    parts: Sequence[str] = ()
    """Periods whose sine and cosine are columns too."""

    @classmethod
    def parsed(cls, spec: str, what: str) -> DateColumn:
        """Parse ``"COLUMN=FORMAT"``, perhaps with ``"|year|week|day"`` or some of these."""
        name, equals, rest = str(spec).rpartition("=")
        format_, *parts = rest.split("|")
        unknown = [part for part in parts if part not in PARTS]
        if not equals or not name or unknown or not ("%" in format_ or format_ == ISO):
            raise DatasetError(
                f"{what}: date must be COLUMN=FORMAT, such as 'joined=%d.%m.%Y' or "
                f"'joined={ISO}', perhaps with '|year', '|week' or '|day' after it, got {spec!r}"
            )
        return cls(name, format_, tuple(parts))

    @property
    def spec(self) -> str:
        """The text that `parsed` reads."""
        return "|".join([f"{self.name}={self.format}", *self.parts])

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of numbers."""
        return [
            self.name,
            *(f"{self.name}: {wave} of the {part}" for part in self.parts for wave in WAVES),
        ]

    @classmethod
    def of_features(cls, name: str, names: Sequence[str], format_: str = ISO) -> DateColumn:
        """Return the column whose features begin a list of names."""
        parts = [part for part in PARTS if f"{name}: sine of the {part}" in names]
        return cls(name, format_, tuple(parts))

    def encode(self, series: Any) -> np.ndarray:
        """Return the numbers of dates, NaN where they are missing or not dates."""
        return self.of_days(days_of(moments(series, self.format)))

    def of_days(self, days: np.ndarray) -> np.ndarray:
        """Return the numbers of dates that are days since 1970."""
        columns = [days]
        for part in self.parts:
            angle = 2 * np.pi * days / PARTS[part]
            columns += [np.sin(angle), np.cos(angle)]
        return np.column_stack(columns)


WAVES = ("sine", "cosine")


def is_dates(series: Any) -> bool:
    """Whether a series holds dates or times already, not texts."""
    import pandas

    if pandas.api.types.is_datetime64_any_dtype(series.dtype):
        return True
    return series.dtype == object and pandas.api.types.infer_dtype(series, skipna=True) in (
        *("date", "datetime", "datetime64"),
    )


def moments(series: Any, format_: str) -> Any:
    """Return the moments of a series, NaT where there is none; times without a zone are UTC."""
    import pandas

    if is_dates(series) or not len(series):
        return pandas.to_datetime(series, utc=True, errors="coerce")
    if pandas.api.types.is_numeric_dtype(series.dtype):
        series = as_texts(series)
    text = series.astype(object).where(series.notna(), None)
    return pandas.to_datetime(text, utc=True, errors="coerce", format=format_)


def as_texts(series: Any) -> Any:
    """Return numbers as texts, whole ones without a fraction: 20240131 is a date too."""
    texts = series.astype(object).map(lambda value: f"{value:.15g}", na_action="ignore")
    return texts.where(series.notna(), None)


def days_of(when: Any) -> np.ndarray:
    """Return days since 1970, with fractions."""
    naive = when.dt.tz_localize(None) if when.dt.tz is not None else when
    values = naive.to_numpy().astype("datetime64[us]")
    days: np.ndarray = values.astype(np.int64) / (_SECONDS_A_DAY * 1e6)
    return np.where(np.isnat(values), np.nan, days)

"""Dates as numbers."""

import datetime

import numpy as np
import pandas
import pytest

from kbench import DatasetError
from kbench.tables.dates import DateColumn, formats_of

DAYS = pandas.date_range("2020-01-01", periods=30, freq="11D")


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("%Y-%m-%d", "ISO8601"),
        ("%Y-%m-%d %H:%M:%S", "ISO8601"),
        ("%Y-%m-%dT%H:%M:%SZ", "ISO8601"),
        ("%d.%m.%Y", "%d.%m.%Y"),
        ("%d.%m.%y %H:%M", "%d.%m.%y %H:%M"),
        ("%d/%m/%Y", "%d/%m/%Y"),
        ("%m/%d/%Y", "%m/%d/%Y"),
        ("%Y/%m/%d", "%Y/%m/%d"),
        ("%b %d, %Y", "%b %d, %Y"),
    ],
)
def test_formats_are_found_and_days_counted_from_1970(form, first):
    texts = list(DAYS.strftime(form))
    assert formats_of(texts)[0] == first
    encoded = DateColumn("d", first).encode(pandas.Series([*texts, None]))
    expected = (DAYS - pandas.Timestamp("1970-01-01")).days
    np.testing.assert_array_equal(encoded[:-1, 0], expected)
    assert np.isnan(encoded[-1, 0])


def test_day_and_month_may_stand_for_each_other():
    assert formats_of(["01/02/2020", "03/04/2020"]) == ["%d/%m/%Y", "%m/%d/%Y"]
    assert formats_of(["01.02.2020"]) == ["%d.%m.%Y"]


@pytest.mark.parametrize("text", ["1.5", "12:30", "abc1234", "v2024.1", "10-20", "May", "20/30/40"])
def test_other_texts_are_not_dates(text):
    assert formats_of([text]) == []


def test_dates_and_numbers_are_encoded_like_texts():
    texts = pandas.Series(DAYS.strftime("%Y-%m-%d"))
    expected = DateColumn("d", parts=("year", "week")).encode(texts)
    for values in (
        pandas.Series(DAYS),
        pandas.Series(DAYS.tz_localize("UTC")),
        pandas.Series([datetime.date(d.year, d.month, d.day) for d in DAYS]),
    ):
        column = DateColumn("d", parts=("year", "week"))
        np.testing.assert_array_equal(column.encode(values), expected)
    plain = pandas.Series(DAYS.strftime("%Y%m%d").astype(float))
    np.testing.assert_array_equal(DateColumn("d", "%Y%m%d").encode(plain)[:, 0], expected[:, 0])


def test_the_place_in_a_week_repeats_after_seven_days():
    days = pandas.Series(pandas.date_range("2021-03-01", periods=15))
    encoded = DateColumn("d", parts=("week",)).encode(days)
    assert encoded.shape == (15, 3)
    np.testing.assert_allclose(encoded[:7, 1:], encoded[7:14, 1:], atol=1e-9)


def test_a_specification_is_written_as_it_is_parsed():
    for spec in ("joined=%d.%m.%Y", "a=b=ISO8601|year|week|day"):
        assert DateColumn.parsed(spec, "x").spec == spec
    for spec in ("joined", "=%Y", "joined=today", "joined=%Y|month"):
        with pytest.raises(DatasetError, match="date must be COLUMN=FORMAT"):
            DateColumn.parsed(spec, "x")

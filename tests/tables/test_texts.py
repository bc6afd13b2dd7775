"""Texts of tables as numbers: dates and units."""

import datetime

import numpy as np
import pandas
import pytest

from kbench import DatasetError
from kbench.tables.texts import DateColumn, UnitColumn, parse_days

DAYS = pandas.date_range("2020-01-01", periods=30, freq="11D")


def test_dates_and_numbers_are_encoded_like_texts():
    texts = pandas.Series(DAYS.strftime("%Y-%m-%d"))
    expected = parse_days(texts)
    for values in (
        pandas.Series(DAYS),
        pandas.Series(DAYS.tz_localize("UTC")),
        pandas.Series([datetime.date(d.year, d.month, d.day) for d in DAYS]),
    ):
        np.testing.assert_array_equal(parse_days(values), expected)
    plain = pandas.Series(DAYS.strftime("%Y%m%d").astype(float))
    np.testing.assert_array_equal(parse_days(plain, "%Y%m%d"), expected)
    np.testing.assert_array_equal(parse_days(plain.astype(str), "%Y%m%d"), expected)


@pytest.mark.parametrize("format_", ["%d%m%Y", "%m%d%y", "%Y.%m", "%Y%m%d"])
def test_dates_that_were_read_as_numbers_keep_their_zeros(format_):
    texts = pandas.Series(DAYS.strftime(format_))
    expected = parse_days(texts, format_)
    assert not np.isnan(expected).any()
    numbers = pandas.to_numeric(texts)
    np.testing.assert_array_equal(parse_days(numbers, format_), expected)
    if "." not in format_:
        np.testing.assert_array_equal(parse_days(numbers.astype(str), format_), expected)


def test_the_place_in_a_week_repeats_after_seven_days():
    encoded = DateColumn("d", parts=("week",)).encode_days(np.arange(15.0))
    assert encoded.shape == (15, 3)
    np.testing.assert_allclose(encoded[:7, 1:], encoded[7:14, 1:], atol=1e-9)


def test_a_specification_is_written_as_it_is_parsed():
    for spec in ("joined=%d.%m.%Y", "a=b=ISO8601|year|week|day"):
        assert DateColumn.parse(spec, "x").spec == spec
    for spec in ("joined", "=%Y", "joined=today", "joined=%Y|month"):
        with pytest.raises(DatasetError, match="date must be COLUMN=FORMAT"):
            DateColumn.parse(spec, "x")


@pytest.mark.parametrize("spec", ["price", "=$", "price=$|;", "price=$|.."[:-1] + "_"])
def test_a_wrong_spec_is_refused(spec):
    with pytest.raises(DatasetError, match="unit must be COLUMN=UNIT"):
        UnitColumn.parse(spec, "t")

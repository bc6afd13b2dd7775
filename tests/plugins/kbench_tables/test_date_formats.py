"""Formats of dates are found."""

import numpy as np
import pandas
import pytest

from kbench.tables.texts import DateColumn
from kbench_tables.text_scan import formats_of

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

"""Numbers with a unit, and dates, among the texts of a column."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbench.tables.texts import UnitColumn, parse_days, split_number
from kbench_tables.text_scan import UnitScan, guess_formats

WRITTEN = {
    "dollars": lambda v: f"${v:,.2f}" if v >= 0 else f"-${-v:,.2f}",
    "brackets": lambda v: f"${v:,.2f}" if v >= 0 else f"(${-v:,.2f})",
    "euros": lambda v: f"{v:,.2f} €".translate(str.maketrans(",.", ".,")),
    "old euros": lambda v: f"{v:,.2f} ¤".translate(str.maketrans(",.", ".,")),
    "francs": lambda v: f"CHF {v:,.2f}".replace(",", "'"),
    "kronor": lambda v: f"{v:,.2f} kr".replace(",", "\u00a0").replace(".", ","),
    "share": lambda v: f"{v:.2f}%",
    "degrees": lambda v: f"{v:.2f} °C",
    "minus sign": lambda v: f"{v:.2f} kg".replace("-", "\u2212"),
    "minus at the end": lambda v: f"{abs(v):,.2f}" + "-" * (v < 0),
}


@pytest.mark.parametrize("form", WRITTEN)
@given(st.lists(st.integers(-(10**11), 10**11).map(lambda n: n / 100), min_size=1, max_size=30))
def test_numbers_are_read_as_they_were_written(form, values):
    # one of each kind makes the marks certain
    values = [*values, 1_234_567.89, -0.25]
    texts = [WRITTEN[form](value) for value in values]
    scan = UnitScan()
    scan.add(texts)
    column = scan.column("c")
    assert UnitColumn.parse(column.spec, "t") == column
    assert [column.number(text) for text in texts] == values


@pytest.mark.parametrize(
    "texts",
    [
        ["1 kg", "2 g"],
        ["45%", "0.4"],
        ["$5", "€5"],
        ["1 kg", "2", "3", "4"],
        ["18-25", "26-35"],
        ["1.2.3", "1.2.4"],
        ["12:30", "13:45"],
        ["2019Q1", "2019Q2"],
        ["$5", "unknown"],
        ["1", "2.5"],
        ["a", "b"],
        ["1,5 €", "1.5 €"],
        ["(5", "6)"],
        ["--5 kg", "6 kg"],
        ["(-5 kg)", "6 kg"],
        [],
    ],
)
def test_other_columns_are_none_of_numbers(texts):
    scan = UnitScan()
    scan.add(texts)
    assert scan.column("c") is None


def test_mixed_units_are_named():
    scan = UnitScan()
    scan.add(["1 kg", "2 g"])
    assert scan.advice() == "numbers with several units, such as '1 kg' and '2 g': use one unit"


@pytest.mark.parametrize(
    ("decimal", "texts", "value"),
    [
        (".", ["1,200 kg"], 1200.0),
        (",", ["1,200 kg"], 1.2),
        (".", ["1.200 €"], 1200.0),  # money has no three decimals
        (".", ["1.200 €", "1.5 €"], 1.2),
    ],
)
def test_of_two_readings_the_decimal_mark_of_the_file_decides(decimal, texts, value):
    scan = UnitScan(decimal)
    scan.add(texts)
    assert scan.column("c").number(texts[0]) == value


def test_a_few_other_texts_are_told_from_many():
    scan = UnitScan()
    scan.add([f"${n}" for n in range(30)])
    assert not scan.is_nearly(20)
    scan.add(["unknown"])
    assert scan.is_nearly(20)
    assert scan.odd == "unknown"


@given(st.text(max_size=30))
def test_any_text_is_divided_or_refused(text):
    parts = split_number(text)
    scan = UnitScan()
    scan.add([text])
    column = scan.column("c")
    if column is not None:
        assert np.isfinite(column.number(text)) or "e" in parts.body.lower()
        assert not set("=|\n`<>") & set(column.unit)


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
    assert guess_formats(texts)[0] == first
    expected = (DAYS - pandas.Timestamp("1970-01-01")).days
    np.testing.assert_array_equal(parse_days([*texts, None], first), [*expected, np.nan])


def test_day_and_month_may_stand_for_each_other():
    assert guess_formats(["01/02/2020", "03/04/2020"]) == ["%d/%m/%Y", "%m/%d/%Y"]
    assert guess_formats(["01.02.2020"]) == ["%d.%m.%Y"]


@pytest.mark.parametrize("text", ["1.5", "12:30", "abc1234", "v2024.1", "10-20", "May", "20/30/40"])
def test_other_texts_are_not_dates(text):
    assert guess_formats([text]) == []

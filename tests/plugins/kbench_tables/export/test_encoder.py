"""Cells become numbers, in training and without pandas."""

import datetime as dt
import math

import numpy as np
import pandas
import pytest

from kbench.tables.cell_values import Categories, TableColumns, Texts, dates, numbers
from kbench.tables.texts import DateColumn, parse_days
from kbench_files._files import load_csv
from kbench_files._text_blocks import TextBlocks
from kbench_tables.export.encoder import split_columns

PLAIN = Texts()
EUROPEAN = Texts(decimal=",", thousands=".")


@pytest.mark.parametrize(
    ("texts", "text", "number"),
    [
        (PLAIN, " 1.5 ", 1.5),
        (PLAIN, "-1e3", -1000.0),
        (PLAIN, "", math.nan),
        (PLAIN, "n/a", math.nan),
        (Texts(na_values=("unknown",)), "unknown", math.nan),
        (EUROPEAN, "1.234.567,5", 1234567.5),
        (EUROPEAN, "12,5", 12.5),
        (Texts(thousands=" "), "1\u202f234.5", 1234.5),
        (Texts(thousands="'"), "1'234", 1234.0),
    ],
)
def test_texts_are_read_in_their_dialect(texts, text, number):
    np.testing.assert_equal(texts.number(text), number)


def test_a_given_mark_that_is_a_number_is_missing():
    marks = Texts(na_values=("-999", "inf"))
    read = numbers(["1.5", "-999", " inf ", "2"], "x", marks)
    np.testing.assert_array_equal(read, [1.5, np.nan, np.nan, 2.0])


@pytest.mark.parametrize("mark", ["-999", "-999.0"])
@pytest.mark.parametrize("cells", [["-999.0", "-999", "7"], np.array([-999, -999.0, 7])])
def test_a_given_mark_is_missing_however_its_number_is_written(mark, cells):
    marks = Texts(na_values=(mark,))
    np.testing.assert_array_equal(numbers(cells, "x", marks), [np.nan, np.nan, 7.0])
    np.testing.assert_array_equal(Categories(["7", "8"], marks)(cells), [np.nan, np.nan, 0.0])
    assert Categories(["7", "-999.00"], marks)([" -999.00 "]) == [1.0]


def test_a_given_mark_that_is_a_date_is_missing():
    cells = ["01.01.1900", "02.01.1970", " unknown ", dt.date(1900, 1, 1)]
    marks = Texts(na_values=("01.01.1900", "unknown"))
    days = dates(cells, DateColumn("day", "%d.%m.%Y"), marks)
    np.testing.assert_array_equal(days[:, 0], [np.nan, 1.0, np.nan, np.nan])


def test_a_table_without_rows_is_encoded():
    encoder = TableColumns([("x", None), ("c", ["a", "b"]), ("day", None)], dates=["day=%Y|year"])
    assert encoder.encode({"x": [], "c": [], "day": []}).shape == (0, 6)


def test_marks_are_missing_in_new_rows_as_in_training(tmp_path):
    rows = [f"{i}.5,{i % 3}-0{1 + i % 9},2024-01-{1 + i:02},{'ab'[i % 2]}" for i in range(20)]
    rows[3:5] = ["-999.0,1-04,1900-01-01,a", "-9.99e2,0-02,2024-01-05,b"]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["x,code,day,y", *rows]))
    marks = ["-999", "1900-01-01"]
    dataset = load_csv(str(file), "y", date_formats=["day=ISO8601"], na_values=marks)
    assert np.isnan(dataset.X).sum() == 3
    new = dataset.encoder.encode(next(iter(TextBlocks(file))))
    np.testing.assert_array_equal(new, dataset.X)


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (PLAIN, "1_000"),
        (PLAIN, "1,5"),
        (PLAIN, "ten"),
        (EUROPEAN, "1.5"),  # not 15
        (EUROPEAN, "1.5000,2"),
        (Texts(decimal=","), "1.5"),
    ],
)
def test_a_number_of_another_dialect_is_not_guessed(texts, text):
    with pytest.raises(ValueError, match=r"column 'x' must be numbers.*in row 2"):
        numbers(["1", text], "x", texts)


@pytest.mark.parametrize(
    "values",
    [
        ["1", "", "3"],
        [1, None, 3.0],
        pandas.Series([1, None, 3], dtype="Int64").to_numpy(),
        pandas.Series([1, None, 3], dtype="float32").to_numpy(),
        np.array([1.0, np.nan, 3.0]),
        [True, pandas.NA, 3],
    ],
)
def test_numbers_may_be_of_any_type(values):
    np.testing.assert_array_equal(numbers(values, "x", PLAIN), [1.0, np.nan, 3.0])


def test_another_spelling_of_nan_is_no_number_whatever_the_other_rows_are():
    for others in (["1"], ["NA"]):
        with pytest.raises(ValueError, match="'x' must be numbers, got 'NAN' in row 2"):
            numbers([*others, "NAN"], "x", PLAIN)


def test_numbers_must_be_finite():
    with pytest.raises(ValueError, match="'x' must be finite numbers, got inf in row 2"):
        numbers(["1", "inf"], "x", PLAIN)


MOMENT = pandas.Timestamp("2024-03-01 18:00")


@pytest.mark.parametrize(
    ("values", "format_"),
    [
        (["2024-03-01T18:00:00Z", ""], "ISO8601"),
        (["2024-03-01 20:00+02:00", "?"], "ISO8601"),
        (["01.03.2024 18:00", None], "%d.%m.%Y %H:%M"),
        ([dt.datetime(2024, 3, 1, 18), None], "%d.%m.%Y"),
        (np.array(["2024-03-01T18:00", "NaT"], "datetime64[ns]"), "ISO8601"),
        (pandas.Series([MOMENT, pandas.NaT]).dt.tz_localize("UTC").to_numpy(), "ISO8601"),
        (pandas.Series([MOMENT, pandas.NaT]).astype(object).to_numpy(), "ISO8601"),
    ],
)
def test_dates_may_be_texts_or_moments(values, format_):
    column = DateColumn("joined", format_, ("year",))
    found = dates(values, column, PLAIN)
    expected = column.encode_days(np.array([19783.75, np.nan]))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "text",
    (
        *("2024", "2024-03", "2024-03-01", "20240301", "2024-03-01T05"),
        *("2024/03/01", "2024.3.1", "2024 03 01", "2024-3-1 05:06", "2024/3/01T05:06:07Z"),
    ),
)
def test_dates_of_iso_8601_are_those_of_pandas(text):
    moment = pandas.to_datetime([text], format="ISO8601")
    np.testing.assert_array_equal(parse_days([text]), parse_days(moment))


def test_what_is_not_a_date_is_named_with_its_row():
    with pytest.raises(ValueError, match=r"must be dates written as %d\.%m\.%Y: 'soon' in row 2"):
        dates(["01.02.2024", "soon"], DateColumn("joined", "%d.%m.%Y"), PLAIN)


@pytest.mark.parametrize(
    ("known", "values", "codes"),
    [
        (["Oslo", "Rome"], ["Rome", " Oslo ", "Bergen", "", None], [1, 0, -1, np.nan, np.nan]),
        (["1", "2"], ["2", "2.0", 2, 2.0, 3, "x"], [1, 1, 1, 1, -1, -1]),
        (["01", "1"], ["01", "1", "001"], [0, 1, -1]),  # texts that only look like numbers
        (["False", "True"], [True, 0, "1", np.True_, "no"], [1, 0, 1, 1, -1]),
        (["0.0", "1.0"], [True, False, "true"], [1, 0, 1]),
        (["false", "true"], [True, 0, "TRUE", "no"], [1, 0, 1, -1]),
        (["NA", "DE"], ["NA", "DE", "null"], [0, 1, np.nan]),  # Namibia, where it is known
        (["", "b"], ["", "b", None], [0, 1, np.nan]),  # of a file with types
    ],
)
def test_categories_are_found_by_text_number_or_truth(known, values, codes):
    find = Categories(known, PLAIN)
    np.testing.assert_array_equal(find(values), codes)
    np.testing.assert_array_equal(find(pandas.Series(values, dtype=object)), codes)


def test_rows_columns_and_frames_are_tables():
    expected = {"a": [1, 3], "b": [2, None]}
    assert split_columns([{"a": 1, "b": 2}, {"a": 3}]) == expected
    assert split_columns(expected) == expected
    assert split_columns({"a": 1, "b": "two"}) == {"a": [1], "b": ["two"]}
    frame = split_columns(pandas.DataFrame(expected))
    assert frame["a"].tolist() == [1, 3]
    assert split_columns(np.zeros((2, 2))) is None
    with pytest.raises(ValueError, match="several columns of the table are named 'a'"):
        split_columns(pandas.DataFrame([[1, 2]], columns=["a", "a"]))

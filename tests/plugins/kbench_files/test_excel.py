"""Excel files."""

import datetime

import numpy as np
import pandas
import pytest

from kbench import DatasetError
from kbench_files._files import load_csv, load_excel
from kbench_files._typed import excel_rows

pytest.importorskip("openpyxl", reason="the extra excel is not installed")

N = 30


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pandas.DataFrame(
        {
            " a ": np.arange(N) + 0.25,
            "b": ["x ", None, "z"] * 10,
            "text numbers": [f"{i}.5" for i in range(N)],
            "day": [datetime.datetime(2024, 1, 1 + i) for i in range(N)],
            "y": ["no", "yes"] * 15,
        }
    )
    with pandas.ExcelWriter("mine.xlsx") as writer:
        frame.to_excel(writer, sheet_name="first", index=False)
        frame.head(20).to_excel(writer, sheet_name="other", index=False)
    return frame


def test_sheets_are_read_as_tables(table):
    data = load_excel("mine.xlsx", "y", date_formats=["day=ISO8601"])
    assert data.feature_names == ("a", "b=x", "b=z", "text numbers", "day")
    np.testing.assert_array_equal(data.X[:, 0], table[" a "])
    np.testing.assert_array_equal(data.X[:, 3], table["text numbers"].astype(float))
    assert data.X[0, 4] == 19723
    assert np.isnan(data.X[1, 1:3]).all()
    assert load_excel("mine.xlsx", "y", sheet="other", drop=["day"]).X.shape == (20, 4)


def test_what_cannot_be_read_is_one_message(table, tmp_path):
    with pytest.raises(DatasetError, match="did you mean 'other'"):
        load_excel("mine.xlsx", "y", sheet="othr")
    (tmp_path / "text.xlsx").write_text("a,b\n")
    with pytest.raises(DatasetError, match="cannot be read as an Excel file"):
        load_excel("text.xlsx", "y")
    table.to_excel("index.xlsx")
    with pytest.raises(DatasetError, match="column 1 has no name"):
        excel_rows("index.xlsx")
    message = r"sheet 'first' \(`sheet` reads another one: 'other'\): there is no column 'z'"
    with pytest.raises(DatasetError, match=message):
        load_excel("mine.xlsx", "z")
    assert excel_rows("mine.xlsx").sentence == "the sheet 'first'"
    table.rename(columns={"b": "y"}).to_excel("twice.xlsx", index=False)
    with pytest.raises(DatasetError, match="several columns are named 'y'"):
        excel_rows("twice.xlsx")


def test_the_reader_that_is_missing_is_named(table, monkeypatch):
    import pandas as read_by

    def missing(*_, **__):
        raise ImportError("Missing optional dependency 'openpyxl'")

    monkeypatch.setattr(read_by, "ExcelFile", missing)
    with pytest.raises(DatasetError, match=r"needs openpyxl: pip install 'kbench-core\[excel\]'"):
        load_excel("mine.xlsx", "y")


def test_marks_of_missing_values_are_read_as_in_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pandas.DataFrame(
        {
            "area": [*np.arange(28) + 0.5, "n.a.", " n.a. "],
            "floor": [*[1, 2, 10] * 9, "-", "k.A.", "k.A."],
            "y": ["no", "yes"] * 15,
        }
    )
    frame.to_excel("mine.xlsx", index=False)
    frame.to_csv("mine.csv", index=False)
    excel, text = (
        load(f"mine.{ending}", "y", na_values=["n.a.", "k.A."])
        for load, ending in ((load_excel, "xlsx"), (load_csv, "csv"))
    )
    assert excel.feature_names == ("area", "floor=-", "floor=1", "floor=10", "floor=2")
    assert text.feature_names == excel.feature_names
    np.testing.assert_array_equal(text.X, excel.X)
    assert np.isnan(excel.X[28:, 0]).all()

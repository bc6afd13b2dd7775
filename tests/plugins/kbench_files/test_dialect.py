"""CSV files of many kinds, compared with what pandas reads with the right options."""

import gzip

import numpy as np
import pandas
import pytest

from kbench import DatasetError
from kbench.messages import printable
from kbench_files._csv import csv_rows
from kbench_files._files import load_csv

N = 60
VALUES = np.random.default_rng(0).normal(size=N).round(5) * 1000
LABELS = ["no", "yes"] * (N // 2)


def text(values, labels=LABELS, sep=",", names=("a", "y"), end="\n"):
    lines = [sep.join(names), *(sep.join(row) for row in zip(values, labels, strict=True))]
    return end.join(lines) + end


def marked(value, thousands, decimal):
    return f"{value:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))


def numbers(thousands="", decimal="."):
    return [marked(value, thousands, decimal) for value in VALUES]


def quoted(values):
    return [f'"{value}"' for value in values]


def of_wide_blanks(value):
    return float(value.replace("\u00a0", "").replace(",", "."))


PLAIN = numbers()
FILES = {
    # name: content, encoding, options of pandas, and what is said
    "plain": (text(PLAIN), "utf-8", {}, "`,` as the delimiter, `.` as the decimal mark, utf-8"),
    "semicolon and decimal comma": (
        text(numbers("", ","), sep=";"),
        "utf-8",
        {"sep": ";", "decimal": ","},
        "`;` as the delimiter, `,` as the decimal mark, utf-8",
    ),
    "decimal comma and thousands": (
        text(numbers(".", ","), sep=";"),
        "utf-8",
        {"sep": ";", "decimal": ",", "thousands": "."},
        "`;` as the delimiter, `,` as the decimal mark, `.` between thousands, utf-8",
    ),
    "decimal comma and blanks": (
        text(numbers(" ", ","), sep=";"),
        "utf-8",
        {"sep": ";", "decimal": ",", "thousands": " "},
        "a blank between thousands",
    ),
    "decimal comma and wide blanks": (
        text(numbers("\u00a0", ","), sep=";"),
        "cp1252",
        # pandas takes one byte for a mark of thousands
        {"sep": ";", "encoding": "cp1252", "converters": {"a": of_wide_blanks}},
        "a blank between thousands, cp1252",
    ),
    "apostrophes": (
        text(numbers("'", "."), sep=";"),
        "utf-8",
        {"sep": ";", "thousands": "'"},
        "`'` between thousands",
    ),
    "quoted thousands": (
        text(quoted(numbers(",", "."))),
        "utf-8",
        {"thousands": ","},
        "`,` as the delimiter, `.` as the decimal mark, `,` between thousands",
    ),
    "quoted decimal comma": (
        text(quoted(numbers("", ","))),
        "utf-8",
        {"decimal": ","},
        "`,` as the delimiter, `,` as the decimal mark",
    ),
    "tabs": (
        text(numbers("", ","), sep="\t"),
        "utf-8",
        {"sep": "\t", "decimal": ","},
        "tabs as the delimiter",
    ),
    "pipes": (text(PLAIN, sep="|"), "utf-8", {"sep": "|"}, "`|` as the delimiter"),
    "byte order mark": (text(PLAIN), "utf-8-sig", {}, "utf-8 with a byte order mark"),
    "utf-16": (text(PLAIN, ["nö", "ja"] * 30), "utf-16", {"encoding": "utf-16"}, "utf-16 with"),
    "utf-32": (text(PLAIN), "utf-32", {"encoding": "utf-32"}, "utf-32 with a byte order mark"),
    "cp1252": (text(PLAIN, ["é", "ß"] * 30), "cp1252", {"encoding": "cp1252"}, ", cp1252"),
    "latin-1": (text(PLAIN, ["é\x81", "ß"] * 30), "latin-1", {"encoding": "latin-1"}, "latin-1"),
    "line ends of Windows": (text(PLAIN, end="\r\n"), "utf-8", {}, "`,` as the delimiter"),
    "line ends of old Macs": (text(PLAIN, end="\r"), "utf-8", {}, "`,` as the delimiter"),
    "empty lines": (text(PLAIN).replace("\n", "\n\n"), "utf-8", {}, "`,` as the delimiter"),
    "a quoted line break": (
        text(PLAIN, quoted(["a\nb", "c"] * 30)),
        "utf-8",
        {},
        "`,` as the delimiter",
    ),
    "a quoted delimiter": (
        text(PLAIN, quoted(["a,b", "c"] * 30)),
        "utf-8",
        {},
        "`,` as the delimiter",
    ),
    "quoted quotes": (text(PLAIN, ['"a""b"', "c"] * 30), "utf-8", {}, "`,` as the delimiter"),
    "exponents": (text([f"{v:.3e}" for v in VALUES]), "utf-8", {}, "`,` as the delimiter"),
    "fractions below 1": (
        text([f"0,{100 + i}" for i in range(N)], sep=";"),
        "utf-8",
        {"sep": ";", "decimal": ","},
        "`,` as the decimal mark",
    ),
}


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write_and_read(content, written="utf-8", **given):
        data = content if isinstance(content, bytes) else content.encode(written)
        (tmp_path / "mine.csv").write_bytes(data)
        return csv_rows("mine.csv", **given)

    return write_and_read


@pytest.mark.parametrize("what", FILES)
def test_files_are_read_as_by_pandas_with_the_right_options(read, what):
    content, encoding, options, sentence = FILES[what]
    found = read(content, encoding)
    assert sentence in found.sentence
    expected = pandas.read_csv("mine.csv", **options)
    assert found.rows.scan({}) == len(expected)
    (block,) = found.rows.blocks(found.rows.names)
    pandas.testing.assert_frame_equal(pandas.DataFrame(block), expected)
    data = load_csv("mine.csv", "y", **found.params)
    np.testing.assert_array_equal(data.X[:, 0], expected["a"])
    # names are shown without control characters
    assert list(data.target_names) == [printable(name) for name in sorted(expected["y"].unique())]


def test_blanks_around_names_and_values_are_left_out(read):
    content = text(
        [f" {value} " for value in PLAIN], [f"{y}  " for y in LABELS], names=(" a", "y ")
    )
    found = read(content)
    expected = pandas.read_csv("mine.csv", skipinitialspace=True)
    data = load_csv("mine.csv", "y", **found.params)
    np.testing.assert_array_equal(data.X[:, 0], expected["a"])
    assert (data.feature_names, data.target_names) == (("a",), ("no", "yes"))


def test_a_mark_of_missing_values_with_blanks_keeps_a_column_of_numbers(read):
    read(text([*PLAIN[:-1], "NA  "]))
    data = load_csv("mine.csv", "y")
    assert np.flatnonzero(np.isnan(data.X[:, 0])).tolist() == [N - 1]


def test_other_texts_may_be_missing_values(read):
    found = read(text([*PLAIN[:-1], "unknown "]), na_values=("unknown",))
    data = load_csv("mine.csv", "y", na_values=["unknown"], **found.params)
    assert np.flatnonzero(np.isnan(data.X[:, 0])).tolist() == [N - 1]


def test_packed_files_are_guessed_too(tmp_path):
    file = tmp_path / "mine.csv.gz"
    file.write_bytes(gzip.compress(text(numbers("", ","), sep=";").encode()))
    assert csv_rows(str(file)).params == {"delimiter": ";", "decimal": ","}


@pytest.mark.parametrize(
    ("sep", "values", "first", "doubt"),
    [
        (
            ",",
            quoted(f"{i % 9 + 1},{100 + i}" for i in range(N)),
            1100,
            "`decimal=','` reads it as",
        ),
        (
            ";",
            [f"{i % 9 + 1},{100 + i}" for i in range(N)],
            1.1,
            "`thousands=','` reads it as 1100",
        ),
        (
            ";",
            [f"{i % 9 + 1}.{100 + i}" for i in range(N)],
            1.1,
            "`thousands='.'` reads it as 1100",
        ),
    ],
)
def test_what_is_ambiguous_is_said_with_the_option_that_changes_it(read, sep, values, first, doubt):
    found = read(text(values, sep=sep))
    assert load_csv("mine.csv", "y", **found.params).X[0, 0] == first
    assert len(found.warnings) == 1
    assert doubt in found.warnings[0]


def test_two_delimiters_that_fit_are_said(read):
    found = read("a;b,c\n" + "1;2,3\n" * N)
    assert "`,` or `;` may be the delimiter; `,`" in found.warnings[0]
    assert read("a;b,c\n" + "1;2,3\n" * N, delimiter=";").warnings == []


def test_what_is_given_is_not_guessed(read):
    content = text(numbers("", ","), sep=";")
    assert read(content, decimal=".").params == {"delimiter": ";"}
    found = read(text(PLAIN, ["é", "ß"] * 30), "cp1252", encoding="cp1250")
    assert (found.params, found.warnings) == ({}, [])


REFUSED = {
    "NUL bytes": (text(PLAIN).replace("no", "n\0o", 1), {}, "it is not a text file (byte"),
    "UTF-16 without a mark": (text(PLAIN).encode("utf-16-le"), {}, "`encoding='utf-16-le'`"),
    "two encodings": (
        text(PLAIN, ["é", "b"] * 30).encode() + "1.0,é\n".encode("latin-1"),
        {},
        "line 2 is UTF-8, line 62 is not",
    ),
    "an unknown encoding": (text(PLAIN), {"encoding": "utf-9"}, "no encoding is named 'utf-9'"),
    "a wrong encoding": (text(["é"] * N).encode("latin-1"), {"encoding": "utf-8"}, "0xe9"),
    "a wrong decimal mark": (text(PLAIN), {"decimal": "x"}, "decimal must be '.' or ','"),
    "a wrong thousands mark": (text(PLAIN), {"thousands": "x"}, "thousands must be one of"),
    "one mark twice": (text(PLAIN), {"decimal": ",", "thousands": ","}, "must differ"),
    "no names": (text(PLAIN, names=("1.5", "2.5")), {}, "has numbers instead of column names"),
    "equal names": (text(PLAIN, names=("y", "y")), {}, "several columns are named 'y'"),
    "names that differ by blanks": (text(PLAIN, names=("y ", "y")), {}, "are named 'y'"),
    "a nameless column": (text(PLAIN, names=("", "y")), {}, "column 1 has no name"),
    "one column": ("y\n" + "a\nb\n" * N, {}, "it has only one column"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_refused_with_one_message(read, what):
    content, given, words = REFUSED[what]
    with pytest.raises(DatasetError) as error:
        read(content, **given)
    assert words in str(error.value)


def test_bytes_of_another_encoding_far_down_are_one_message(read, monkeypatch):
    monkeypatch.setattr("kbench_files._dialect.SAMPLE", 100)
    found = read(text(PLAIN, [*LABELS[:-1], "é"]), "latin-1")
    with pytest.raises(DatasetError, match=r"not UTF-8 text.*`encoding='cp1252'`"):
        load_csv("mine.csv", "y", **found.params)


def test_the_first_ten_rows_of_another_length_are_listed(read):
    rows = ["1,2,yes", "1,2,no"] * 30
    for line in range(20, 40):
        rows[line - 2] = "1,yes"
    rows[10] = "1,2,3,4"
    found = read("\n".join(["a,b,y", *rows]) + "\n")
    with pytest.raises(DatasetError) as error:
        load_csv("mine.csv", "y", **found.params)
    assert "3 names, but 21 rows have more or fewer values: line 12 has 4, line 20 has 2" in str(
        error.value
    )
    assert "line 28 has 2, and 11 more" in str(error.value)


def test_numbers_of_a_block_are_text_where_another_block_has_text(read, monkeypatch):
    monkeypatch.setattr("kbench_files._csv.block_rows", lambda _: 7)
    values = numbers(".", ",")
    found = read(text([*values[:40], "1.2,5", *values[41:]], sep=";"), delimiter=";")
    assert found.params == {"decimal": ",", "thousands": "."} or "decimal" not in found.params
    with pytest.raises(DatasetError, match=r"before row 41, which has '1\.2,5'"):
        load_csv("mine.csv", "y", delimiter=";", decimal=",", thousands=".")
    monkeypatch.setattr("kbench_files._csv.block_rows", lambda _: 7)
    read(text(values, sep=";"))
    data = load_csv("mine.csv", "y", delimiter=";", decimal=",", thousands=".")
    np.testing.assert_allclose(data.X[:, 0], VALUES.round(2))


ROWS = "".join(f"{i},5;{'ab'[i % 2]}\n" for i in range(30))


@pytest.mark.parametrize(
    ("before", "row"),
    [
        ("sep=;\n", "2"),
        ('"sep=;"\r\n', "2"),
        ("\ufeffsep=;\n", "2"),
        ("# from a program\n# on a day, in a month\n", "3"),
        ("sep=;\n# a comment\n", "3"),
        ("# one comment\n", "2"),
    ],
)
def test_lines_before_the_names_are_left_out(tmp_path, before, row):
    path = tmp_path / "t.csv"
    path.write_text(before + "x;y\n" + ROWS, encoding="utf-8")
    opened = csv_rows(path)
    assert list(opened.rows.names) == ["x", "y"]
    assert opened.params["header_row"] == row
    assert f"names in row {row}" in opened.sentence
    data = load_csv(str(path), "y", **opened.params)
    assert data.X[:3].ravel().tolist() == [0.5, 1.5, 2.5]
    assert opened.rows.scan({}) == 30


def test_titles_of_any_width_leave_the_marks_to_all_rows(tmp_path):
    path = tmp_path / "t.csv"
    first = "n0;0,5;1;a\nn1;1,5;2;b\n"
    rest = "".join(f"n{i};{i};{i % 4};{'ab'[i % 2]}\n" for i in range(2, 30))
    path.write_text("Report\n" * 3 + "name;x;z;y\n" + first + rest)
    assert csv_rows(path).params["decimal"] == ","


def test_a_name_may_begin_with_a_hash(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("#x;y\n" + ROWS)
    opened = csv_rows(path)
    assert list(opened.rows.names) == ["#x", "y"]
    assert "header_row" not in opened.params


def test_lines_of_a_message_are_those_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=;\nx;y\n" + ROWS + "1;2;3\n")
    with pytest.raises(DatasetError, match="line 33 has 3"):
        csv_rows(path).rows.scan({})


def test_infinite_numbers_are_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "x;z;y\n" + "".join(f"{i},5;{'inf'[: i + 1]};{'ab'[i % 2]}\n" for i in range(30))
    )
    assert "na_values" not in csv_rows(path).params
    path.write_text("x;y\n" + ROWS + "-Inf;a\n")
    opened = csv_rows(path)
    assert opened.params["na_values"] == ("-Inf",)
    assert np.isnan(load_csv(str(path), "y", **opened.params).X[-1, 0])


@pytest.mark.parametrize(
    "given",
    [{"na_values": ("unknown",)}, {"na_values": ("unknown",), "decimal": ".", "thousands": ""}],
)
def test_infinite_numbers_are_missing_beside_given_marks(tmp_path, given):
    file = tmp_path / "t.csv"
    file.write_text(text(["inf", "unknown", *PLAIN[2:]]))
    opened = csv_rows(file, **given)
    assert opened.params["na_values"] == ("unknown", "inf")
    assert opened.warnings == ["infinite values are read as missing: 'inf'"]
    X = load_csv(file, "y", **{**given, **opened.params}).X
    assert np.isnan(X[:2, 0]).all() and np.isfinite(X[2:, 0]).all()

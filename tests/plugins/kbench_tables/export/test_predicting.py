"""CSV files as an exported model reads them."""

import gzip

import pytest

from kbench_files._text_blocks import TextBlocks
from kbench_tables.export.model import Finding, describe
from kbench_tables.export.predicting import _put_flags


def test_findings_of_one_kind_in_many_columns_are_one_line():
    found = [Finding(f"x{j}", "below", j + 1, 1, [], 0.0) for j in range(3000)]
    line, other = describe([*found, Finding("city", "unknown", 1, 7, ["Bergen"])])
    assert line.startswith("3,000 columns have a value below the training minimum, in up to 3,000")
    assert other.startswith("column 'city': 1 row has a category")


TABLE = {"a": ["1", "3"], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("sep=;\na;b\n1;x\n3;y\n", "utf-8"),
        ('"sep=;"\r\na;b\r\n1;x\r\n3;y\r\n', "utf-8-sig"),
        ("# made by a program\n# on Monday\na,b\n1,x\n3,y\n", "utf-8"),
        ("sep=|\n# by hand\na|b\n1|x\n3|y\n", "utf-16"),
        ("\ufeffa,b\n1,x\n3,y\n", "utf-8"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_lines_before_the_names_are_left_out(tmp_path, text, encoding, packed):
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    raw = text.encode(encoding)
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert list(TextBlocks(path, ",", encoding.removesuffix("-sig"))) == [TABLE]


def test_a_first_line_of_names_may_begin_with_a_sharp(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("#a,b\n1,2\n")
    assert list(TextBlocks(path)) == [{"#a": ["1"], "b": ["2"]}]


def test_lines_of_messages_are_those_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=;\na;b\n1;x\n3\n")
    with pytest.raises(ValueError, match="line 4 has 1 values, and there are 2 names"):
        list(TextBlocks(path))


def test_blocks_have_the_rows_in_their_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("# one\n# two\na\n" + "".join(f"{n}\n" for n in range(7)))
    blocks = list(TextBlocks(path, n_rows=3))
    assert [block["a"] for block in blocks] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


def test_options_are_named_as_flags():
    told = "give `encoding='cp1252'`, `header_row` or `na_values`; `drop` is none"
    names = ["encoding", "header_row", "na_values"]
    shown = "give --encoding cp1252, --header-row or --na-value; `drop` is none"
    assert _put_flags(told, names) == shown

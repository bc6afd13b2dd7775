"""The table in a file from a spreadsheet program is the one that a clean file has."""

import csv
import io
import itertools

import pytest

from kbench import DatasetError
from kbench_files import load_csv, load_excel
from kbench_files._csv import csv_rows
from kbench_files._layout import HEAD, TAIL, find_layout, survey, survey_lines
from kbench_files._text_blocks import TextBlocks
from kbench_files._typed import excel_rows

NAMES = ["city", "rooms", "price", "sold"]
ROWS = [[["Oslo", "Rome", "Paris"][i % 3], i % 9 + 1, i + 0.5, "yn"[i % 2]] for i in range(40)]
TOTAL = ["Total", sum(row[1] for row in ROWS), sum(row[2] for row in ROWS), ""]


def sum_of(label, rows):
    return [label, sum(row[1] for row in rows), sum(row[2] for row in rows), ""]


WITH_SUMS = [
    each
    for i in range(0, 40, 10)
    for each in (*ROWS[i : i + 10], sum_of("Subtotal", ROWS[i : i + 10]))
]
WIDE = [[row[0], *row[1:3], *row[1:3], row[3]] for row in ROWS]
EMPTY = [""] * 4

FILES = {
    "titles": ([["Report", "", "", ""], ["North", "", "", ""], EMPTY, NAMES, *ROWS], "4", "below"),
    "a short title": ([["Report"], [], NAMES, *ROWS], "3", "'Report'"),
    "totals": ([NAMES, *ROWS, TOTAL], "1", "row 42 (totals: 'Total')"),
    "totals apart": ([NAMES, *ROWS, EMPTY, TOTAL], "1", "row 43 (totals: 'Total')"),
    "a mean": ([NAMES, *ROWS, ["Mean", 5, 20, ""]], "1", "totals: 'Mean'"),
    "notes": ([NAMES, *ROWS, [], ["Source: us"]], "1", "row 43 (a note: 'Source: us')"),
    "comments": ([NAMES, *ROWS[:9], ["# by hand"], *ROWS[9:]], "1", "the first is row 11"),
    "groups of names": ([["", "size", "", "end"], NAMES, *ROWS], "2", "'size', 'end'"),
    "repeated groups": ([["at", "size", "size", "end"], NAMES, *ROWS], "2", "below 'at', 'size'"),
    "units": ([NAMES, ["", "n", "EUR", ""], *ROWS], "1", "row 2 is not read: 'n', 'EUR'"),
    "two tables": ([NAMES, *ROWS, EMPTY, ["a", "b", "", ""], ["x", 1, "", ""]], "1", "another"),
    "subtotals": ([NAMES, *WITH_SUMS], "1", "the first is row 12 ('Subtotal')"),
    "sums of cities": (
        [NAMES, *[[f"Total {row[0]}", *row[1:]] if "otal" in row[0] else row for row in WITH_SUMS]],
        "1",
        "4 rows of totals are not read, the first is row 12 ('Total Subtotal')",
    ),
    "sums as Excel names them": (
        [NAMES, *[["Oslo Ergebnis", *row[1:]] if "otal" in row[0] else row for row in WITH_SUMS]],
        "1",
        "the first is row 12 ('Oslo Ergebnis')",
    ),
    "units of few rows": ([NAMES, ["", "n", "EUR", ""], *ROWS[:4]], "1", "row 2 is not read"),
    "a table beside": (
        [[*NAMES, "", "k"], *[[*row, "", i if i < 5 else ""] for i, row in enumerate(ROWS)]],
        "1",
        "a shorter table next to",
    ),
    "empty columns": ([["", *NAMES, ""], *[["", *row, ""] for row in ROWS]], "1", "empty columns"),
}


def as_texts(rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def as_cells(rows):
    return list(csv.reader(io.StringIO(as_texts(rows))))


@pytest.mark.parametrize("what", FILES)
def test_the_table_is_found_and_the_rest_is_named(what):
    rows, header_row, notice = FILES[what]
    expected = as_cells(ROWS[:4] if "few" in what else ROWS)
    layout = find_layout(*survey(as_cells(rows)))
    assert (list(layout.names), layout.header_row) == (NAMES, header_row)
    assert list(layout.select(as_cells(rows))) == expected
    assert notice in " | ".join(layout.notices)
    again = find_layout(*survey(as_cells(rows)), header_row)
    assert list(again.select(as_cells(rows))) == expected


PLAIN = {
    "a table": [NAMES, *ROWS],
    "a city that is called Total": [NAMES, *ROWS, ["Total", 3, 4.5, "y"]],
    "few values in the last row": [NAMES, *ROWS, ["Oslo", "", "", ""]],
    "no names": ROWS,
    "no name for the first column": [["", *NAMES], *[[i, *row] for i, row in enumerate(ROWS)]],
    "texts only": [["a", "b", "c"], *[["x", "y", "z"[i % 1]] for i in range(9)]],
    "names that are years": [["city", "2019", "2020"], *[row[:3] for row in ROWS]],
    "an index and missing values": [
        ["", "name", "sex", "city", "age"],
        [0, "Ann", "f", "", 30],
        *[[i, f"n{i}", "m", "Oslo", 40 + i] for i in range(1, 30)],
    ],
    "an index of texts": [["", "smoker", "alive"], *[[f"r{i}", "yes", "yes"] for i in range(9)]],
    "missing numbers first": [
        ["shop", "lag1", "lag2", "y"],
        ["A", "NA", "NA", "x"],
        *[["B", i, i + 0.5, "y"] for i in range(9)],
    ],
    "question marks": [["shop", "n", "m"], ["A", "?", "?"], *[["B", i, i] for i in range(9)]],
    "a missing value after an empty row": [
        ["shop", "n", "y"],
        *[["A", i, "y"] for i in range(9)],
        [],
        ["q", "?", "x"],
        *[["B", i, "y"] for i in range(9)],
    ],
    "a sector that is called Media": [
        ["sector", "staff", "margin", "label"],
        *[["Media" if i > 39 else "Farms", i % 20, i % 7 + 0.5, "yn"[i % 2]] for i in range(60)],
    ],
    "one row that is called Media": [
        ["sector", "staff", "margin"],
        *[[f"s{i}", i, i % 7 + 0.5] for i in range(20)],
        ["Media", 18, 0.5],
    ],
    "missing values in the first row": [["a", "b"], ["NA", "x"], *[[i, "y"] for i in range(9)]],
}


@pytest.mark.parametrize("what", PLAIN)
def test_other_files_are_read_as_they_are(what):
    assert find_layout(*survey(as_cells(PLAIN[what]))).is_plain


GERMAN = [
    ["Ort", "Menge", "Umsatz"],
    ["Kiel", "10", "1.000,50"],
    ["Ulm", "20", "999,25"],
    ["Zwischensumme Nord", "30", "1.999,75"],
    ["Bonn", "5", "2.000,00"],
    ["Zwischensumme", "5", "2.000,00"],
    ["Köln", "7", "12.000,00"],
    ["Summe aller Orte", "42", "15.999,75"],
    ["Trier", "9", "1,00"],
]


def test_german_subtotals_are_found_unless_they_are_kept():
    layout = find_layout(*survey(GERMAN))
    read = [row[0] for row in layout.select(GERMAN)]
    assert read == ["Kiel", "Ulm", "Bonn", "Köln", "Trier"]
    (notice,) = layout.notices
    assert "3 rows of totals" in notice
    assert "row 4 ('Zwischensumme Nord'); `keep_totals` reads them" in notice
    assert find_layout(*survey(GERMAN), keep_totals=True).is_plain
    last = [*GERMAN[:4], ["Gesamt", "30", "1.999,75"]]
    assert len(list(find_layout(*survey(last)).select(last))) == 2
    below = [*GERMAN, ["Gesamt", "51", "16.000,75"]]
    assert find_layout(*survey(below)).notices[-1].endswith("`keep_totals` reads them")
    assert find_layout(*survey(below), keep_totals=True).is_plain


def test_the_word_for_totals_may_be_in_a_column_of_dates():
    rows = [[f"{i % 28 + 1:02d}.03.24", f"note {i}", i * 1.25, "yn"[i % 2]] for i in range(40)]
    sums = [["Subtotal", "", sum(row[2] for row in rows[i : i + 20]), ""] for i in (0, 20)]
    names = ["day", "note", "amount", "paid"]
    layout = find_layout(*survey([names, *rows[:20], sums[0], *rows[20:], sums[1]]))
    assert [*layout.select([names, *rows[:20], sums[0], *rows[20:], sums[1]])] == rows


def test_subtotals_are_found_in_all_blocks_of_a_long_file():
    rows = [row for _ in range(600) for row in (*ROWS, sum_of("Subtotal", ROWS))]
    cells = as_cells([NAMES, *rows, ["Rome", 1, 2.5, "y"]])
    assert sum(map(len, cells)) > HEAD
    layout = find_layout(*survey(cells))
    assert len(list(layout.select(cells))) == 600 * 40 + 1
    assert layout.notices[0].startswith("at least ")


@pytest.mark.parametrize(
    "row",
    [
        *(["Total war", 3, 4.5, "y"], ["Subtotal", 9, 1.5, "n"], ["", 2, 3.5, ""]),
        ["Total war", sum_of("", ROWS[:9])[1], 4.5, "y"],
        sum_of("", ROWS[:9]),
    ],
)
def test_other_rows_inside_a_table_are_read(row):
    cells = as_cells([NAMES, *ROWS[:9], row, *ROWS[9:]])
    assert find_layout(*survey(cells)).is_plain


@pytest.mark.parametrize(
    "first",
    [
        [["Eni", 4, 90, "oil"], ["Total Energies", 4, 70, "oil"]],
        [["Eni", 4, 90, "oil"], ["Shell", 1, 5, "the total was wrong"]],
        [["Eni", 4], ["Total Energies", 4]],
        [["x", 1, 2, "y"], ["", 1, 2, ""]],
        [[1, 2], [2, 3], [3, 4], [6, 9]],
    ],
)
def test_rows_of_data_that_equal_sums_are_read(first):
    names, rows = NAMES[: len(first[0])], [row[: len(first[0])] for row in ROWS]
    rows = [row[1:3] for row in ROWS] if isinstance(first[0][0], int) else rows
    assert find_layout(*survey(as_cells([names, *first, *rows]))).is_plain


def test_rows_of_totals_are_kept_by_an_option(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_texts([["Report"], [], NAMES, *WITH_SUMS]))
    for options, n_rows in (({}, 40), ({"keep_totals": True}, 44)):
        opened = csv_rows(str(path), **options)
        assert opened.rows.scan({}) == n_rows
        assert load_csv(str(path), "price", **opened.params, **options).X.shape[0] == n_rows


def test_rows_of_totals_are_predicted_by_an_option(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_texts([["Report"], [], NAMES, *WITH_SUMS, TOTAL]))
    n_rows = [len(next(iter(TextBlocks(path, keep_totals=keep)))["city"]) for keep in (False, True)]
    assert n_rows == [40, 45]


def test_lines_are_surveyed_as_their_rows():
    quoted = [["a", 'b "c"', "d\ne"], ["", "", ""], ["x,y", "1", "2"]]
    plain = [[str(i), "", "b"] for i in range(30_000)]
    for rows in ([*plain, *quoted], [*quoted, *plain], [*plain, [], *quoted, *plain[:9000]]):
        text = as_texts(rows)
        lines = iter(io.StringIO(text, newline=""))
        assert survey_lines(lines, csv.reader) == survey(csv.reader(io.StringIO(text, newline="")))


def test_units_are_left_out_of_rows_to_predict(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_texts([NAMES, ["", "n", "EUR", ""], *ROWS[:5]]))
    blocks = TextBlocks(path)
    assert next(iter(blocks))["rooms"] == [str(row[1]) for row in ROWS[:5]]
    assert "row 2 is not read: 'n', 'EUR'" in blocks.notices[0]


def test_names_in_two_rows_are_joined():
    above = ["city", "2023", "", "2024", "", "sold"]
    rows = [above, ["", "n", "price", "n", "price", ""], *WIDE]
    layout = find_layout(*survey(as_cells(rows)))
    assert layout.header_row == "1-2"
    assert layout.names == ("city", "2023 n", "2023 price", "2024 n", "2024 price", "sold")


def test_all_readers_find_the_same_table(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    rows = [["Report", "", "", ""], EMPTY, NAMES, *sorted(ROWS), EMPTY, TOTAL, ["Source: us"]]
    plain, dirty = tmp_path / "plain.csv", tmp_path / "dirty.csv"
    plain.write_text(as_texts([NAMES, *sorted(ROWS)]))
    dirty.write_text("sep=,\n" + as_texts(rows[:-1]) + "Source: us\n")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([None if cell == "" else cell for cell in row])
    for city in ("A4:A17", "A18:A30", "A31:A43"):
        book.active.merge_cells(city)
    book.save(tmp_path / "dirty.xlsx")
    opened, sheet = csv_rows(str(dirty)), excel_rows(str(tmp_path / "dirty.xlsx"))
    assert (opened.params["header_row"], sheet.params["header_row"]) == ("4", "3")
    given = {"target": "sold", "label": "t"}
    read = load_csv(str(plain), **given)
    for data in (
        load_csv(str(dirty), **given, **opened.params),
        load_excel(str(tmp_path / "dirty.xlsx"), **given, **sheet.params),
    ):
        assert (data.feature_names, data.target_names) == (read.feature_names, read.target_names)
        assert (data.X == read.X).all()
        assert (data.y == read.y).all()
    blocks = TextBlocks(dirty)
    assert list(blocks) == list(TextBlocks(plain))
    assert "totals: 'Total'" in " | ".join(blocks.notices)


@pytest.mark.parametrize("header_row", ["", "1"])
def test_all_rows_of_a_plain_file_are_predicted(tmp_path, header_row):
    rows = [
        ["#x", "", "", ""],
        ["Oslo", "NA", "NA", "x"],
        *[["Rome", f"{i}", f"{i}.5", "y"] for i in range(9)],
        EMPTY,
        ["Total", "60", "40", "y"],
        ["New York", "", "", ""],
        EMPTY,
    ]
    path = tmp_path / "t.csv"
    path.write_text(as_texts([NAMES, *rows]))
    blocks = TextBlocks(path, header_row=header_row)
    assert list(zip(*next(iter(blocks)).values(), strict=True)) == list(map(tuple, rows))
    assert not blocks.notices
    path.write_text(as_texts([NAMES, *rows, [], ["Source: us"]]))
    blocks = TextBlocks(path, header_row=header_row)
    assert len(next(iter(blocks))["city"]) == len(rows)
    assert "a note: 'Source: us'" in " | ".join(blocks.notices)


def test_many_notes_are_counted():
    notes = [[f"note {i}"] for i in range(9)]
    layout = find_layout(*survey(as_cells([NAMES, *ROWS, [], *notes])))
    assert layout.notices[0].endswith(" and 3 more")
    assert list(layout.select(as_cells([NAMES, *ROWS, [], *notes]))) == as_cells(ROWS)


def test_a_row_that_does_not_fit_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_texts([["Report"], [], NAMES, *ROWS]) + "Oslo,1\n" + as_texts(ROWS))
    with pytest.raises(DatasetError, match="line 44 has 2 values, and there are 4 names"):
        csv_rows(str(path)).rows.scan({})
    with pytest.raises(DatasetError, match="header_row must be a row among"):
        csv_rows(str(path), header_row="x")


def test_columns_without_a_name_are_one_message(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(as_texts([["a", "", "b", ""], *ROWS]))
    with pytest.raises(DatasetError, match=r"columns 2, 4 have no name.*`header_row='2'`"):
        csv_rows(str(path))


def test_empty_lines_without_end_are_not_kept():
    head, tail, n_rows = survey(itertools.repeat([], 200_000))
    assert len(head) <= HEAD + 1
    assert len(tail) <= TAIL
    assert n_rows == 200_000

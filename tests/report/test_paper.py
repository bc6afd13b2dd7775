"""Tables for papers: fewer methods, turned, with one unit a column and a caption."""

import shutil
import subprocess

import pytest

from kbench.errors import SuiteError
from kbench.report import write
from kbench.report.content import ReportData
from kbench.report.paper import select_datasets, select_methods, transpose_table, wrap_in_float
from kbench.report.tables import make_tables
from kbench.report.text import Column, Table
from kbench_reporting import tables
from tests.support.report_rows import NASTY, row

ROWS = [
    row("wine", "rff", "ridge (ovr)", (0.91, 0.93)),
    row("wine", "nystroem(rank=5, k=a,b)", "ridge (ovr)", (0.97, 0.99)),
    row("iris", "rff", "ridge (ovr)", (0.99, 0.95)),
    row("iris", "nystroem(rank=5, k=a,b)", "ridge (ovr)", (0.93, 0.93)),
    row("iris", "identity", "linear-svm", (0.5, 0.6)),
]
NYSTROEM = ("nystroem(rank=5, k=a,b)", "ridge (ovr)")


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ([], [("rff", "ridge (ovr)"), NYSTROEM, ("identity", "linear-svm")]),
        (["identity", "rff"], [("identity", "linear-svm"), ("rff", "ridge (ovr)")]),
        (["nystroem*"], [NYSTROEM]),
        (["rff + ridge"], [("rff", "ridge (ovr)")]),
        (["* + linear-svm", "*"], [("identity", "linear-svm"), ("rff", "ridge (ovr)"), NYSTROEM]),
        (["nystroem(rank=5, k=a,b)"], [NYSTROEM]),
    ],
)
def test_methods_are_in_the_order_of_the_patterns(patterns, found):
    assert select_methods(ROWS, patterns) == found


def test_a_pattern_without_a_method_is_a_mistake():
    with pytest.raises(SuiteError, match=r"`methods`: 'rfff'.*did you mean 'rff'"):
        select_methods(ROWS, ["rff", "rfff"])
    with pytest.raises(SuiteError, match=r"(?s)`datasets`: 'win'.*available: wine, iris"):
        select_datasets(ROWS, ["win"])


def content(*more, **fields):
    return ReportData("trial", [*ROWS, *more], **fields)


def test_a_turned_table_has_the_same_values_marks_and_notes():
    given = content(order=[("identity", "linear-svm"), NYSTROEM], digits=2)
    table = tables.scores(given)
    made = transpose_table(table)
    assert [each["method"] for each in made.rows] == [
        "identity + linear-svm",
        "nystroem(rank=5, k=a,b) + ridge (ovr)",
        "rff + ridge (ovr)",
    ]
    by_method = {each["method"]: each for each in made.rows}
    for line in table.rows:
        for method, values in by_method.items():
            assert values[line["dataset"]] == line[method]
            assert values[f"{line['dataset']} (sd)"] == line[f"{method} (sd)"]
    assert made.marks[1, "wine"] == made.marks[2, "iris"] == "best"
    assert made.notes[0, "wine"] == "not planned"
    text = write(made, "markdown")
    assert r"| **0.98** ± 0.01 |" in text
    assert write(transpose_table(tables.ranks(content())), "csv").startswith("method,")


def test_a_table_of_several_kinds_of_columns_is_not_turned():
    with pytest.raises(SuiteError, match="'methods' has columns of several kinds"):
        transpose_table(tables.methods(content()))


def test_datasets_named_as_another_column_are_told_apart():
    names = ("method", "method", "a", "a (sd)")
    table = Table("scores", "", [Column("dataset"), Column("m")], [])
    rows = [{"dataset": name, "m": float(i)} for i, name in enumerate(names)]
    made = transpose_table(Table("scores", "", table.columns, rows, is_grid=True))
    (line,) = made.rows
    assert [column.name for column in made.visible] == [
        "method",
        "method [2]",
        "method [3]",
        "a",
        "a (sd) [2]",
    ]
    assert [line[column.name] for column in made.visible[1:]] == [0.0, 1.0, 2.0, 3.0]


def test_a_column_of_times_has_one_unit_where_it_is_printed():
    column = tables.methods(content()).columns
    assert "fit_time_s" in [each.name for each in column]
    rows = [dict.fromkeys((each.name for each in column), i) for i in range(3)]
    for line, seconds in zip(rows, (0.0004, 0.05, 2.0), strict=True):
        line["fit_time_s"] = seconds
    table = Table("methods", "", column, rows)
    latex = write(table, "latex")
    assert "fit time (ms)" in latex
    for written in (" 0.4 &", " 50 &", " 2000 &"):
        assert written in latex
    assert "0.0004" in write(table, "csv")


@pytest.mark.parametrize(
    ("caption", "written"),
    [
        ("50 % of a_b & #1", r"50 \% of a\_b \& \#1"),
        (r"already \% and \_", r"already \% and \_"),
        (r"\emph{bold} $x_1$ a_b", r"\emph{bold} $x_1$ a\_b"),
        (r"ends in \\", r"ends in \\"),
        ("two\n\nparagraphs", "two paragraphs"),
    ],
)
def test_signs_that_break_a_caption_are_escaped(caption, written):
    assert rf"\caption{{{written}}}" in wrap_in_float("", caption, "")


@pytest.mark.parametrize("caption", ["a}", "{", "}{", "$x", "ends in \\"])
def test_a_caption_that_cannot_be_closed_is_a_mistake(caption):
    with pytest.raises(SuiteError, match="not in pairs"):
        wrap_in_float("", caption, "")


@pytest.mark.parametrize("label", ["a b", "a}", "\\x", "é"])
def test_a_label_has_plain_signs(label):
    with pytest.raises(SuiteError, match="--label"):
        wrap_in_float("", "", label)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_compiles_the_tables(tmp_path):
    named = [
        row(data, kind, learner, (0.5, 0.7))
        for data in (NASTY[0], NASTY[-1])
        for kind, learner in ((NASTY[1], "ridge"), (NASTY[2], "ridge"), ("rff", "svm"))
    ]
    given = ReportData("trial", named)
    texts = [write(table, "latex") for table in make_tables(given).values()]
    texts.append(
        wrap_in_float(
            write(transpose_table(tables.scores(given)), "latex"), "50 % of a_b", "tab:a_b"
        )
    )
    head = r"\documentclass{article}\usepackage{booktabs}\usepackage[T1]{fontenc}\begin{document}"
    source = "\n\n".join([head, *texts, r"\end{document}"])
    (tmp_path / "tables.tex").write_text(source, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
    )
    if "booktabs.sty' not found" in done.stdout:
        pytest.skip("needs the LaTeX package booktabs")
    assert done.returncode == 0, done.stdout[-2000:]

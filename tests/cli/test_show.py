"""The tables on the screen, at the width that it has."""

import itertools
from dataclasses import replace

import pytest
from rich.console import Console

from kbench import Cell, Protocol, Ref, Suite
from kbench.cli import printing, show
from kbench.cli.plan import print_plan
from kbench.planning.planned import PlannedCell
from kbench.records import DatasetFacts, Problem, Published
from kbench.report import Column, Table, write_cell
from kbench.results.rows import COLUMNS, Row
from kbench.runner import Report
from tests.support.report_rows import changed, grid


@pytest.fixture
def printed(monkeypatch, capsys):
    def print_at(width, rows):
        monkeypatch.setattr(printing, "console", lambda: Console(width=width, highlight=False))
        show.print_rows(rows, ranked=True)
        return capsys.readouterr().out

    return print_at


def test_a_wide_screen_shows_all_columns(printed):
    rows = grid(1, 1)
    heading, line, *more = printed(250, rows).splitlines()
    assert heading.split() == [*COLUMNS, "rank"]
    assert rows[0].dataset in line
    assert more == []


@pytest.mark.parametrize("width", [120, 80])
def test_a_narrow_one_does_without_some_says_which_and_breaks_no_number(printed, width):
    rows = grid(2, 3)
    lines = printed(width, rows).splitlines()
    assert max(map(len, lines)) <= width
    start = next(i for i, line in enumerate(lines) if line.startswith("dataset "))
    equal = " ".join(lines[:start])
    table, told = lines[start : start + 7], " ".join(map(str.strip, lines[start + 7 :]))
    shown = table[0].split()
    left_out = told.partition(": ")[2].split(", ") if told else []
    once = [name for name in COLUMNS if f" {name}: " in equal]
    assert sorted([*shown, *left_out, *once]) == sorted([*COLUMNS, "rank"])
    assert {"dataset", "feature_map", "learner", "accuracy", "rank"} <= {*shown}
    assert "status: ok; n_splits_done: 5" in equal
    place = table[0].index("accuracy")
    for row in rows:
        assert any(f"{row.value('accuracy'):.4f}" in line[place:] for line in table[1:])


def test_what_does_not_fit_side_by_side_stands_below_each_other(printed):
    rows = grid(1, 2)
    rows[0] = changed(rows[0], feature_map="a-map(" + "x" * 60 + ")")
    blocks = [block.splitlines() for block in printed(60, rows).split("\n\n")]
    for row, block in zip(rows, blocks, strict=True):
        values = dict(line.split(maxsplit=1) for line in block)
        assert [name for name in COLUMNS if name in values] == [
            name for name in COLUMNS if write_cell(name, row.value(name))
        ]
        assert values["feature_map"] == row.feature_map
        assert values["accuracy"] == f"{row.value('accuracy'):.4f}"


LABELS = ("breast-cancer", "nystroem(kernel=laplacian, n_components=300)", "gradient-boosting")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("label", ["rff", LABELS[1]])
def test_no_word_and_no_number_is_broken(capsys, width, label):
    columns = [Column(name) for name in ("dataset", "feature_map", "learner")]
    columns += [Column(name, numeric=True) for name in ("accuracy", "fit_time_s", "rank")]
    line = [LABELS[0], label, LABELS[2], "0.9833", "1,234.5678", "2.5"]
    table = replace(Table.make("cells", columns, [line], ["bold"]), marks={(0, "learner"): "worse"})
    printing.print_table(Console(width=width, highlight=False), table)
    text = capsys.readouterr().out
    words = text.split()
    for value in ("breast-cancer", "gradient-boosting", *label.split(), "0.9833", "2.5"):
        assert value in words, text
    assert ("1,234.5678" in words) == ("left out at this width: fit_time_s" not in text)
    if "dataset       breast" not in text and "dataset      breast" not in text:
        assert max(map(len, text.splitlines())) <= width


def test_one_long_name_costs_no_column_that_fits_beside_a_folded_one(printed):
    rows = grid(1, 1)
    rows[0] = changed(rows[0], feature_map="a-map(" + "x" * 60 + ")")
    heading = printed(120, rows).splitlines()[0]
    assert {"accuracy", "fit_time_s", "rank"} <= set(heading.split())


def test_nothing_is_left_out_of_a_pipe(capsys):
    rows = grid(1, 1)
    rows[0] = changed(rows[0], feature_map="a-map(" + "x" * 250 + ")")
    show.print_rows(rows, ranked=True)
    heading, line, *more = capsys.readouterr().out.splitlines()
    assert heading.split() == [*COLUMNS, "rank"]
    assert "x" * 250 in line
    assert more == []


def test_of_many_cells_the_best_of_each_dataset_are_printed(monkeypatch, capsys):
    monkeypatch.setattr(printing, "console", lambda: Console(width=250, highlight=False))
    rows = [changed(row, accuracy=i % 8 / 10) for i, row in enumerate(grid(3, 8))]
    rows.append(changed(rows[0], feature_map="failed", status="timed_out"))
    assert show.print_rows(rows, ranked=True, shortened=True) == 3 * 3 + 1
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[-1] for line in lines] == ["1", "2", "3", "4", "5"] * 3
    assert [line.split()[0] for line in lines[::5]] == list(dict.fromkeys(r.dataset for r in rows))
    assert show.print_rows(rows, ranked=True) == 0
    assert "failed" in capsys.readouterr().out


def test_the_plan_of_many_cells_has_a_line_for_each_dataset(monkeypatch, capsys):
    monkeypatch.setattr(printing, "console", lambda: Console(width=250, highlight=False))
    protocol = Protocol(n_folds=4)
    cells = []
    for i, j in itertools.product(range(3), range(10)):
        cell = Cell(Ref(f"data-{i}"), Ref(f"map-{j}"), Ref("ridge"), protocol)
        problem = Problem("skipped", "too large") if (i, j) == (2, 0) else None
        facts = DatasetFacts("c" * 64) if i else None
        cells.append(PlannedCell(cell, f"{i}{j}", facts, 4, problem))
    print_plan(Report(Suite("many", ()), cells, 0.0, "here"), as_json=False, every=False)
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed[:4] == [
        ["dataset", "cells", "tasks", "cached", "note"],
        ["data-0", "10", "40", "0", *["dataset", "not", "loaded", "yet"]],
        ["data-1", "10", "40", "0"],
        ["data-2", "10", "36", "0", *["1", "cell:", "skipped:", "too", "large"]],
    ]
    assert printed[4] == ["--all", "prints", "the", "cells"]
    print_plan(Report(Suite("many", ()), cells, 0.0, "here"), as_json=False, every=True)
    assert len(capsys.readouterr().out.splitlines()) == 1 + 30 + 2


@pytest.mark.parametrize(
    ("cv", "is_loaded", "note", "least"),
    [
        ("official", False, "dataset not loaded yet, which has its own splits", "at least "),
        ("official", True, "", ""),
        ("stratified", False, "dataset not loaded yet", ""),
    ],
)
def test_the_plan_says_that_a_dataset_decides_the_number_of_tasks(
    capsys, cv, is_loaded, note, least
):
    cell = Cell(Ref("data"), Ref("map"), Ref("ridge"), Protocol(cv=cv))
    planned = PlannedCell(cell, "key", DatasetFacts("c" * 64) if is_loaded else None, 3)
    print_plan(Report(Suite("one", ()), [planned], 0.0, "here"), as_json=False)
    _, row, _, total = capsys.readouterr().out.splitlines()
    assert row.split("0", 1)[1].strip() == note
    assert total.startswith(f"1 cell, {least}3 tasks to compute, 0 cached")


@pytest.mark.parametrize("names", [["accuracy"], ["accuracy", "gram_error_frobenius"]])
def test_published_figures_of_several_metrics_name_theirs(capsys, names):
    values = {"accuracy": 0.9, "accuracy_sd": 0.1, "gram_error_frobenius": 0.2}
    sets = ("iris", "wine", "wdbc")
    rows = [Row(each, "rff", "ridge", "ok", 5, 5, values) for each in sets]
    figures = [Published(each, "rff", "ridge", name, 0.5) for each in sets for name in names]
    show.print_published(rows, figures)
    out = capsys.readouterr().out
    assert ("metric: accuracy" in out) == (len(names) == 1)  # one for all, in a sentence
    assert ("gram_error_frobenius" in out) == (len(names) > 1)

"""The tables on the screen, at the width that it has."""

import pytest
from rich.console import Console

from kbench.cli import printing, show
from kbench.results.rows import COLUMNS
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
    table, told = lines[:7], " ".join(map(str.strip, lines[7:]))
    shown = table[0].split()
    assert told.startswith("left out at this width: n_components")
    left_out = told.partition(": ")[2].split(", ")
    assert sorted([*shown, *left_out]) == sorted([*COLUMNS, "rank"])
    assert {"dataset", "feature_map", "learner", "status", "accuracy", "rank"} <= {*shown}
    place = table[0].index("accuracy")
    for row in rows:
        assert any(f"{row.value('accuracy'):.4f}" in line[place:] for line in table[1:])


def test_where_even_names_are_too_long_they_are_broken_and_numbers_are_not(printed):
    rows = grid(1, 1)
    rows[0] = changed(rows[0], feature_map="a-map(" + "x" * 60 + ")")
    text = printed(60, rows)
    assert f"{rows[0].value('accuracy'):.4f}" in text
    assert "x" * 60 not in text
    assert sum(line.count("x") for line in text.splitlines()[1:4]) >= 40


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

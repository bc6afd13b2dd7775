"""Labels, names and errors of others are text wherever they are shown: no command, no formula."""

import csv
import io
import json
import re
import sys
from unittest import mock

import pytest
from rich.console import Console
from rich.text import Text

import kbench
from kbench.api.progress import PrintableConsole
from kbench.cli import main, printing, show
from kbench.errors import SuiteError
from kbench.registry.registry import Registry
from kbench.report import Column, Table, write
from kbench.report.svg import text as svg_text
from kbench.report.tables import cells, make_tables
from kbench_mlflow.tracking.run import printable as stored_text
from kbench_reporting.page import page
from tests.support.command_here import command
from tests.support.command_lines import all_commands
from tests.support.report_rows import content, row

HOSTILE = "a\x1b[2J\x1b]0;t\x07\u202eb\ud800\u2066\x9b31m\r\x00c"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def rows():
    good = [row(HOSTILE, HOSTILE, accuracies=(0.9, 0.8)), row(HOSTILE, "b", accuracies=(0.7, 0.9))]
    bad = row(HOSTILE + "2", HOSTILE, HOSTILE, status="error", error=f"first\n{HOSTILE}")
    return [*good, bad, row("gone", "b", status="unavailable", error=HOSTILE)]


@pytest.mark.parametrize("form", ["csv", "json", "latex", "markdown"])
def test_no_table_has_control_characters(form):
    made = content(rows())
    for name, table in make_tables(made).items():
        text = write(table, form)
        assert not FORBIDDEN.search(text), name
        text.encode()
        if form == "json":
            assert isinstance(json.loads(text), list)
    table = cells(made.rows, made.metric)
    assert "a\ufffd[2J" in write(table, "csv")
    assert json.loads(write(table, "json"))[0]["dataset"] == HOSTILE, "JSON loses nothing"


def test_a_page_has_no_control_characters():
    text = page(content(rows(), suite=HOSTILE, store=HOSTILE), Registry())
    assert not FORBIDDEN.search(text)
    text.encode()
    assert not FORBIDDEN.search(svg_text(HOSTILE, 0, 0))


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1+2", "@SUM(A1)", "|x", "\t=1", " =1", "\r=1"])
def test_no_name_is_a_formula_in_a_spreadsheet(formula):
    made = content([row(formula, "b", accuracies=(0.7, 0.9))])
    (_, line) = csv.reader(io.StringIO(write(cells(made.rows, made.metric), "csv")))
    assert line[0].startswith("'")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_console_shows_text_and_keeps_its_own_styles(is_terminal):
    out = io.StringIO()
    colours = "standard" if is_terminal else None
    console = PrintableConsole(file=out, color_system=colours, highlight=False, width=200)
    console.print(f"[bold]{'x' + HOSTILE.replace('[', chr(92) + '[')}[/bold]")
    console.print(Text(HOSTILE), soft_wrap=True)
    printing.print_table(console, Table.make("", [Column("name")], [[HOSTILE]], ["red"]))
    printing.print_failure(console, "error", HOSTILE, HOSTILE)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert not FORBIDDEN.search(shown)
    assert shown.count("\ufffd[2J") >= 4
    assert ("\x1b[1m" in out.getvalue()) == is_terminal


def test_a_results_table_is_text(capfd):
    with mock.patch.object(printing, "Console", Console, create=True):
        show.print_rows(rows())
    out, _ = capfd.readouterr()
    assert not FORBIDDEN.search(out)


@pytest.mark.parametrize("name", [HOSTILE, "\udcff.toml", "a\u202e.csv"])
@pytest.mark.parametrize("name_of", ["suite", "recommend", "show", "report", "results"])
def test_a_name_that_is_not_there_is_one_message(name, name_of, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(name_of, name.replace("\0", ""), capfd=capfd)
    assert code == 2
    assert err.startswith("kbench: ")
    assert not FORBIDDEN.search(out + err)


def test_an_error_is_text_and_keeps_its_code(capfd):
    def fails():
        raise SuiteError(HOSTILE, "second")

    with (
        mock.patch("kbench.cli.app.app", fails),
        mock.patch.object(sys, "argv", ["kbench", "list"]),
        pytest.raises(SystemExit) as end,
    ):
        main()
    assert end.value.code == 2
    err = capfd.readouterr().err
    assert not FORBIDDEN.search(err)
    assert "kbench: second\n" in err


def test_text_for_mlflow_has_no_half_characters():
    assert stored_text("a\ud800\x00b") == "a\ufffd\ufffdb"


def helps():
    """Yield all help texts of the command line."""
    for words, found in all_commands():
        for each in found.params:
            yield f"{words} {each.name}", getattr(each, "help", None) or ""


def test_no_help_text_is_swallowed_as_markup(capfd):
    found = dict(helps())
    assert len(found) > 50
    for name, text in found.items():
        shown = "".join(command(*name.split(" ")[:-1], "--help", capfd=capfd)[1].split())
        # where a line ends at a hyphen, the next word follows it
        assert "".join(text.split()) in shown, name


def test_help_names_the_extra(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = command("suite", "--help", capfd=capfd)
    assert code == 0
    assert "the extra `dask`: kbench-core[dask]." in " ".join(out.split())


@pytest.mark.parametrize("value", ["3", "[1]", "true"])
def test_a_metric_that_is_none_is_named_in_words(value, tmp_path, capfd):
    path = tmp_path / "small.toml"
    path.write_text(f'metric = {value}\ndatasets = ["iris"]\nfeature_maps = ["rff"]\n')
    code, _, err = command("suite", path, "--dry-run", capfd=capfd)
    assert code == 2
    assert 'must be the name of a metric, such as "accuracy", or a table' in err
    assert "MetricTable" not in err


@pytest.mark.parametrize("table", ["protocol", "limits"])
def test_a_table_that_is_none_is_called_a_table(table, tmp_path, capfd):
    path = tmp_path / "small.toml"
    path.write_text(f'{table} = 3\ndatasets = ["iris"]\nfeature_maps = ["rff"]\n')
    code, _, err = command("suite", path, "--dry-run", capfd=capfd)
    assert code == 2
    assert f"{table} must be a table, got 3" in err


@pytest.mark.slow
def test_a_file_whose_name_is_no_text_runs(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{i % 7},{i % 3},{'ab'[i % 2]}\n" for i in range(60))
    path = tmp_path / "d\udcff\x1b[2J.csv"
    path.write_text(f"x,y,target\n{lines}")
    arguments = ["--target", "target", "--feature-map", "identity", "--learner", "ridge"]
    code, out, err = command(
        "recommend", path, *arguments, "--jobs", 1, "-o", "out.html", capfd=capfd
    )
    assert code == 0, err
    assert not FORBIDDEN.search(out + err)
    assert kbench.__version__ in (tmp_path / "out.html").read_text()

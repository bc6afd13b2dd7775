"""`kbench results`: the results of an experiment, in one of several forms."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.cli import completion
from kbench.cli.command_options import Datasets, Form, Format, Highlight, get_given, options_from
from kbench.cli.echo import echo
from kbench.errors import StoreError, SuiteError
from kbench.messages import plural, printable_json
from kbench.parameters import check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbench.records import Metric
    from kbench.results.imported import ImportedRow, RowPair
    from kbench.results.rows import Method, Row


@options_from("load_results")
def results(
    suite: Annotated[
        str,
        typer.Argument(
            help="Name of a suite, or of its MLflow experiment.",
            autocompletion=completion.complete_stored_suites,
        ),
    ],
    form: Format = Form.table,
    machine: str | None = None,
    outdated: bool = False,
    highlight: Highlight = None,
    leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Print one row per method.")
    ] = False,
    columns: Annotated[
        str,
        typer.Option(
            "--columns", metavar="A,B,...", help="Columns of --leaderboard, in this order."
        ),
    ] = "",
    families: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="NAME",
            help="Show only methods of this family in --leaderboard; repeatable.",
        ),
    ] = None,
    dataset: Datasets = None,
    max_fit_time: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Show only methods that fit within this many seconds, best first per dataset.",
        ),
    ] = None,
) -> None:
    """Print the results of a suite, read back from MLflow: one row per cell.

    With --leaderboard, one row per method: its rank and verdict, means over the
    datasets that all methods finished, times, size, and the number of candidates it searched.
    """
    from kbench import report
    from kbench.api.inputs import (
        find_plugin_methods,
        read_imported,
        read_results,
        read_suite_or_empty,
    )
    from kbench.cli import printing, show
    from kbench.cli.one_method import print_focus
    from kbench.execution.plugins import load_registry
    from kbench.report import tables
    from kbench.report.paper import select_methods, split_names
    from kbench.results.rows import columns as columns_of
    from kbench.results.rows import find_row_task
    from kbench.results.stored import Query

    if (columns or families) and not leaderboard:
        raise SuiteError(f"--{'columns' if columns else 'family'} is for --leaderboard")
    if leaderboard and machine == "all":
        raise SuiteError("--leaderboard compares the runs of one machine; name it with --machine")
    notice = partial(echo, err=True)
    try:
        stored = read_results(Query(suite, get_given(), machine, outdated=outdated, notice=notice))
    except (StoreError, SuiteError):
        if (
            leaderboard
            or highlight
            or not _print_imported_alone(suite, form, dataset or [], notice)
        ):
            raise
        return
    rows, metric = stored.rows, stored.metric
    read_others = partial(read_imported, stored.name, metric, notice)
    if dataset or max_fit_time is not None:
        if leaderboard or highlight:
            raise SuiteError(
                f"--{'dataset' if dataset else 'max-fit-time'} selects cells; leave out "
                f"--{'leaderboard' if leaderboard else 'highlight'}"
            )
        rows = _filter_rows(rows, dataset or [], max_fit_time, metric)
    if leaderboard:
        chosen = select_methods(rows, highlight, "highlight") if highlight else ()
        _print_leaderboard(rows, metric, form, split_names(columns), families or (), chosen)
    elif highlight:
        _print_highlighted(rows, highlight, metric, form, machine)
    elif form is Form.table:
        registry = load_registry()
        show.print_rows(rows, columns_of(metric, find_row_task(rows)))
        show.print_published(rows, read_suite_or_empty(suite, registry).published, metric)
        fewer = sum(row.n_splits_done < row.n_splits for row in rows)
        echo(
            f"\n{plural(len(rows), 'cell')}"
            + (f", {fewer} of them over fewer splits than planned" if fewer else "")
        )
        for row in rows:
            if row.status == "skipped" and row.error:
                name = f"{row.feature_map} + {row.learner} on {row.dataset}"
                echo(f"skipped: {name}: {row.error}")
        show.print_imported(_match_imported(rows, read_others(), dataset or [], metric), metric)
        if machine != "all" and (plugin_methods := find_plugin_methods(rows, registry)):
            print_focus(printing.console(), rows, plugin_methods, metric)
    elif form is Form.json:
        # with all fields, so that `kbench compare` can read it back
        full = [row.to_json(metric) for row in rows]
        beside = _match_imported(rows, read_others(), dataset or [], metric)
        echo(printable_json([*full, *(each.to_json(metric) for each in beside)], indent=1))
    else:
        echo(report.write(tables.cells(rows, metric), form.value))


def _match_imported(
    local: Sequence[Row], imported: Sequence[ImportedRow], datasets: Sequence[str], metric: Metric
) -> list[RowPair]:
    """Return the imported results on some datasets, or on all, next to the local ones."""
    from kbench.results.imported import match_local_rows

    def wanted(name: str) -> bool:
        return not datasets or any(fnmatchcase(name, pattern) for pattern in datasets)

    return match_local_rows(local, [each for each in imported if wanted(each.row.dataset)], metric)


def _print_imported_alone(
    suite: str, form: Form, datasets: Sequence[str], notice: Callable[[str], None]
) -> bool:
    """Print imported results if there are no local ones; return whether there are any."""
    from kbench import report
    from kbench.api.inputs import read_imported
    from kbench.cli import show
    from kbench.planning.component_refs import get_experiment
    from kbench.report.tables import imported_table

    imported = read_imported(get_experiment(suite), notice=notice)
    if not imported:
        return False
    metric = imported[0].metric
    beside = _match_imported([], imported, datasets, metric)
    if form is Form.table:
        show.print_imported(beside, metric)
        echo(f"\nno local results: `kbench suite {suite}` computes them")
    elif form is Form.json:
        echo(printable_json([each.to_json(metric) for each in beside], indent=1))
    else:
        echo(report.write(imported_table(beside, metric), form.value))
    return True


def _filter_rows(
    rows: list[Row], datasets: list[str], max_fit_time: float | None, metric: Metric
) -> list[Row]:
    """Return the cells of some datasets; with a limit of their time, the best ones first."""
    from kbench.report.paper import select_datasets

    wanted = select_datasets(rows, datasets, "dataset")
    rows = sorted(
        (row for row in rows if row.dataset in wanted), key=lambda row: wanted.index(row.dataset)
    )
    if max_fit_time is None:
        return rows
    check_number(max_fit_time, "--max-fit-time", above=0, error=SuiteError)
    fast = [
        row
        for row in rows
        if row.status == "ok"
        and (row.value("fit_time_s") or 0.0) <= max_fit_time
        and row.value(metric.name) is not None
    ]
    if not fast:
        raise SuiteError(f"no method fits within {max_fit_time:g} s")
    return sorted(
        fast, key=lambda row: (wanted.index(row.dataset), -metric.gain(row.value(metric.name)))
    )


def _print_highlighted(
    rows: list[Row], highlight: list[str], metric: Metric, form: Form, machine: str | None
) -> None:
    """Print some methods, each compared with all others."""
    from kbench.cli import printing
    from kbench.cli.one_method import print_focus
    from kbench.report.paper import select_methods

    if form is not Form.table:
        raise SuiteError("--highlight prints no table; leave out --format")
    if machine == "all":
        raise SuiteError("--highlight compares the runs of one machine; name it with --machine")
    print_focus(printing.console(), rows, select_methods(rows, highlight, "highlight"), metric)


def _print_leaderboard(
    rows: list[Row],
    metric: Metric,
    form: Form,
    columns: list[str],
    families: Sequence[str],
    focus: Sequence[Method],
) -> None:
    """Print one row per method, and over which datasets its numbers are."""
    from kbench import report
    from kbench.cli import printing
    from kbench.report.tables import answer_sentences, leaderboard_sentences, leaderboard_table
    from kbench.results.leaderboard import leaderboard

    board = leaderboard(rows, metric)
    made = leaderboard_table(board, columns, families, focus=focus)
    if form is not Form.table:
        echo(report.write(made, form.value))
        return
    lines = (board.select_families(families) if families else board).lines
    styles = {i: "bold" for i, line in enumerate(lines) if line.method in focus}
    narrow = [column for column in made.visible if not column.wide]
    shown = replace(made, columns=narrow, styles=styles)
    printing.print_table(printing.console(), shown, narrowed=True)
    echo("")
    for sentence in answer_sentences(board, focus) + leaderboard_sentences(board):
        echo(sentence)

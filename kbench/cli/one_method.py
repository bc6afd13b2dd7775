"""Printing of one method, of leaderboards, and of imported results."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial

from rich.console import Console
from rich.markup import escape

from kbench.api.inputs import read_imported
from kbench.api.running import collect_rows
from kbench.cli import printing, show
from kbench.cli.command_options import Form
from kbench.cli.echo import echo
from kbench.errors import SuiteError
from kbench.messages import plural, printable_json
from kbench.parameters import check_number
from kbench.planning.component_refs import get_experiment
from kbench.records import Metric, Suite
from kbench.registry.registry import Registry
from kbench.report import tables, write
from kbench.report.paper import select_datasets
from kbench.report.text import Column, Table, p_value, write_cell, write_signed
from kbench.results.imported import ImportedRow, RowPair, match_local_rows
from kbench.results.leaderboard import leaderboard
from kbench.results.one_vs_all import Against, Place, against, places
from kbench.results.rows import Method, Row, complete_metric
from kbench.runner import Options, Report

# Highlighted methods that are shown.
_MOST = 4


def print_beside(
    report: Report,
    whole: Suite,
    registry: Registry,
    options: Options,
    again: Sequence[str],
    added: Sequence[str] = (),
) -> None:
    """Print the methods of a run next to the suite's other methods with results.

    `again` is the command that computes the whole suite on the datasets of the run.
    """
    whole = replace(whole, limits=report.suite.limits)
    ours, foreign, n_unknown = collect_rows(whole, report, registry, options)
    metric = complete_metric(report.suite.compared)
    methods = list(dict.fromkeys(row.method for row in ours if row.status != "unavailable"))
    new = [method for method in methods if set(method) & set(added)]
    console = printing.console()
    if foreign or new:
        print_focus(console, [*ours, *foreign], new or methods, metric)
    for machine, n in Counter(row.machine for row in foreign).items():
        if machine != report.place:
            console.print(
                f"{plural(n, 'cell')} of other methods by {escape(machine)}: accuracies only, "
                "which kbench did not recompute",
                soft_wrap=True,
            )
    if n_unknown:
        console.print(
            f"\n{plural(n_unknown, 'cell')} of the suite's other methods: no result for this code "
            f"and data yet; `{escape(shlex.join(again))}` computes them",
            soft_wrap=True,
        )


def print_focus(
    console: Console, rows: Sequence[Row], methods: Sequence[Method], metric: Metric
) -> None:
    """Print how each method compares with all others, and its best and worst datasets."""
    for method in methods[:_MOST]:
        name = escape(" + ".join(method))
        if not (compared := against(rows, method, metric)):
            console.print(f"\n[bold]{name}[/bold]: no other method finished the same dataset")
            continue
        console.print(
            f"\n[bold]{name}[/bold] next to {plural(len(compared), 'other method')}, by "
            f"{escape(metric.words)}; won, tied and lost by the corrected t-test on each dataset",
            soft_wrap=True,
        )
        _print_against(console, compared, metric)
        _print_places(console, places(rows, method, metric), metric)
    if len(methods) > _MOST:
        rest = ", ".join(" + ".join(method) for method in methods[_MOST:])
        console.print(f"\nnot compared here: {escape(rest)}", soft_wrap=True)


def _print_against(console: Console, compared: Sequence[Against], metric: Metric) -> None:
    written = partial(write_signed, written=partial(write_cell, metric.name))
    counts = ["datasets", "won", "tied", "lost"]
    counts += ["untested"] if any(each.untested for each in compared) else []
    columns = [
        Column("other", "against", " + ".join),
        *(Column(name, numeric=True) for name in counts),
        Column("difference", written=written, numeric=True),
        Column("p", "p (adjusted)", p_value, True),
        Column("verdict", "over the datasets"),
    ]
    styles = {"better": "green", "worse": "red"}
    lines = {i: styles.get(each.verdict, "") for i, each in enumerate(compared)}
    rows = [{**vars(each), "datasets": each.n_datasets} for each in compared]
    table = Table("highlighted", "", columns, rows, styles=lines)
    printing.print_table(console, table, narrowed=True)


def _print_places(console: Console, places: Sequence[Place], metric: Metric) -> None:
    """Print the datasets with the best and the worst ranks of a method."""

    def line(place: Place) -> str:
        values = f"{write_cell(metric.name, place.value)}, {' + '.join(place.best)} "
        return (
            f"  {place.dataset}: rank {place.rank:g} of {place.of} "
            f"({values}{write_cell(metric.name, place.best_value)})"
        )

    n = 3 if len(places) > 6 else len(places)
    best, worst = places[:n], places[n:][-3:]
    console.print("best on:" if worst else "by dataset, with the best other method:")
    for place in best:
        console.print(escape(line(place)), soft_wrap=True)
    if worst:
        console.print("worst on:")
        for place in reversed(worst):
            console.print(escape(line(place)), soft_wrap=True)


def match_imported(
    local: Sequence[Row], imported: Sequence[ImportedRow], datasets: Sequence[str], metric: Metric
) -> list[RowPair]:
    """Return the imported results on some datasets, or on all, next to the local ones."""
    wanted = [
        each
        for each in imported
        if not datasets or any(fnmatchcase(each.row.dataset, pattern) for pattern in datasets)
    ]
    return match_local_rows(local, wanted, metric)


def print_imported_alone(
    suite: str, form: Form, datasets: Sequence[str], notice: Callable[[str], None]
) -> bool:
    """Print imported results if there are no local ones; return whether there are any."""
    if not (imported := read_imported(get_experiment(suite), notice=notice)):
        return False
    metric = imported[0].metric
    beside = match_imported([], imported, datasets, metric)
    if form is Form.table:
        show.print_imported(beside, metric)
        echo(f"\nno local results: `kbench suite {suite}` computes them")
    elif form is Form.json:
        echo(printable_json([each.to_json(metric) for each in beside], indent=1))
    else:
        echo(write(tables.imported_table(beside, metric), form.value))
    return True


def filter_rows(
    rows: Sequence[Row], datasets: Sequence[str], max_fit_time: float | None, metric: Metric
) -> list[Row]:
    """Return the cells of some datasets; with a limit of their time, the best ones first."""
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


def print_leaderboard(
    rows: Sequence[Row],
    metric: Metric,
    form: Form,
    columns: Sequence[str],
    families: Sequence[str],
    focus: Sequence[Method],
) -> None:
    """Print one row per method, and over which datasets its numbers are."""
    board = leaderboard(rows, metric)
    made = tables.leaderboard_table(board, columns, families, focus=focus)
    if form is not Form.table:
        echo(write(made, form.value))
        return
    lines = (board.select_families(families) if families else board).lines
    styles = {i: "bold" for i, line in enumerate(lines) if line.method in focus}
    narrow = [column for column in made.visible if not column.wide]
    shown = replace(made, columns=narrow, styles=styles)
    printing.print_table(printing.console(), shown, narrowed=True)
    echo("")
    for sentence in tables.answer_sentences(board, focus) + tables.leaderboard_sentences(board):
        echo(sentence)

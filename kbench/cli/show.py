"""Output at the end of `kbench suite`: the plan, or the results and where they are."""

import math
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.markup import escape

from kbench import machine
from kbench.cli import printing
from kbench.cli.echo import echo
from kbench.messages import format_memory, plural
from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, Metric, Published, Result
from kbench.registry.verbs import Verbs
from kbench.report import Column, Table, tables, write_cell
from kbench.report.content import NO_FAILURE, ReportData
from kbench.report.pages import collect_sections
from kbench.results import row_builders, stats
from kbench.results import rows as result_rows
from kbench.results.imported import RowPair
from kbench.results.leaderboard import leaderboard
from kbench.results.rows import COLUMNS, LABELS, PLAIN, TIMES, Row, complete_metric, find_row_task
from kbench.runner import Report

# With more cells than this, only the best of each dataset are printed.
ON_A_SCREEN = 24
_BEST = 5


def print_rows(
    rows: Sequence[Row],
    columns: Sequence[str] = COLUMNS,
    ranked: bool = False,
    metric: Metric = ACCURACY,
    shortened: bool = False,
) -> int:
    """Print rows as a table, one line per cell, each with its rank if `ranked`.

    If `shortened`, only the best of each dataset are printed, in the order of their ranks. The
    number of the rows that were not printed is returned.
    """
    places = result_rows.ranks(rows, metric) if ranked else [None] * len(rows)
    ranks = list(zip(rows, places, strict=True))
    ranks = _best(ranks) if shortened else ranks
    lines = []
    for row, place in ranks:
        line = {name: row.value(name) for name in columns} | {"rank": place}
        if row.outdated and "status" in columns:
            line["status"] = f"{row.status}, out of date"
        lines.append(line)
    styles = [
        "bold" if place == 1 else {"ok": "", "unavailable": "dim"}.get(row.status, "red")
        for row, place in ranks
    ]
    made = [tables.make_column(name) for name in columns]
    made += [Column("rank", written="{:g}".format, numeric=True)] if ranked else []
    table = Table("cells", "", made, lines, styles=dict(enumerate(styles)))
    printing.print_table(printing.console(), table, narrowed=True)
    return len(rows) - len(lines)


def _best(ranks: Sequence[tuple[Row, float | None]]) -> list[tuple[Row, float | None]]:
    """Return the best rows of each dataset; those without a rank are listed elsewhere."""
    best: list[tuple[Row, float | None]] = []
    for dataset in dict.fromkeys(row.dataset for row, _ in ranks):
        places = [(row, place) for row, place in ranks if row.dataset == dataset and place]
        best += sorted(places, key=lambda each: each[1] or 0.0)[:_BEST]
    return best


def print_report(
    report: Report,
    again: Sequence[str],
    beside: Callable[[], None],
    *,
    as_json: bool,
    filtered: bool,
    ranked: bool,
    every: bool = True,
    new: Sequence[str] = (),
) -> None:
    """Print the results of a run, where they are stored, what they show, and the next commands.

    `again` has the arguments that repeat the run; `beside` prints results of the suite's other
    methods; `new` names components whose methods get a verdict. A suite has more cells if
    `filtered`, and no more methods if `ranked`. Unless `every` is set, only the best of many
    cells are printed for each dataset.
    """
    metric = complete_metric(report.suite.compared)
    cells = (*report.cells, *report.foreign)
    rows = result_rows.sort_by_dataset([row_builders.make_row(cell, metric) for cell in cells])
    task = find_row_task(rows)
    columns: Sequence[str] = result_rows.columns(metric, task)
    if as_json:
        authors = {cell.cell.labels: _author(cell) for cell in report.foreign}
        printing.print_end_event(
            report,
            [
                {name: row.value(name) for name in columns}
                | ({"author": authors[row.labels]} if row.labels in authors else {})
                for row in rows
            ],
            runs=sum(delivered.stored for delivered in report.deliveries),
        )
        return
    console = printing.console()
    if with_data := [row for row in rows if row.status != "unavailable"]:
        console.print(f"\n[bold]{escape(report.suite.name)}[/bold]: results")
        hidden = {"n_splits_done", "n_splits", "peak_memory_mib"}
        if metric != PLAIN[task]:
            hidden |= {PLAIN[task].sd}
            # errors in the target's units are worth their column
            hidden |= set() if PLAIN[task].in_units else {PLAIN[task].name}
        columns = [name for name in columns if name not in hidden]
        shortened = ranked and not every and len(with_data) > ON_A_SCREEN
        if omitted := print_rows(with_data, columns, ranked, metric, shortened):
            console.print(
                f"the best {_BEST} of each dataset; --all prints {plural(omitted, 'more cell')}"
            )
    if unequal := result_rows.unequal_splits(rows):
        places = ", ".join(f"{name} ({difference})" for name, difference in unequal.items())
        words = "methods differ in their splits, so their means are over different test rows"
        console.print(f"{words}: {escape(places)}", soft_wrap=True)
    _unavailable(console, report)
    _summary(console, rows, metric)
    print_published(rows, report.suite.published, metric)
    beside()
    _counts(console, report, rows)
    _failures(console, report)
    printing.print_deliveries(console, report)
    if ranked:
        # what the tests show of all methods, and of those that have a new component
        focus = dict.fromkeys(row.method for row in rows if set(row.method) & set(new))
        for i, sentence in enumerate(tables.answer_sentences(leaderboard(rows, metric), focus)):
            label, colon, rest = sentence.partition(": ")
            bold = f"[bold]{escape(label)}[/bold]{colon}{escape(rest)}" if colon else escape(label)
            console.print(bold if i else f"\n{bold}", soft_wrap=True)
    repeat = shlex.join(["kbench", "suite", *again])
    located = [word for delivered in report.deliveries for word in delivered.options]
    suite = shlex.join([report.suite.name, *located])
    any_stored = any(delivered.stored for delivered in report.deliveries) or not report.deliveries
    if report.interrupted:
        commands = [(repeat, "continue where this run stopped")]
    else:
        commands = _retries(report, repeat, again)
        if any(row.status == "unavailable" for row in rows):
            commands.insert(0, (repeat, "repeat when the data is available"))
    if filtered and any_stored:
        commands.append(
            (f"kbench results {suite}", "these results next to the other methods of the suite")
        )
    if any_stored:
        commands += [
            (f"kbench results {suite} --format csv", "the table; also as json, latex, markdown"),
            (f"kbench report {suite} --open", "one page with tables, tests and charts"),
        ]
    commands += [pair for delivered in report.deliveries for pair in delivered.commands]
    printing.print_next(console, commands)


def print_origins(report: Report) -> None:
    """Print which cells reuse imported accuracies, and their authors."""
    console = printing.console()
    console.print("\n[bold]imported results[/bold]: accuracies only, not recomputed here")
    lines = [(*cell.cell.labels, _author(cell)) for cell in report.foreign[:ON_A_SCREEN]]
    columns = [Column(name) for name in (*LABELS, "author")]
    printing.print_table(console, Table.make("imported", columns, lines))
    if more := report.foreign[ON_A_SCREEN:]:
        console.print(f"and {plural(len(more), 'more cell')}")


def _author(cell: PlannedCell) -> str:
    return ", ".join(dict.fromkeys(result.machine for result in cell.done))


def _retries(report: Report, repeat: str, again: Sequence[str]) -> list[tuple[str, str]]:
    """Return the commands that compute again what failed, or was skipped."""
    commands = []
    limit = report.suite.limits.task_memory_mib
    # memory that is enough is not the limit that was hit
    by_memory = [each for each in report.cells if each.status == "out_of_memory"]
    by_memory += [c for c in report.cells if c.problem and c.cost and c.cost.exceeds(limit)]
    others = {c.status for c in report.cells} - {"ok", "unavailable", "skipped", "out_of_memory"}
    if others or any(added.failed for added in report.added):
        commands.append((f"{repeat} --retry-failed", "compute failed tasks again"))
    if by_memory:
        needed = max(_sufficient_mib(cell, limit) for cell in by_memory)
        words = list(again)
        if "--memory-limit" in words:
            place = words.index("--memory-limit")
            del words[place : place + 2]
        command = shlex.join(["kbench", "suite", *words, "--memory-limit", str(needed)])
        total = machine.memory_mib()
        too_much = (
            f", more than the {format_memory(total)} of this machine" if 0 < total < needed else ""
        )
        label = f"compute {plural(len(by_memory), 'cell')} with {format_memory(needed)} of memory"
        commands.append((command, f"{label}{too_much}"))
    return commands


def _sufficient_mib(cell: PlannedCell, limit_mib: float) -> int:
    """Return a limit of memory that should suffice, in whole GiB.

    Where a prediction was wrong, or only says what is needed at least, it is twice the limit.
    """
    needed = 2 * limit_mib
    cost = cell.cost
    if cost is not None and cost.memory_mib.value > limit_mib:
        needed = max(cost.memory_mib.high, 1.05 * cost.memory_mib.value)
        needed *= 1.5 if cost.is_least else 1.0
    return 1024 * math.ceil(needed / 1024)


def _unavailable(console: Console, report: Report) -> None:
    """Print which datasets are unavailable, and why; one row per dataset."""
    reasons = result_rows.group_values(
        (planned.cell.dataset.label, planned.problem.reason)
        for planned in report.cells
        if planned.problem and planned.problem.status == "unavailable"
    )
    if reasons:
        console.print("\n[bold]unavailable[/bold]")
        lines = [(name, plural(len(why), "cell"), why[0]) for name, why in reasons.items()]
        columns = [Column(name) for name in ("dataset", "cells", "reason")]
        table = Table.make("unavailable", columns, lines, ["dim"] * len(lines))
        printing.print_table(console, table, header=False)


def _summary(console: Console, rows: Sequence[Row], metric: Metric) -> None:
    """Compare the methods on the datasets that all methods finished, as reports do."""
    scores = stats.scores(rows, metric)
    standings = stats.standings(scores, rows)
    if not scores.has_one_unit:
        console.print(
            f"\n{escape(metric.name)} is in the units of each dataset's target: methods are not "
            "compared over datasets",
            soft_wrap=True,
        )
    if not standings:
        return
    datasets, groups = len(scores.datasets), len(scores.groups)
    grouped = (
        "" if groups == datasets else f" (related ones are averaged, so they count as {groups})"
    )
    console.print(
        f"\n[bold]methods[/bold] on the {plural(datasets, 'dataset')} that all methods "
        f"finished{grouped}: "
        f"{escape(', '.join(scores.datasets))}"
        "\nTimes are geometric means; `kbench report` has the tests.",
        soft_wrap=True,
    )
    for other, method in scores.same:
        console.print(
            f"left out: {escape(' + '.join(other))}, equal to {escape(' + '.join(method))} up to a "
            "rotation of the features",
            soft_wrap=True,
        )
    if unmeasured := stats.list_unmeasured(rows, metric):
        console.print(
            f"not ranked ({escape(tables.lacking(metric))}): "
            f"{escape(', '.join(map(' + '.join, unmeasured)))}",
            soft_wrap=True,
        )
    columns = [
        *map(Column, LABELS[1:]),
        Column("rank", written="{:.2f}".format, numeric=True),
        Column("mean", metric.name, partial(write_cell, metric.name), True),
        *(tables.make_column(name) for name in TIMES),
    ]
    rows_of = [
        {**vars(each), **dict(zip(LABELS[1:], each.method, strict=True))} for each in standings
    ]
    printing.print_table(console, Table("methods", "", columns, rows_of))


def print_imported(beside: Sequence[RowPair], metric: Metric) -> None:
    """Print imported results, each next to the local row that it may be compared with."""
    if not beside:
        return
    made = tables.imported_table(beside, metric)
    console = printing.console()
    console.print("\n[bold]imported results[/bold]")
    console.print(escape(tables.IMPORTED), soft_wrap=True)
    refuted = {i: "red" for i, each in enumerate(beside) if each.other.is_refuted}
    printing.print_table(console, replace(made, styles=refuted), narrowed=True)


def print_published(
    rows: Sequence[Row], figures: Sequence[Published], metric: Metric = ACCURACY
) -> None:
    """Print how features compare the results with published ones, if a suite has any."""
    if not figures:
        return
    data = ReportData("", list(rows), figures, metric=metric)
    verbs, console = Verbs(partial(echo, err=True)), printing.console()
    for feature, section in collect_sections(data, verbs):
        if section.within == "terminal" and section.list_parts():
            try:
                console.print(f"\n[bold]{escape(section.title)}[/bold]")
                for part in section.list_parts():
                    if isinstance(part, str):
                        console.print(escape(part), soft_wrap=True)
                    elif isinstance(part, Table):
                        printing.print_table(console, part, narrowed=True)
            except Exception as error:
                verbs.fail(feature.name, f"{section.title}: {type(error).__name__}: {error}")


def _counts(console: Console, report: Report, rows: Sequence[Row]) -> None:
    """Print the number of cells by status, and of cells with a warning."""
    by_status = Counter(row.status for row in rows)
    statuses = ", ".join(f"{count} {status}" for status, count in by_status.items())
    line = f"\n{plural(len(rows), 'cell')} planned: {statuses or 'none'}; {report.seconds:.0f} s"
    if report.foreign:
        line += f"; {plural(len(report.foreign), 'cell')} imported, without times"
    counts = {
        "fewer splits than planned, so not ranked: {}": sum(
            0 < row.n_splits_done < row.n_splits for row in rows
        ),
        "in {} a fit did not converge": sum(row.converged is False for row in rows),
        "in {} the search stopped at its time limit": _n_cells(
            report, lambda result: result.metrics.get("search_complete", 1.0) < 1.0
        ),
        "in {} some candidates of the search failed: see the notes": _n_cells(
            report, lambda result: result.metrics.get("search_failures", 0.0) > 0
        ),
        "the machine was loaded during {}: their times are less reliable": _n_cells(
            report, lambda result: bool(result.details.contention)
        ),
    }
    for template, count in counts.items():
        if count:
            line += "; " + template.format(plural(count, "cell"))
    console.print(line, soft_wrap=True)
    if report.interrupted:
        console.print("interrupted: finished results are stored")


def _n_cells(report: Report, condition: Callable[[Result], bool]) -> int:
    """Count the cells with an ok result that meets a condition."""
    return sum(any(map(condition, cell.done)) for cell in report.cells)


def _failures(console: Console, report: Report) -> None:
    """Print which cells failed or would exceed a limit, and why: a line for each."""
    for planned in report.cells:
        # other cells are skipped because the time of the run was over
        is_refused = planned.status == "skipped" and planned.problem is not None
        if is_refused or planned.status not in NO_FAILURE:
            errors = [result.error for result in planned.results.values() if not result.is_ok]
            errors += [planned.problem.reason] if planned.problem else []
            printing.print_failure(console, planned.status, planned.cell.name, (*errors, "")[0])

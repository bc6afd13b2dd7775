"""Output at the end of `kbench suite`: the plan, or the results and where they are."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape

from kbench.cli import printing
from kbench.messages import counted
from kbench.planning.cost import of_interval, of_memory
from kbench.planning.planner import PlannedCell
from kbench.records import ACCURACY, Measure, Published, Result
from kbench.report import shown, tables
from kbench.results import order, sources, stats
from kbench.results.rows import COLUMNS, PLAIN, Row, known_measure, task_of
from kbench.results.rows import columns as columns_of
from kbench.runner import Report


def print_rows(
    rows: Sequence[Row],
    columns: Sequence[str] = COLUMNS,
    ranked: bool = False,
    measure: Measure = ACCURACY,
) -> None:
    """Print rows as a table, one line per cell, each with its rank if `ranked`."""
    places = order.ranks(rows, measure) if ranked else [None] * len(rows)
    lines = []
    for row, place in zip(rows, places, strict=True):
        values = [shown(name, row.value(name)) for name in columns]
        if ranked:
            values.append("" if place is None else f"{place:g}")
        style = {"ok": "", "unavailable": "dim"}.get(row.status, "red")
        lines.append((values, "bold" if place == 1 else style))
    headings = {name: name not in COLUMNS[:4] for name in columns}
    printing.print_table(printing.console(), headings | ({"rank": True} if ranked else {}), lines)


def print_report(
    report: Report, again: Sequence[str], as_json: bool, filtered: bool, with_store: bool
) -> None:
    """Print the results of a run, where they are, and the next commands.

    `again` has the arguments of `kbench suite` that repeat the run; `filtered` says that
    the suite has more cells than were asked for, `with_store` that the user named the store.
    """
    measure = known_measure(report.suite.compared)
    rows = order.by_dataset([sources.of_cell(cell, measure) for cell in report.cells])
    task = task_of(rows)
    columns = columns_of(measure, task)
    delivered = report.delivered
    assert delivered is not None
    if as_json:
        printing.print_end_event(
            report,
            [{name: row.value(name) for name in columns} for row in rows],
            runs=delivered.stored,
        )
        return
    console = printing.console()
    with_data = [row for row in rows if row.status != "unavailable"]
    if with_data:
        console.print(f"\n[bold]{escape(report.suite.name)}[/bold]: results")
        hidden = {"n_splits_done", "n_splits", "peak_memory_mb"}
        if measure != PLAIN[task]:
            hidden |= {PLAIN[task].sd}
            # errors in the target's units are worth their column
            hidden |= set() if PLAIN[task].in_units else {PLAIN[task].name}
        print_rows(with_data, [name for name in columns if name not in hidden], True, measure)
    _unequal_splits(console, rows)
    _unavailable(console, report)
    _summary(console, rows, measure)
    print_published(rows, report.suite.published, measure)
    _counts(console, report, rows)
    _failures(console, report)
    console.print(f"\nMLflow store:  {escape(delivered.uri)}", soft_wrap=True)
    console.print(
        f"experiment:    {escape(delivered.experiment)}, {counted(delivered.stored, 'run')} "
        f"({delivered.written} written now)"
    )
    printing.print_undelivered(console, delivered, "suite")
    repeat = shlex.join(["kbench", "suite", *again])
    store = ["--store", delivered.uri] if with_store else []
    suite = shlex.join([report.suite.name, *store])
    commands = []
    if report.interrupted:
        commands.append((repeat, "continue where this run stopped"))
    if any(row.status == "unavailable" for row in rows):
        commands.append((repeat, "repeat when the missing data is available"))
    if report.failed and not report.interrupted:
        commands.append((f"{repeat} --retry-failed", "compute failed tasks again"))
    if filtered:
        commands.append((f"kbench results {suite}", "these results beside others of the suite"))
    commands += [
        (f"kbench results {suite} --format csv", "the table; also as json, latex, markdown"),
        (f"kbench report {suite} --open", "one page with tables, tests and charts"),
        (f"kbench ui {suite}", "MLflow's pages of these runs"),
    ]
    printing.print_next(console, commands)


def _unequal_splits(console: Console, rows: Sequence[Row]) -> None:
    """Print the datasets whose means are not over the same splits."""
    unequal = order.unequal_splits(rows)
    if unequal:
        places = ", ".join(f"{name} ({difference})" for name, difference in unequal.items())
        console.print(
            "methods differ in their splits, so their means are over different test rows: "
            f"{escape(places)}",
            soft_wrap=True,
        )


def _unavailable(console: Console, report: Report) -> None:
    """Print which datasets are unavailable, and why; one line per dataset."""
    reasons: dict[str, list[str]] = {}
    for planned in report.cells:
        if planned.problem and planned.problem.status == "unavailable":
            reasons.setdefault(planned.cell.dataset.label, []).append(planned.problem.reason)
    if reasons:
        console.print("\n[bold]unavailable[/bold]")
        lines = [([name, counted(len(w), "cell"), w[0]], "dim") for name, w in reasons.items()]
        headings = dict.fromkeys(("dataset", "cells", "reason"), False)
        printing.print_table(console, headings, lines, header=False)


def _summary(console: Console, rows: Sequence[Row], measure: Measure) -> None:
    """Compare the methods over the datasets that all of them finished, as reports do."""
    scores = stats.scores(rows, measure)
    standings = stats.standings(scores, rows)
    if not scores.has_one_unit:
        console.print(
            f"\n{escape(measure.name)} is in the units of each dataset's target: methods are not "
            "compared over datasets",
            soft_wrap=True,
        )
    if not standings:
        return
    datasets, groups = len(scores.datasets), len(scores.groups)
    grouped = "" if groups == datasets else f", which count as {groups}: related ones are averaged"
    console.print(
        f"\n[bold]methods[/bold] over the {counted(datasets, 'dataset')} that all of them "
        f"finished{grouped}: "
        f"{escape(', '.join(scores.datasets))}"
        "\nTimes are geometric means; `kbench report` tests the differences.",
        soft_wrap=True,
    )
    for left, kept in scores.same:
        console.print(
            f"left out: {escape(' + '.join(left))}, which is {escape(' + '.join(kept))} up to a "
            "rotation of the features",
            soft_wrap=True,
        )
    unmeasured = stats.unmeasured(rows, measure)
    if unmeasured:
        console.print(
            f"without a rank ({escape(tables.lacking(measure))}): "
            f"{escape(', '.join(map(' + '.join, unmeasured)))}",
            soft_wrap=True,
        )
    headings = {"feature_map": False, "learner": False}
    headings |= dict.fromkeys(("rank", measure.name, "fit_time_s", "predict_time_s"), True)
    lines = [
        (
            [
                *standing.method,
                f"{standing.rank:.2f}",
                shown(measure.name, standing.mean),
                shown("fit_time_s", standing.fit_time_s),
                shown("predict_time_s", standing.predict_time_s),
            ],
            "",
        )
        for standing in standings
    ]
    printing.print_table(console, headings, lines)


def print_published(
    rows: Sequence[Row], figures: Sequence[Published], measure: Measure = ACCURACY
) -> None:
    """Print ours beside the published figures, where a suite has any."""
    compared = tables.published(rows, figures, measure)
    if not compared.rows:
        return
    console = printing.console()
    console.print("\n[bold]ours beside the published figures[/bold]")
    columns = [column for column in compared.columns if column.name not in ("measure", "source")]
    headings = {column.heading: bool(column.numeric) for column in columns}
    lines = [
        ([compared.value(i, column) for column in columns], "") for i in range(len(compared.rows))
    ]
    printing.print_table(console, headings, lines)
    for source in dict.fromkeys(row["source"] for row in compared.rows if row["source"]):
        console.print(f"published: {escape(source)}", soft_wrap=True)
    console.print("z = (ours - paper) / sqrt(sd^2 (1/n_ours + 1/n_paper)), sd of one run, ours")


def _counts(console: Console, report: Report, rows: Sequence[Row]) -> None:
    """Print the number of cells by status, and of cells whose numbers are less certain."""
    by_status = Counter(row.status for row in rows)
    statuses = ", ".join(f"{count} {status}" for status, count in by_status.items())
    text = f"\n{counted(len(rows), 'cell')} planned: {statuses or 'none'}; {report.seconds:.0f} s"
    for template, count in (
        (
            "fewer splits than planned and no rank: {}",
            sum(0 < row.n_splits_done < row.n_splits for row in rows),
        ),
        ("in {} a fit did not converge", sum(row.converged is False for row in rows)),
        (
            "in {} the search was stopped by its budget",
            _n_cells(report, lambda result: result.measures.get("search_complete", 1.0) < 1.0),
        ),
        (
            "in {} candidates of a search failed and were not chosen: see the notes",
            _n_cells(report, lambda result: result.measures.get("search_failures", 0.0) > 0),
        ),
        (
            "the machine was busy during {}: times are less certain there",
            _n_cells(report, lambda result: bool(result.details.contention)),
        ),
    ):
        if count:
            text += "; " + template.format(counted(count, "cell"))
    console.print(text, soft_wrap=True)
    if report.interrupted:
        console.print("interrupted: finished results are kept")


def _n_cells(report: Report, condition: Callable[[Result], bool]) -> int:
    """Count the cells with an ok result that meets a condition."""
    return sum(any(map(condition, cell.done)) for cell in report.cells)


def _failures(console: Console, report: Report) -> None:
    """Print in a line each which cells failed or could not fit into memory, and why."""
    for planned in report.cells:
        # others are skipped because the run ended before them
        is_refused = planned.status == "skipped" and planned.problem is not None
        if is_refused or planned.status not in ("ok", "unavailable", "skipped"):
            errors = [result.error for result in planned.results.values() if not result.is_ok]
            errors += [planned.problem.reason] if planned.problem else []
            printing.print_failure(console, planned.status, planned.cell.name, (*errors, "")[0])


def print_plan(report: Report, as_json: bool) -> None:
    """Print the tasks of a run, those that are known, and what the others may cost."""
    rows: list[dict[str, Any]] = [
        {
            "dataset": planned.cell.dataset.label,
            "feature_map": planned.cell.feature_map.label,
            "learner": planned.cell.learner.label,
            "tasks": len(planned.missing),
            "known": len(planned.results),
            "note": _note(planned),
        }
        for planned in report.cells
    ]
    estimate = _estimated_s(report)
    if as_json:
        every = [row | _plain_cost(cell) for row, cell in zip(rows, report.cells, strict=True)]
        print(json.dumps({"cells": every, "estimated_s": estimate}))
        return
    headings = {"dataset": False, "feature_map": False, "learner": False}
    headings |= {"tasks": True, "known": True}
    lines = [[*map(str, row.values())] for row in rows]
    if any(cell.cost for cell in report.cells):
        headings |= {"memory of a task": True, "time of a task": True}
        for line, cell in zip(lines, report.cells, strict=True):
            line[-1:-1] = _written_cost(cell)
    headings["note"] = False
    console = printing.console()
    printing.print_table(console, headings, [(line, "") for line in lines])
    tasks, known = (sum(row[key] for row in rows) for key in ("tasks", "known"))
    cells = counted(len(rows), "cell")
    text = f"\n{cells}, {counted(tasks, 'task')} to compute, {known} already known"
    if tasks:
        text += (
            "; no time is known yet to estimate from"
            if estimate is None
            else f"; about {estimate:.0f} s of work for one slot"
        )
    console.print(text)


def _note(cell: PlannedCell) -> str:
    if cell.problem:
        skipped = "skipped: " if cell.problem.status == "skipped" else ""
        return f"{skipped}{cell.problem.reason}"
    if cell.dataset is None:
        return "not in the cache, to be fetched"
    is_slow = cell.cost is not None and cell.cost.seconds is None
    return "no time: the search on a sample took too long" if is_slow else ""


def _written_cost(cell: PlannedCell) -> tuple[str, str]:
    cost = cell.cost
    if cost is None:
        return "", ""
    seconds = "" if cost.seconds is None else of_interval(cost.seconds)
    return of_memory(cost.memory_mb.value), seconds


def _plain_cost(cell: PlannedCell) -> dict[str, Any]:
    """Return the predicted cost of a task as JSON values."""
    return {
        "memory_mb": asdict(cell.cost.memory_mb) if cell.cost else None,
        "time_s": asdict(cell.cost.seconds) if cell.cost and cell.cost.seconds else None,
    }


def _estimated_s(report: Report) -> float | None:
    """Estimate the work: predicted, or the median of the same method, else of all tasks.

    None where tasks are left of which nothing is known.
    """
    seconds_of: dict[tuple[str, str], list[float]] = {}
    for planned in report.cells:
        seconds = [result.seconds for result in planned.results.values()]
        seconds_of.setdefault(_method(planned), []).extend(seconds)
    all_seconds = [value for values in seconds_of.values() for value in values]
    total = 0.0
    for planned in report.cells:
        known = seconds_of[_method(planned)] or all_seconds
        if planned.cost and planned.cost.seconds:
            total += len(planned.missing) * planned.cost.seconds.value
        elif known:
            total += len(planned.missing) * median(known)
        elif planned.missing:
            return None
    return total


def _method(cell: PlannedCell) -> tuple[str, str]:
    return cell.cell.feature_map.name, cell.cell.learner.name

"""What stands on the screen at the end: the plan, or the results and where they are."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import compress
from statistics import median
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kbench.messages import counted
from kbench.records import ACCURACY, Measure, Published
from kbench.report import shown, tables
from kbench.results import order, sources, stats
from kbench.results.rows import COLUMNS, Row
from kbench.results.rows import columns as columns_of
from kbench.runner import Report

_LEAST_NEEDED = (
    "n_components",
    "peak_memory_mb",
    "search_time_s",
    "n_splits",
    "n_splits_done",
    "predict_time_s",
    "sd",
    "converged",
    "fit_time_s",
)
"""Ends of the columns that a narrow terminal does without, in this order."""


def _is_spare(name: str) -> bool:
    return name.endswith(_LEAST_NEEDED)


def _least_needed(name: str) -> int:
    return next(place for place, end in enumerate(_LEAST_NEEDED) if name.endswith(end))


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        # a pipe or a file has no width: nothing is cut or left out there
        console = Console(highlight=False, width=10_000)
    return console


def table(
    rows: Sequence[Row],
    columns: Sequence[str] = COLUMNS,
    ranked: bool = False,
    measure: Measure = ACCURACY,
) -> None:
    """Print rows as a table, one line per cell.

    Parameters
    ----------
    rows : sequence of Row
    columns : sequence of str
    ranked : bool
        Add the rank of each complete row within its dataset.
    measure : Measure, optional
        What is compared.
    """
    places = order.ranks(rows, measure) if ranked else [None] * len(rows)
    lines = []
    for row, place in zip(rows, places, strict=True):
        values = [shown(name, row.value(name)) for name in columns]
        if ranked:
            values.append("" if place is None else f"{place:g}")
        style = "" if row.status == "ok" else "dim" if row.status == "unavailable" else "red"
        lines.append((values, "bold" if place == 1 else style))
    headings = {name: name not in COLUMNS[:4] for name in columns}
    _print_lines(_console(), headings | ({"rank": True} if ranked else {}), lines)


def _print_lines(
    console: Console, headings: Mapping[str, bool], lines: Sequence[tuple[Sequence[str], str]]
) -> None:
    """Print aligned values, a line each; numbers are never broken.

    Parameters
    ----------
    console : Console
    headings : mapping of str to bool
        Whether each column stands to the right.
    lines : sequence of (values, style)
    """
    widths = {
        name: max(map(cell_len, column))
        for name, *column in zip(headings, headings, *(values for values, _ in lines), strict=True)
    }
    # a long name may be folded, a number may not
    needed = {name: width if headings[name] else min(width, 24) for name, width in widths.items()}
    left_out = []
    for name in sorted(filter(_is_spare, widths), key=_least_needed):
        if sum(needed.values()) + 2 * len(needed) <= console.width:
            break
        del widths[name], needed[name]
        left_out.append(name)
    if left_out:
        kept = [name in widths for name in headings]
        lines = [(list(compress(values, kept)), style) for values, style in lines]
        headings = {name: headings[name] for name in widths}
        _print_lines(console, headings, lines)
        console.print(f"[dim]left out at this width: {', '.join(left_out)}[/dim]")
        return
    if sum(widths.values()) + 2 * len(widths) > console.width:
        drawn = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
        for name, right in headings.items():
            drawn.add_column(
                escape(name),
                justify="right" if right else "left",
                overflow="fold",
                no_wrap=right,
                min_width=widths[name] if right else None,
            )
        for values, style in lines:
            drawn.add_row(*map(escape, values), style=style)
        console.print(drawn)
        return
    # a table of rich would look the same and take a second for some hundred lines
    text = Text()
    for values, style in ((list(headings), "bold"), *lines):
        padded = []
        for value, width, right in zip(values, widths.values(), headings.values(), strict=True):
            gap = " " * (width - cell_len(value))
            padded.append(gap + value if right else value + gap)
        text.append("  ".join(padded).rstrip() + "\n", style)
    console.print(text, end="", soft_wrap=True)


def report(found: Report, name: str, as_json: bool, filtered: bool = False) -> None:
    """Show the results of a run, where they are, and what to type next.

    Parameters
    ----------
    found : Report
    name : str
        What the user called the suite.
    as_json : bool
        Print one JSON line instead.
    filtered : bool, default False
        Whether the suite has more cells than were asked for.
    """
    measure = found.suite.measure
    rows = order.by_dataset([sources.of_cell(each, measure) for each in found.cells])
    columns = columns_of(measure)
    delivered = found.delivered
    assert delivered is not None
    if as_json:
        end = {
            "event": "interrupted" if found.interrupted else "done",
            "rows": [{name: row.value(name) for name in columns} for row in rows],
            "store": delivered.uri,
            "experiment": delivered.experiment,
            "runs": delivered.stored,
            "problem": delivered.problem,
            "seconds": found.seconds,
        }
        print(json.dumps(end), flush=True)
        return
    console = _console()
    with_data = [row for row in rows if row.status != "unavailable"]
    if with_data:
        console.print(f"\n[bold]{escape(found.suite.name)}[/bold]: results")
        hidden = {"n_splits_done", "n_splits", "peak_memory_mb"}
        if measure != ACCURACY:
            hidden |= {ACCURACY.name, ACCURACY.sd}
        shown_here = [name for name in columns if name not in hidden]
        table(with_data, shown_here, ranked=True, measure=measure)
    _unequal_splits(console, rows)
    _unavailable(console, found)
    _summary(console, rows, measure)
    published(rows, found.suite.published, measure)
    _counts(console, found, rows)
    _failures(console, found)

    console.print(f"\nMLflow store:  {escape(delivered.uri)}", soft_wrap=True)
    console.print(
        f"experiment:    {escape(delivered.experiment)}, {counted(delivered.stored, 'run')} "
        f"({delivered.written} written now)"
    )
    if delivered.problem:
        console.print(
            f"[red]not all runs are in the store: {escape(delivered.problem)}[/red]\n"
            "Nothing is lost: the journal keeps them. `kbench sync` delivers them, and so does "
            "the next `kbench suite` with this store.",
            soft_wrap=True,
        )
    label, file = shlex.quote(found.suite.name), shlex.quote(name)
    console.print("\nnext:")
    if found.interrupted:
        console.print(f"  kbench suite {escape(file)}    goes on where this stopped")
    if any(row.status == "unavailable" for row in rows):
        console.print(f"  kbench suite {escape(file)}    again, once the missing data can be had")
    if found.failed and not found.interrupted:
        console.print(f"  kbench suite {escape(file)} --retry-failed")
    if filtered:
        console.print(f"  kbench results {escape(label)}    shows these beside the suite's others")
    console.print(f"  kbench results {escape(label)} --format csv|json|latex|markdown")
    console.print(f"  kbench report {escape(label)} --open    one page with tables, tests, charts")
    console.print(f"  kbench ui {escape(label)}    opens MLflow's pages on these runs")


def _unequal_splits(console: Console, rows: Sequence[Row]) -> None:
    """Say where the means of one dataset are not over the same splits."""
    unequal = order.unequal_splits(rows)
    if unequal:
        places = ", ".join(f"{name} ({low} to {high})" for name, (low, high) in unequal.items())
        console.print(
            f"methods differ in their number of splits, so their means are not over the same: "
            f"{escape(places)}",
            soft_wrap=True,
        )


def _unavailable(console: Console, found: Report) -> None:
    """Say which data could not be had, and why; one line per dataset."""
    reasons: dict[str, list[str]] = {}
    for each in found.cells:
        if each.problem and each.problem.status == "unavailable":
            reasons.setdefault(each.cell.dataset.label, []).append(each.problem.reason)
    if not reasons:
        return
    console.print("\n[bold]unavailable[/bold]")
    drawn = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, show_header=False)
    for dataset, why in reasons.items():
        drawn.add_row(escape(dataset), counted(len(why), "cell"), escape(why[0]), style="dim")
    console.print(drawn)


def _summary(console: Console, rows: Sequence[Row], measure: Measure) -> None:
    """Compare the methods over the datasets that all of them finished, as reports do."""
    scores = stats.scores(rows, measure)
    standings = stats.standings(scores, rows)
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
    headings = {"feature_map": False, "learner": False}
    headings |= dict.fromkeys(("rank", measure.name, "fit_time_s", "predict_time_s"), True)
    lines = [
        (
            [
                *each.method,
                f"{each.rank:.2f}",
                shown(measure.name, each.mean),
                shown("fit_time_s", each.fit_time_s),
                shown("predict_time_s", each.predict_time_s),
            ],
            "",
        )
        for each in standings
    ]
    _print_lines(console, headings, lines)


def published(
    rows: Sequence[Row], figures: Sequence[Published], measure: Measure = ACCURACY
) -> None:
    """Print ours beside the published figures, where a suite has any."""
    compared = tables.published(rows, figures, measure)
    if not compared.rows:
        return
    console = _console()
    console.print("\n[bold]ours beside the published figures[/bold]")
    drawn = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    columns = [column for column in compared.columns if column.name not in ("measure", "source")]
    for column in columns:
        drawn.add_column(column.heading, justify="right" if column.numeric else "left")
    for i in range(len(compared.rows)):
        drawn.add_row(*(escape(compared.value(i, column)) for column in columns))
    console.print(drawn)
    for source in dict.fromkeys(row["source"] for row in compared.rows if row["source"]):
        console.print(f"published: {escape(source)}", soft_wrap=True)
    console.print("z = (ours - paper) / sqrt(sd^2 (1/n_ours + 1/n_paper)), sd of one run, ours")


def _counts(console: Console, found: Report, rows: Sequence[Row]) -> None:
    by_status: dict[str, int] = {}
    for row in rows:
        by_status[row.status] = by_status.get(row.status, 0) + 1
    statuses = ", ".join(f"{count} {status}" for status, count in by_status.items())
    text = f"\n{counted(len(rows), 'cell')} planned: {statuses or 'none'}; {found.seconds:.0f} s"
    partial = sum(0 < row.n_splits_done < row.n_splits for row in rows)
    if partial:
        text += f"; fewer splits than planned and no rank: {counted(partial, 'cell')}"
    loose = [row for row in rows if row.converged is False]
    if loose:
        text += f"; in {counted(len(loose), 'cell')} a fit did not converge"
    stopped = [
        each
        for each in found.cells
        if any(result.measures.get("search_complete", 1.0) < 1.0 for result in each.done)
    ]
    if stopped:
        text += f"; in {counted(len(stopped), 'cell')} the search was stopped by its budget"
    busy = [each for each in found.cells if any(result.details.contention for result in each.done)]
    if busy:
        text += (
            f"; the machine was busy during {counted(len(busy), 'cell')}: "
            "times are less certain there"
        )
    console.print(text, soft_wrap=True)
    if found.interrupted:
        console.print("interrupted: what is done is kept")


def _failures(console: Console, found: Report) -> None:
    """Say in a line each what failed."""
    for each in found.cells:
        if each.status in ("ok", "unavailable", "skipped"):
            continue
        failed = [result.error for result in each.results.values() if not result.is_ok]
        error = failed[0] if failed else each.problem.reason if each.problem else ""
        last = [line for line in error.strip().splitlines() if line.strip()]
        reason = last[-1].strip() if last else ""
        console.print(f"[red]{each.status}[/red]: {escape(each.cell.name)}: {escape(reason)}")


def plan(found: Report, as_json: bool) -> None:
    """Show what a run would compute, what is known, and how long it may take."""
    rows: list[dict[str, Any]] = []
    seconds_of: dict[tuple[str, str], list[float]] = {}
    for each in found.cells:
        method = (each.cell.feature_map.name, each.cell.learner.name)
        seconds_of.setdefault(method, []).extend(result.seconds for result in each.results.values())
        rows.append(
            {
                "dataset": each.cell.dataset.label,
                "feature_map": each.cell.feature_map.label,
                "learner": each.cell.learner.label,
                "tasks": len(each.missing),
                "known": len(each.results),
                "note": each.problem.reason
                if each.problem
                else ""
                if each.dataset
                else "to be fetched",
            }
        )
    estimate = _estimate(found, seconds_of)
    if as_json:
        print(json.dumps({"cells": rows, "estimated_s": estimate}))
        return
    drawn = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in ("dataset", "feature_map", "learner", "tasks", "known", "note"):
        drawn.add_column(name, justify="right" if name in ("tasks", "known") else "left")
    for row in rows:
        drawn.add_row(*(escape(str(value)) for value in row.values()))
    console = _console()
    console.print(drawn)
    tasks, known = (sum(row[key] for row in rows) for key in ("tasks", "known"))
    cells = counted(len(rows), "cell")
    text = f"\n{cells}, {counted(tasks, 'task')} to compute, {known} known already"
    if tasks:
        text += (
            "; no time is known yet to estimate from"
            if estimate is None
            else f"; about {estimate:.0f} s of work for one slot"
        )
    console.print(text)


def _estimate(found: Report, seconds_of: dict[tuple[str, str], list[float]]) -> float | None:
    """Guess the work from the median time of the same method, else of all tasks."""
    everything = [value for values in seconds_of.values() for value in values]
    if not everything:
        return None
    total = 0.0
    for each in found.cells:
        method = (each.cell.feature_map.name, each.cell.learner.name)
        total += len(each.missing) * median(seconds_of[method] or everything)
    return total

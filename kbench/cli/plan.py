"""The plan of a run, as `kbench suite --dry-run` prints it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median

from rich.console import Console

from kbench.cli import printing
from kbench.cli.echo import put_flags
from kbench.cli.show import ON_A_SCREEN
from kbench.messages import format_memory, plural
from kbench.planning.planned import PlannedCell
from kbench.report.text import Column, Line, Table
from kbench.results.rows import LABELS, group_values
from kbench.runner import Report

_COUNTED = (Column("tasks", numeric=True), Column("cached", numeric=True))
_COSTS = ("memory of a task", "time of a task")


def print_plan(report: Report, *, as_json: bool, every: bool = True) -> None:
    """Print the tasks of a run, those that are cached, and what the rest may cost.

    With many cells, print one row for each dataset unless `every` is set.
    """
    rows: list[Line] = [
        {
            **dict(zip(LABELS, planned.cell.labels, strict=True)),
            "tasks": len(planned.missing),
            "cached": len(planned.results),
            "note": _note(planned),
        }
        for planned in report.cells
    ]
    estimate = _estimated_s(report)
    if as_json:
        plain = [
            {
                **row,
                "memory_mib": cell.cost and asdict(cell.cost.memory_mib),
                "time_s": asdict(cell.cost.seconds) if cell.cost and cell.cost.seconds else None,
                "changed": cell.changed,
            }
            for row, cell in zip(rows, report.cells, strict=True)
        ]
        print(json.dumps({"cells": plain, "estimated_s": estimate}))
        return
    console = printing.console()
    if every or len(rows) <= ON_A_SCREEN:
        _print_cells(console, report, rows)
    else:
        _print_datasets(console, report, rows)
        console.print("--all prints the cells")
    tasks, cached = (sum(row[key] for row in rows) for key in ("tasks", "cached"))
    line = (
        f"\n{plural(len(rows), 'cell')}, "
        f"{'at least ' * any('has its own splits' in str(row['note']) for row in rows)}"
        f"{plural(tasks, 'task')} to compute, {cached} cached"
    )
    if tasks:
        line += (
            "; no time to estimate from yet"
            if estimate is None
            else f"; about {estimate:.0f} s with one slot"
        )
    console.print(line)


def _print_cells(console: Console, report: Report, rows: Sequence[Line]) -> None:
    columns = [*map(Column, LABELS), *_COUNTED]
    if any(cell.cost for cell in report.cells):
        columns += [Column(name, numeric=True) for name in _COSTS]
        costs = [dict(zip(_COSTS, _written_cost(cell), strict=True)) for cell in report.cells]
        rows = [row | cost for row, cost in zip(map(dict, rows), costs, strict=True)]
    printing.print_table(console, Table("plan", "", [*columns, Column("note")], rows))


def _print_datasets(console: Console, report: Report, rows: Sequence[Line]) -> None:
    """Print one row for each dataset: its cells, and their tasks."""
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        cells = [
            (row, cell)
            for row, cell in zip(rows, report.cells, strict=True)
            if row["dataset"] == dataset
        ]
        notes = Counter(row["note"] for row, _ in cells if row["note"])
        seconds = [
            len(cell.missing) * cell.cost.seconds.value / cell.cell.protocol.threads
            for _, cell in cells
            if cell.cost and cell.cost.seconds
        ]
        written = [
            note if count == len(cells) else f"{plural(count, 'cell')}: {note}"
            for note, count in notes.items()
        ]
        counts = {key: sum(row[key] for row, _ in cells) for key in ("tasks", "cached")}
        line = {"dataset": dataset, "cells": len(cells), "note": "; ".join(written), **counts}
        lines.append(line | {"seconds": sum(seconds) if seconds else None})
    columns = [Column("dataset"), Column("cells", numeric=True), *_COUNTED]
    if any(line["seconds"] is not None for line in lines):
        columns.append(Column("seconds", "time of predicted cells", "{:.0f} s".format, True))
    printing.print_table(console, Table("plan", "", [*columns, Column("note")], lines))


def _note(cell: PlannedCell) -> str:
    if problem := cell.problem:
        return put_flags(f"{'skipped: ' * (problem.status == 'skipped')}{problem.reason}")
    splits = ", which has its own splits" * (cell.cell.protocol.cv == "official")
    return f"dataset not loaded yet{splits}" if cell.dataset is None else ""


def _written_cost(cell: PlannedCell) -> tuple[str, str]:
    if (cost := cell.cost) is None:
        return "", ""
    return format_memory(cost.memory_mib.value), cost.seconds.as_seconds() if cost.seconds else ""


def _estimated_s(report: Report) -> float | None:
    """Estimate the work: predicted, or the median of the same method, else of all tasks.

    None if nothing is known of some remaining task.
    """
    seconds_of = group_values(
        (_method(cell), each.seconds) for cell in report.cells for each in cell.results.values()
    )
    all_seconds = [value for values in seconds_of.values() for value in values]
    total = 0.0
    for planned in report.cells:
        samples = seconds_of.get(_method(planned), all_seconds)
        if (cost := planned.cost) and cost.seconds:
            total += len(planned.missing) * cost.seconds.value / planned.cell.protocol.threads
        elif samples:
            total += len(planned.missing) * median(samples)
        elif planned.missing:
            return None
    return total


def _method(cell: PlannedCell) -> tuple[str, str]:
    return cell.cell.feature_map.name, cell.cell.learner.name

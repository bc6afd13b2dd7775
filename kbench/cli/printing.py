"""Printing for all commands: tables, files, and the commands that a user may type next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from stat import S_IMODE
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kbench.api.progress import PrintableConsole
from kbench.errors import SuiteError
from kbench.messages import counted, last_line, printable_lines
from kbench.records import Delivered
from kbench.storage import files
from kbench.storage.journal import state_folder

if TYPE_CHECKING:
    from kbench.runner import Report

_LONGEST = 40
"""Characters of a word from which on it may be broken: no word of a language has so many."""

Line = tuple[Sequence[str | Text], str]
"""Values of a table's line, and its style."""

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
"""Ends of the columns that a narrow terminal omits, in this order."""


def console() -> Console:
    """Return a console for standard output; in a pipe or a file no line is cut or folded."""
    terminal = PrintableConsole(highlight=False)
    return terminal if terminal.is_terminal else PrintableConsole(highlight=False, width=10_000)


def print_table(
    screen: Console, headings: Mapping[str, bool], lines: Sequence[Line], header: bool = True
) -> None:
    """Print aligned values, a line each; no word and no number is broken.

    `headings` has the name of each column, and whether it is right-aligned, as numbers
    are. A narrow terminal omits some columns and folds texts between words. Where that is
    not enough, the values of a line stand below each other.
    """
    columns = dict(zip(headings, zip(*(values for values, _ in lines), strict=True), strict=False))
    cells = {name: (name, *columns.get(name, ())) for name in headings}
    widths = {name: max(map(_width, values)) for name, values in cells.items()}
    # a long text may be folded, a number may not
    needed = {
        name: widths[name] if right else min(_LONGEST, max(map(_longest_word, cells[name])))
        for name, right in headings.items()
    }
    sparable = sorted((n for n in widths if n.endswith(_LEAST_NEEDED)), key=_least_needed)
    if sum(width + 2 for name, width in needed.items() if name not in sparable) > screen.width:
        _print_below_each_other(screen, headings, lines, header)
        return
    omitted = []
    for name in sparable:
        if sum(needed.values()) + 2 * len(needed) <= screen.width:
            break
        del widths[name], needed[name]
        omitted.append(name)
    if omitted:
        kept = [name in widths for name in headings]
        lines = [(list(compress(values, kept)), style) for values, style in lines]
        print_table(screen, {name: headings[name] for name in widths}, lines, header)
        screen.print(f"[dim]left out at this width: {', '.join(omitted)}[/dim]")
        return
    if sum(widths.values()) + 2 * len(widths) > screen.width:
        drawn = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, show_header=header)
        for name, right in headings.items():
            drawn.add_column(
                escape(name),
                justify="right" if right else "left",
                overflow="fold",
                no_wrap=right,
                min_width=needed[name],
            )
        for values, style in lines:
            drawn.add_row(*(v if isinstance(v, Text) else Text(v) for v in values), style=style)
        screen.print(drawn)
        return
    # a table of rich would look the same and take a second for some hundred lines
    text = Text()
    heading: list[Line] = [(list(headings), "bold")] if header else []
    for values, style in (*heading, *lines):
        line = Text(style=style)
        for value, width, right in zip(values, widths.values(), headings.values(), strict=True):
            gap = " " * (width - _width(value))
            line.append(gap if right else "").append(value).append("  " if right else gap + "  ")
        line.rstrip()
        text.append(line).append("\n")
    screen.print(text, end="", soft_wrap=True)


def _width(value: str | Text) -> int:
    return cell_len(printable_lines(value.plain if isinstance(value, Text) else value))


def _longest_word(value: str | Text) -> int:
    text = value.plain if isinstance(value, Text) else value
    return max((cell_len(printable_lines(word)) for word in text.split()), default=0)


def _print_below_each_other(
    screen: Console, headings: Mapping[str, bool], lines: Sequence[Line], header: bool
) -> None:
    """Print each line as a block, a value a line beside its name."""
    width = max(map(_width, headings)) + 2 if header else 0
    for number, (values, style) in enumerate(lines):
        text = Text("\n" if number else "")
        for name, value in zip(headings, values, strict=True):
            if _width(value):
                text.append(f"{name:{width}}" if header else "", "bold")
                text.append(value if isinstance(value, Text) else Text(value, style)).append("\n")
        screen.print(text, end="", soft_wrap=True)


def _least_needed(name: str) -> int:
    return next(place for place, end in enumerate(_LEAST_NEEDED) if name.endswith(end))


def print_failure(screen: Console, status: str, name: str, error: str) -> None:
    """Print in a line why a cell failed."""
    screen.print(f"[red]{status}[/red]: {escape(name)}: {escape(last_line(error))}")


def print_deliveries(screen: Console, report: Report) -> None:
    """Print where the results are, and why some are not there."""
    for delivered in report.deliveries:
        name = delivered.tracker or "tracker"
        screen.print(f"\n{name}:  {escape(delivered.uri)}", soft_wrap=True)
        screen.print(
            f"experiment:    {escape(delivered.experiment)}, {counted(delivered.stored, 'run')} "
            f"({delivered.written} written now)"
        )
        print_problem(screen, delivered)
    if not report.deliveries:
        screen.print(f"\njournal:  {escape(str(state_folder(report.place)))}", soft_wrap=True)


def print_problem(screen: Console, delivered: Delivered) -> None:
    """Print why runs are not where a tracker keeps them, and how they get there."""
    if delivered.problem:
        screen.print(
            f"[red]not all runs are in the store: {escape(delivered.problem)}[/red]\n"
            f"Nothing is lost: the journal keeps them. {escape(delivered.remedy)}",
            soft_wrap=True,
        )


def print_next(screen: Console, commands: Iterable[tuple[str, str]]) -> None:
    """Print commands that a user may type next, with aligned meanings."""
    shown = list(commands)
    if not shown:
        return
    screen.print("\nnext:")
    width = max((len(command) for command, meaning in shown if meaning), default=0)
    for command, meaning in shown:
        screen.print(escape(f"  {command:{width}}    {meaning}".rstrip()), soft_wrap=True)


def print_event(event: str, **fields: Any) -> None:
    """Print one line of a run's JSON events."""
    print(json.dumps({"event": event, **fields}), flush=True)


def print_end_event(report: Report, rows: Sequence[Mapping[str, Any]], **further: Any) -> None:
    """Print the last line of a run's JSON events: its rows, and where they are."""
    first = next(iter(report.deliveries), Delivered("", report.suite.name))
    end = {
        "event": "interrupted" if report.interrupted else "done",
        "rows": rows,
        **further,
        "store": first.uri,
        "experiment": first.experiment,
        "problem": first.problem,
        "seconds": report.seconds,
    }
    print(json.dumps(end), flush=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file that is never there in part; SuiteError is raised where the system refuses it.

    A link is kept and its target replaced; the new file has the permissions of the old one, less
    the umask. Devices and pipes, which nothing can replace, are written directly.
    """
    try:
        place = path.resolve()
        if path.absolute().parts[1] in ("dev", "proc") or (place.exists() and not place.is_file()):
            path.write_bytes(data)
        else:
            mode = place.stat().st_mode if place.exists() else 0o666
            place.parent.stat()  # a folder that is missing is a mistake in its name
            files.write_file(place, data, S_IMODE(mode))
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror or error}") from error

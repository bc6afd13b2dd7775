"""Printing for all commands: tables, files, and the commands that a user may type next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE

import rich.table
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from kbench.api.progress import PrintableConsole, print_event
from kbench.cli.echo import put_flags
from kbench.errors import SuiteError
from kbench.messages import last_line, plural, printable_lines
from kbench.records import Delivered
from kbench.report.text import Column, Table
from kbench.runner import Report
from kbench.storage import files
from kbench.storage.journal import state_folder

# Characters of a word from which on it may be broken: no word of a language has so many.
_LONGEST = 40

# Styles of marks.
_MARKED = {"better": "green", "worse": "bold red"}

# Ends of the columns that a narrow terminal omits, in this order.
_MIN_NEEDED = (
    *("n_components", "peak_memory_mib", "search_time_s", "n_splits", "n_splits_done"),
    *("predict_time_s", "sd", "converged", "fit_time_s"),
)


def console() -> Console:
    """Return a console for standard output; in a pipe or a file no line is cut or folded."""
    terminal = PrintableConsole(highlight=False)
    return terminal if terminal.is_terminal else PrintableConsole(highlight=False, width=10_000)


def print_table(screen: Console, table: Table, header: bool = True, narrowed: bool = False) -> None:
    """Print a table, a row per line; no word and no number is broken.

    Columns that are equal in all rows are a sentence above it if `narrowed`. A narrow terminal
    omits some columns and wraps strings between words; if that is not enough, the values of a row
    are printed below each other.
    """
    if narrowed:
        table, above = table.narrowed
        if above:
            screen.print(f"[dim]{escape(above)}[/dim]")
    columns, places = table.visible, range(len(table.rows))
    cells = {each.name: [each.heading, *(table.value(i, each) for i in places)] for each in columns}
    widths = {name: max(map(_width, values)) for name, values in cells.items()}
    # a long text may be folded, a number may not
    needed = {
        each.name: widths[each.name]
        if each.numeric
        else min(_LONGEST, max(map(_width, " ".join(cells[each.name]).split()), default=0))
        for each in columns
    }
    sparable = sorted((each for each in columns if _rank_omitted(each) >= 0), key=_rank_omitted)
    least = sum(needed[each.name] + 2 for each in columns if each not in sparable)
    omitted = []
    while sparable and sum(needed.values()) + 2 * len(needed) > screen.width >= least:
        omitted.append(sparable.pop(0))
        del needed[omitted[-1].name]
    if omitted:
        shown = [each for each in columns if each not in omitted]
        print_table(screen, replace(table, columns=shown), header)
        names = ", ".join(each.heading for each in omitted)
        screen.print(f"[dim]left out at this width: {names}[/dim]")
        return
    styles = [table.styles.get(i, "") for i in places]
    lines = [
        [
            Text(cells[each.name][i + 1], _MARKED.get(table.marks.get((i, each.name), ""), ""))
            for each in columns
        ]
        for i in places
    ]
    if least > screen.width:
        _print_below_each_other(screen, columns, lines, styles, header)
    elif sum(widths.values()) + 2 * len(widths) > screen.width:
        drawn = rich.table.Table(
            box=None, padding=(0, 2, 0, 0), show_edge=False, show_header=header
        )
        for each in columns:
            drawn.add_column(
                escape(each.heading),
                justify="right" if each.numeric else "left",
                overflow="fold",
                no_wrap=each.numeric,
                min_width=needed[each.name],
            )
        for values, style in zip(lines, styles, strict=True):
            drawn.add_row(*values, style=style)
        screen.print(drawn)
    else:
        # a table of rich would look the same and take a second for some hundred lines
        heading = [[Text(each.heading) for each in columns]] if header else []
        text = Text()
        for values, style in zip(heading + lines, ["bold"] * len(heading) + styles, strict=True):
            line = Text(style=style)
            for value, each in zip(values, columns, strict=True):
                gap = " " * (widths[each.name] - _width(value.plain))
                line.append(gap if each.numeric else "").append(value)
                line.append("  " if each.numeric else gap + "  ")
            line.rstrip()
            text.append(line).append("\n")
        screen.print(text, end="", soft_wrap=True)


def _width(value: str) -> int:
    return cell_len(printable_lines(value))


def _print_below_each_other(
    screen: Console,
    columns: Sequence[Column],
    lines: Sequence[Sequence[Text]],
    styles: Sequence[str],
    header: bool,
) -> None:
    """Print each line as a block, a value a line beside its name."""
    width = max(_width(each.heading) for each in columns) + 2 if header else 0
    for number, (values, style) in enumerate(zip(lines, styles, strict=True)):
        text = Text("\n" if number else "")
        for each, value in zip(columns, values, strict=True):
            if value.plain:
                text.append(f"{each.heading:{width}}" if header else "", "bold")
                text.append(Text(value.plain, value.style or style)).append("\n")
        screen.print(text, end="", soft_wrap=True)


def _rank_omitted(column: Column) -> int:
    """Return the place of a column among those that are left out; -1 for one that is kept."""
    ends = (place for place, end in enumerate(_MIN_NEEDED) if column.heading.endswith(end))
    return next(ends, -1)


def print_failure(screen: Console, status: str, name: str, error: str) -> None:
    """Print in a line why a cell failed."""
    screen.print(f"[red]{status}[/red]: {escape(name)}: {escape(put_flags(last_line(error)))}")


def print_deliveries(screen: Console, report: Report) -> None:
    """Print where the results are, and why some are not there."""
    for delivered in report.deliveries:
        name = delivered.tracker or "tracker"
        screen.print(f"\n{name}:  {escape(delivered.uri)}", soft_wrap=True)
        screen.print(
            f"experiment:    {escape(delivered.experiment)}, {plural(delivered.stored, 'run')} "
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
    if not (shown := list(commands)):
        return
    screen.print("\nnext:")
    width = max((len(command) for command, meaning in shown if meaning), default=0)
    for command, meaning in shown:
        screen.print(escape(f"  {command:{width}}    {meaning}".rstrip()), soft_wrap=True)


def print_end_event(
    report: Report, rows: Sequence[Mapping[str, object]], **further: object
) -> None:
    """Print the last line of a run's JSON events: its rows, and where they are."""
    first = next(iter(report.deliveries), Delivered("", report.suite.name))
    print_event(
        "interrupted" if report.interrupted else "done",
        rows=rows,
        **further,
        store=first.uri,
        experiment=first.experiment,
        problem=first.problem,
        seconds=report.seconds,
    )


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically; raises SuiteError if the system denies it.

    A link, and the permissions of the old file, are kept. Devices and pipes are written directly.
    """
    try:
        place = path.resolve()
        if path.absolute().parts[1] in ("dev", "proc") or (place.exists() and not place.is_file()):
            path.write_bytes(data)
        else:
            mode = place.stat().st_mode if place.exists() else 0o666
            place.parent.stat()  # a folder that is missing is an error in its name
            files.write_file(place, data, S_IMODE(mode))
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror or error}") from error

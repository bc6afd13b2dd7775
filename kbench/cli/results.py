"""`kbench results`: the results of an experiment, in one of several forms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.cli import completion
from kbench.cli.echo import echo
from kbench.cli.options import Form, Format, Store
from kbench.errors import SuiteError
from kbench.messages import counted, printable_json

if TYPE_CHECKING:
    from kbench.records import Measure
    from kbench.results.rows import Row


def results(
    suite: Annotated[
        str,
        typer.Argument(
            help="Name of a suite, or of its MLflow experiment.", autocompletion=completion.suites
        ),
    ],
    form: Format = Form.table,
    store: Store = None,
    machine: Annotated[
        str | None,
        typer.Option(help="Machine that made the runs: an id, or `all`; this machine by default."),
    ] = None,
    focus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD",
            help="Compare this method with each other one instead: `map + learner`, a map, or a "
            "pattern; repeatable.",
        ),
    ] = None,
) -> None:
    """Print the results of a suite, read back from MLflow: one row per cell."""
    from kbench import report
    from kbench.api.inputs import known_suite, stored_results
    from kbench.cli import show
    from kbench.execution.plugins import load_registry
    from kbench.report import tables
    from kbench.results.rows import columns, task_of

    stored = stored_results(suite, store, machine, partial(echo, err=True))
    rows, measure = stored.rows, stored.measure
    if focus:
        _print_focus(rows, focus, measure, form, machine)
    elif form is Form.table:
        show.print_rows(rows, columns(measure, task_of(rows)))
        show.print_published(rows, known_suite(suite, load_registry()).published, measure)
        fewer = sum(row.n_splits_done < row.n_splits for row in rows)
        echo(
            f"\n{counted(len(rows), 'cell')}"
            + (f", {fewer} of them over fewer splits than planned" if fewer else "")
        )
        for row in rows:
            if row.status == "skipped" and row.error:
                name = f"{row.feature_map} + {row.learner} on {row.dataset}"
                echo(f"skipped: {name}: {row.error}")
    elif form is Form.json:
        # with all fields, so that `kbench compare` can read it back
        full = [row.to_json(measure) for row in rows]
        echo(printable_json(full, indent=1))
    else:
        echo(report.write(tables.cells(rows, measure), form.value))


def _print_focus(
    rows: list[Row], focus: list[str], measure: Measure, form: Form, machine: str | None
) -> None:
    """Print some methods, each beside all others."""
    from kbench.cli import printing
    from kbench.cli.focus import print_focus
    from kbench.report.paper import chosen_methods

    if form is not Form.table:
        raise SuiteError("--focus prints text; leave out --format")
    if machine == "all":
        raise SuiteError("--focus compares the runs of one machine; name it with --machine")
    methods = chosen_methods(rows, focus, "--focus")
    print_focus(printing.console(), rows, methods, measure)

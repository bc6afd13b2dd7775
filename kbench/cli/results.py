"""`kbench results`: what an experiment holds, in the form that is wanted."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.cli.options import Form, Format, Store
from kbench.errors import SuiteError
from kbench.messages import counted

if TYPE_CHECKING:
    from kbench.records import Published


def results(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or of its MLflow experiment.")],
    form: Format = Form.table,
    store: Store = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help="Whose runs, where several machines wrote: an id, or `all`; this "
            "machine's by default."
        ),
    ] = None,
) -> None:
    """Print the results of a suite, read back from MLflow: one row per cell."""
    from kbench import report
    from kbench.api.inputs import runs_of
    from kbench.report import tables
    from kbench.results.order import by_dataset
    from kbench.results.rows import columns
    from kbench.results.sources import measure_of, of_run

    runs, _, _ = runs_of(suite, store, machine, partial(typer.echo, err=True))
    measure = measure_of(runs)
    rows = by_dataset([of_run(run) for run in runs])
    if form is Form.table:
        from kbench.cli import show

        show.table(rows, columns(measure))
        show.published(rows, _published(suite), measure)
        fewer = sum(row.n_splits_done < row.n_splits for row in rows)
        typer.echo(
            f"\n{counted(len(rows), 'cell')}"
            + (f", {fewer} of them over fewer splits than planned" if fewer else "")
        )
        return
    if form is Form.json:
        # all there is, so that `kbench compare` can read it back
        full = [row.to_json(measure) for row in rows]
        typer.echo(json.dumps(full, indent=1, ensure_ascii=False))
        return
    typer.echo(report.write(tables.cells(rows, measure), form.value))


def _published(name: str) -> tuple[Published, ...]:
    """Return the figures that a suite file carries; none where there is no such suite."""
    from kbench.planning.suite_file import find, read
    from kbench.registry.registry import build, installed

    registry = build(installed())
    try:
        return read(*find(name, registry), registry).published
    except SuiteError:
        return ()

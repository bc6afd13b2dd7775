"""`kbench results`: what an experiment holds, in the form that is wanted."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kbench.records import Published


class Form(StrEnum):
    """Forms of a results table."""

    table = "table"
    csv = "csv"
    json = "json"
    latex = "latex"
    markdown = "markdown"


def results(
    suite: Annotated[str, typer.Argument(help="Name of a suite, or of its MLflow experiment.")],
    form: Annotated[Form, typer.Option("--format", help="How to print.")] = Form.table,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="MLflow store; default: $MLFLOW_TRACKING_URI, else mlflow.db in this folder.",
        ),
    ] = None,
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
    from kbench.results import by_dataset, of_run

    runs, _, _ = runs_of(suite, store, machine)
    rows = by_dataset([of_run(run) for run in runs])
    if form is Form.table:
        from kbench.cli import show

        show.table(rows)
        show.published(rows, _published(suite))
        partial = [row for row in rows if row["n_splits_done"] < row["n_splits"]]
        typer.echo(
            f"\n{len(rows)} cells"
            + (f", {len(partial)} of them over fewer splits than planned" if partial else "")
        )
        return
    typer.echo(report.write(rows, form.value))


def _published(name: str) -> tuple[Published, ...]:
    """Return the figures that a suite file carries; none where there is no such suite."""
    from kbench import suite as suites
    from kbench.errors import SuiteError
    from kbench.registry import build, installed

    registry = build(installed())
    try:
        return suites.read(*suites.find(name, registry), registry).published
    except SuiteError:
        return ()


def runs_of(
    suite: str, store: str | None, machine: str | None
) -> tuple[list[dict[str, Any]], str, str]:
    """Read the runs of a suite from MLflow.

    Parameters
    ----------
    suite : str
        Its name, or the path of its file: the experiment is named after it.
    store : str or None
        URI; the default store where it is None.
    machine : str or None
        Whose runs; "all" for all of them. Where it is None, this machine's,
        else those of the machine that wrote last.

    Returns
    -------
    runs : list of dict
        As `kbench.tracking.Store.read` gives them; at least one.
    name, uri : str
        Of the experiment and of the store.

    Raises
    ------
    StoreError, SuiteError
        There are none.
    """
    from pathlib import Path

    from kbench.errors import StoreError, SuiteError
    from kbench.machine import machine_id
    from kbench.tracking import Store, default_uri

    uri = store or default_uri()
    path = Path(uri.removeprefix("sqlite:///"))
    if uri.startswith("sqlite:///") and not path.exists():
        raise StoreError(f"there are no runs here: {path} does not exist; run `kbench suite` first")
    name = _experiment_of(suite)
    runs = Store(uri).read(name)
    if not runs:
        raise SuiteError(
            f"the store {uri} has no runs of {name!r}; `kbench suite {suite}` makes them"
        )
    owners = {run["machine"] for run in runs}
    if machine != "all":
        wanted = machine or machine_id()
        if wanted not in owners and machine:
            raise SuiteError(
                f"no runs of machine {machine!r}; there are: {', '.join(sorted(owners))}"
            )
        if wanted not in owners:
            wanted = runs[-1]["machine"]
        if len(owners) > 1 or wanted not in (machine, machine_id()):
            typer.echo(f"runs of machine {wanted}; --machine all shows all", err=True)
        runs = [run for run in runs if run["machine"] == wanted]
    return runs, name, uri


def _experiment_of(suite: str) -> str:
    """Return the name of a suite's experiment: that in its file, else the file's stem."""
    import tomllib
    from pathlib import Path

    path = Path(suite)
    if path.suffix != ".toml":
        return suite
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8")).get("name")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        own = None  # the runs outlive the file
    return own if isinstance(own, str) else path.stem

"""The command line: commands of the core and of features, each built when it is used."""

from __future__ import annotations

from typing import Annotated

import typer

from kbench._version import __version__
from kbench.cli.pages import CONTEXT, Group

app = typer.Typer(
    name="kbench",
    cls=Group,
    help="Measure the accuracy and cost of explicit feature maps and learners, all on the same "
    "splits of the same datasets.",
    epilog="Exit codes: 0 all planned cells are ok (cells with unavailable data are allowed), "
    "1 some cell failed, or the store does not have all runs yet, 2 wrong usage or suite file, "
    "130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    # kbench's errors are one line; others keep Python's plain traceback
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Define the options that precede a command."""

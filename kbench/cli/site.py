"""`kbench site`: checks a results repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbench.cli.echo import echo


def site(
    repository: Annotated[str, typer.Argument(metavar="DIR", help="A results repository.")],
) -> None:
    """Check all files of a results repository.

    The exit code is 1 if a file is damaged, forged or out of its place; each is named in one line.
    """
    from kbench.messages import counted
    from kbench.sharing.repository import problems

    n_files, found = problems(Path(repository).expanduser())
    _conclude(n_files, found)
    echo(f"{counted(n_files, 'rows file')}: form, keys, times and ranges are as they must be")


def _conclude(n_files: int, problems: list[str]) -> None:
    """Print each problem, and end if there are any."""
    from kbench.messages import counted

    for problem in problems:
        echo(problem, err=True)
    if problems:
        echo(f"{counted(len(problems), 'file')} refused, {n_files} good", err=True)
        raise typer.Exit(1)

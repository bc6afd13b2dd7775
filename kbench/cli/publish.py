"""`kbench publish`: adds the rows of a bundle to a results repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbench.cli.echo import echo


def publish(
    file: Annotated[str, typer.Argument(help="A bundle: a zip file or a folder.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="DIR", help="A results repository: a folder, such as a working copy of git."
        ),
    ],
) -> None:
    """Add the rows of a bundle to a results repository, one immutable file per cell.

    Files are named by their content, and none is ever overwritten. git is not called: commit
    and push the new files yourself.
    """
    from kbench.messages import counted
    from kbench.sharing.reading import read_bundle
    from kbench.sharing.repository import publish as published

    repository = Path(to).expanduser()
    done = published(read_bundle(Path(file).expanduser()), repository)
    kept = f", {done.n_kept} that it has already" if done.n_kept else ""
    echo(f"{repository}: {counted(done.n_new, 'new rows file')}{kept}")
    if done.n_new:
        echo(f"check them: kbench site {repository}")

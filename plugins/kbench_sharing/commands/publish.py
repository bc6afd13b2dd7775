"""`kbench publish`: adds the rows of a bundle to a results repository."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbench.features import echo


def publish(
    file: Annotated[
        str, typer.Argument(help="A bundle (a zip file or a folder), or the id of a kept one.")
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="DIR|URL",
            help="A results repository: a folder, such as a working copy of git, or an address "
            "to which git pushes: https, ssh, file or host:path.",
        ),
    ],
) -> None:
    """Add the rows of a bundle to a results repository, one immutable file per cell.

    Files are named by their content, and none is ever overwritten. In a folder, commit and push
    the new files yourself. At an address, they are one commit of the default branch, with the
    name and the credentials of your git.
    """
    from kbench.messages import counted, masked
    from kbench_sharing.git_remote import check_place, is_address, publish_to_remote
    from kbench_sharing.kept import find
    from kbench_sharing.repository import publish as published

    check_place(to)
    is_remote = is_address(to)
    bundle = find(file)
    repository = Path(to).expanduser()
    done = publish_to_remote(bundle, to) if is_remote else published(bundle, repository)
    kept = f", {done.n_kept} that it has already" if done.n_kept else ""
    where = masked(to) if is_remote else repository
    echo(f"{where}: {counted(done.n_new, 'new rows file')}{kept}")
    if done.n_new and not is_remote:
        echo(f"check them: kbench site {repository}")

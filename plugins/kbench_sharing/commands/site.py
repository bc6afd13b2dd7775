"""`kbench site`: checks a results repository, and writes its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbench.features import echo


def site(
    repository: Annotated[str, typer.Argument(metavar="DIR", help="A results repository.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="NEW", help="Also write the site, into this folder."
        ),
    ] = None,
) -> None:
    """Check all files of a results repository; with -o, write its site.

    The exit code is 1 if a file is damaged, forged or out of its place; each is named in one
    line, and no site is written.
    """
    from kbench.messages import counted

    folder = Path(repository).expanduser()
    if output is None:
        from kbench_sharing.repository import problems

        n_rows, found = problems(folder)
    else:
        from kbench_sharing.site import write_site

        written = write_site(folder, Path(output).expanduser())
        n_rows, found = written.n_rows, written.problems
    for problem in found:
        echo(problem, err=True)
    if found:
        echo(f"{counted(len(found), 'file')} refused, {n_rows} good", err=True)
        raise typer.Exit(1)
    echo(f"{counted(n_rows, 'rows file')}: form, keys, times and ranges are as they must be")
    if output is not None:
        page = Path(output) / "index.html"
        echo(f"{page}: {counted(written.n_pages, 'page')}")

"""`kbench add`: keeps a bundle of somebody else, whose rows are shown beside one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kbench.features import echo


def add(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            help="A bundle (a zip file or a folder) or a rows file; an https address of one.",
        ),
    ],
) -> None:
    """Check a bundle of somebody else and keep it, to see its rows beside your own.

    `kbench results`, `kbench report` and `kbench compare SUITE SUITE@by=AUTHOR` show them. It is
    kept beside the journal under its id, and never changed.
    """
    from kbench_sharing.commands.verify import describe
    from kbench_sharing.fetching import is_url
    from kbench_sharing.kept import SHORT, keep
    from kbench_sharing.reading import read_bundle, read_fetched

    bundle = read_fetched(file) if is_url(file) else read_bundle(Path(file).expanduser())
    describe(bundle)
    _, is_new = keep(bundle)
    short = bundle.id[:SHORT]
    echo(f"{'kept' if is_new else 'it was kept before'} as {short}")
    suite = shlex.quote(bundle.manifest.suite)
    echo(f"kbench results {suite}")
    echo(f"kbench suite {suite} --reuse {short}")

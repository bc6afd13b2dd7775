"""`kbench add`: keeps a bundle of somebody else, for `kbench suite --reuse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbench.cli.echo import echo


def add(
    file: Annotated[str, typer.Argument(help="A bundle: a zip file or a folder.")],
) -> None:
    """Check a bundle and keep it, for `kbench suite SUITE --reuse ID`.

    It is kept beside the journal under its id, and never changed.
    """
    from kbench.cli.verify import describe
    from kbench.sharing.kept import SHORT, keep
    from kbench.sharing.reading import read_bundle

    bundle = read_bundle(Path(file).expanduser())
    describe(bundle)
    _, is_new = keep(bundle)
    short = bundle.id[:SHORT]
    echo(f"{'kept' if is_new else 'it was kept before'} as {short}")
    echo(f"kbench suite {bundle.manifest.suite} --reuse {short}")

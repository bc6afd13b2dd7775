"""The site of the project's results, which is built from the bundles in `docs/results`.

They are published into a repository in a temporary folder, as `kbench bundle publish` does, and the
site is written next to the pages, as by `kbench bundle site`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from sphinx.errors import ExtensionError

from kbench_sharing.reading import read_bundle
from kbench_sharing.repository import publish
from kbench_sharing.site import write_site

FOLDER = "leaderboards"
"""Folder of the site, next to the pages."""


def write_leaderboards(bundles: Path, out: Path) -> tuple[int, int, list[str]]:
    """Write the site of all bundles of a folder into a new folder, as `write_site` does."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "board"
        for path in sorted(bundles.glob("*.zip")):
            publish(read_bundle(path), repository)
        return write_site(repository, out)


def _finished(app, exception) -> None:
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir) / FOLDER
    shutil.rmtree(out, ignore_errors=True)
    *_, problems = write_leaderboards(Path(app.srcdir) / "results", out)
    if problems:
        raise ExtensionError(f"docs/results: {problems[0]}")


def setup(app):
    """Write the site after the pages."""
    app.connect("build-finished", _finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

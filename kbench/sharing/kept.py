"""Bundles of others that are kept here: named by their content, and never changed."""

from __future__ import annotations

import re
from pathlib import Path

from kbench.errors import BundleError
from kbench.messages import listed
from kbench.sharing import container
from kbench.sharing.form import Bundle
from kbench.sharing.reading import read_bundle
from kbench.storage.files import write_file
from kbench.storage.journal import state_folder

SHORT = 12
"""Hexadecimal digits of an id that are shown."""

_ID = re.compile(r"[0-9a-f]{6,64}")


def folder() -> Path:
    """Return the folder of kept bundles, in the state folder of this machine."""
    return state_folder() / "bundles"


def keep(bundle: Bundle) -> tuple[Path, bool]:
    """Keep a checked bundle; return its file, and whether it is new.

    Its files are packed anew: nothing of the zip file that was read is kept.
    BundleError is raised where it cannot be written.
    """
    if not bundle.files:
        raise BundleError("a rows file is not kept: name it where it is used, as in --reuse FILE")
    path = folder() / f"{bundle.id}.zip"
    if path.exists():
        return path, False
    try:
        write_file(path, container.zipped(bundle.files), mode=0o400)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error
    return path, True


def find(name: str) -> Bundle:
    """Read a bundle, given its path, or the beginning of the id of a kept one.

    BundleError is raised where there is none, or it is refused.
    """
    path = Path(name).expanduser()
    if path.exists() or not _ID.fullmatch(name):
        return read_bundle(path)
    kept = sorted(folder().glob("*.zip"))
    found = [each for each in kept if each.stem.startswith(name)]
    if len(found) != 1:
        known = listed([each.stem[:SHORT] for each in kept]) or "none"
        raise BundleError(f"{len(found)} bundles begin with {name!r}; kept are: {known}")
    bundle = read_bundle(found[0])
    if bundle.id != found[0].stem:
        raise BundleError(f"{found[0]} was changed since it was added: remove it and add it again")
    return bundle

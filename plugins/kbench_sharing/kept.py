"""Bundles of others that are kept here: named by their content, and never changed."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kbench.errors import BundleError
from kbench.features import read_file, state_folder, write_file
from kbench.messages import listed, masked, printable
from kbench_sharing import container, form
from kbench_sharing.fetching import is_url
from kbench_sharing.form import Bundle
from kbench_sharing.reading import MOST_ROWS, ROWS, read_bundle
from kbench_sharing.texts import parsed

SHORT = 12
"""Hexadecimal digits of an id that are shown."""

_ID = re.compile(r"[0-9a-f]{6,64}")
_ENDS = (".zip", ROWS)


def folder() -> Path:
    """Return the folder of kept bundles, in the state folder of this machine."""
    return state_folder() / "bundles"


def keep(bundle: Bundle) -> tuple[Path, bool]:
    """Keep a checked bundle or rows file; return its file, and whether it is new.

    The files of a bundle are packed anew: nothing of the zip file that was read is kept.
    BundleError is raised where it cannot be written.
    """
    is_rows = form.ROWS_FILE in bundle.files
    path = folder() / f"{bundle.id}{ROWS if is_rows else '.zip'}"
    if path.exists():
        return path, False
    data = bundle.files[form.ROWS_FILE] if is_rows else container.zipped(bundle.files)
    try:
        write_file(path, data, mode=0o400)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error
    return path, True


def find(name: str) -> Bundle:
    """Read a bundle, given its path, or the beginning of the id of a kept one.

    BundleError is raised where there is none, or it is refused.
    """
    if is_url(name):
        raise BundleError(
            f"{printable(masked(name), 200)} is an address: `kbench add` fetches it, and prints "
            "the id to name instead"
        )
    path = Path(name).expanduser()
    if path.exists() or not _ID.fullmatch(name):
        return read_bundle(path)
    kept = _files()
    found = [each for each in kept if each.stem.startswith(name)]
    if len(found) != 1:
        known = listed([each.stem[:SHORT] for each in kept]) or "none"
        raise BundleError(f"{len(found)} bundles begin with {name!r}; kept are: {known}")
    return _read(found[0])


def of_suite(name: str, notice: Callable[[str], None]) -> Iterator[Bundle]:
    """Yield the kept bundles of a suite; `notice` is told why one is left out.

    Those of other suites are not read but for their heads.
    """
    for path in _files():
        try:
            if _suite_of(path) == name:
                yield _read(path)
        except BundleError as error:
            notice(str(error))


def _files() -> list[Path]:
    return sorted(path for path in folder().glob("*") if path.suffix in _ENDS)


def _read(path: Path) -> Bundle:
    bundle = read_bundle(path)
    if bundle.id != path.stem:
        raise BundleError(f"{path} was changed since it was added: remove it and add it again")
    return bundle


def _suite_of(path: Path) -> object:
    """Return the suite that the head of a kept bundle names."""
    try:
        if path.suffix == ROWS:
            head = read_file(path, MOST_ROWS).partition(b"\n")[0]
        else:
            with zipfile.ZipFile(path) as archive, archive.open(form.MANIFEST) as file:
                head = file.read(container.MOST_HEAD)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, NotImplementedError):
        raise BundleError(f"{path} is damaged: remove it and add it again") from None
    value = parsed(head, path.name)
    return value.get("suite") if isinstance(value, dict) else None

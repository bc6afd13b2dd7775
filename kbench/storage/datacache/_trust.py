"""Verification of an entry's files, and the time at which they were last verified."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from kbench.errors import DatasetError
from kbench.storage.datacache._entry import UnreadableError, digest, read_meta
from kbench.storage.files import make_folder, read_file, write_file

TRUST_S = 24 * 3600
"""Seconds for which verified files, whose size, times and inode have not changed
since, are not verified again."""

_NOTE_BYTES = 1 << 16


def problem_in(root: Path, checksum: str, thorough: bool) -> str | None:
    """Return the problem with an entry or None; stamp it if all bytes were read.

    UnreadableError is raised where another user does not share it.
    """
    try:
        meta = read_meta(root, checksum)
    except UnreadableError:
        raise
    except DatasetError as error:
        return str(error)
    folder = root / checksum
    where = f"dataset {meta['name']!r} ({checksum[:12]}) in the cache {root}"
    state = {}
    for file, facts in meta["files"].items():
        try:
            known = (folder / file).lstat()
        except OSError:
            return f"{where}: {file} is missing"
        if not stat.S_ISREG(known.st_mode):
            return f"{where}: {file} is not a regular file"
        if known.st_size != facts["size"]:
            return f"{where}: {file} has {known.st_size} bytes instead of {facts['size']}"
        state[file] = _state(known)
    if not thorough and _is_trusted(root, checksum, state):
        return None
    for file, facts in meta["files"].items():
        try:
            intact = digest(folder / file) == facts["sha256"]
        except PermissionError as error:
            raise UnreadableError(f"{where}: {file} cannot be read: {error.strerror}") from None
        except OSError as error:
            return f"{where}: {file} cannot be read: {error.strerror}"
        if not intact:
            return f"{where}: the content of {file} has changed since it was stored"
    stamp(root, checksum, state)
    return None


def stamp(root: Path, checksum: str, state: Mapping[str, list[int]] | None = None) -> None:
    """Record that all bytes of an entry were read or written just now."""
    with contextlib.suppress(OSError, DatasetError):  # a read-only cache works too
        if state is None:
            state = {}
            for file in read_meta(root, checksum)["files"]:
                state[file] = _state((root / checksum / file).lstat())
        noted = json.dumps({"time": time.time(), "files": state})
        make_folder(root / "verified", root)
        write_file(root / "verified" / f"{checksum}.json", noted.encode("utf-8"), like=root)


def _is_trusted(root: Path, checksum: str, state: Mapping[str, list[int]]) -> bool:
    try:
        noted = json.loads(read_file(root / "verified" / f"{checksum}.json", _NOTE_BYTES))
        return bool(noted["files"] == state and 0 <= time.time() - noted["time"] < TRUST_S)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _state(known: os.stat_result) -> list[int]:
    return [known.st_size, known.st_mtime_ns, known.st_ctime_ns, known.st_ino]

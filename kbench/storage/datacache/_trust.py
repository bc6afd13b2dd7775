"""Verification of an entry's files, and the time at which they were last verified."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from kbench.errors import DatasetError
from kbench.storage.datacache._entry import digest, read_meta
from kbench.storage.files import write_file

TRUST_S = 24 * 3600
"""Seconds for which verified files, whose size, times and inode have not changed
since, are not verified again."""


def problem_in(root: Path, checksum: str, thorough: bool) -> str | None:
    """Return the problem with an entry or None; stamp it if all bytes were read."""
    try:
        meta = read_meta(root, checksum)
    except DatasetError as error:
        return str(error)
    folder = root / checksum
    where = f"dataset {meta['name']!r} ({checksum[:12]}) in the cache {root}"
    state = {}
    for file, facts in meta["files"].items():
        try:
            stat = (folder / file).stat()
        except OSError:
            return f"{where}: {file} is missing"
        if stat.st_size != facts["size"]:
            return f"{where}: {file} has {stat.st_size} bytes instead of {facts['size']}"
        state[file] = _state(stat)
    if not thorough and _is_trusted(root, checksum, state):
        return None
    for file, facts in meta["files"].items():
        try:
            intact = digest(folder / file) == facts["sha256"]
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
                state[file] = _state((root / checksum / file).stat())
        noted = json.dumps({"time": time.time(), "files": state})
        write_file(root / "verified" / f"{checksum}.json", noted.encode("utf-8"))


def _is_trusted(root: Path, checksum: str, state: Mapping[str, list[int]]) -> bool:
    try:
        noted = json.loads((root / "verified" / f"{checksum}.json").read_text("utf-8"))
        return bool(noted["files"] == state and 0 <= time.time() - noted["time"] < TRUST_S)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _state(stat: os.stat_result) -> list[int]:
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]

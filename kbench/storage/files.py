"""Atomic, crash-safe file writes."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def unused(folder: Path) -> Path:
    """Return a temporary name in a folder that no other process uses."""
    # not tempfile, whose files nobody else may read: users may share a cache
    return folder / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"


def write_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a small file atomically; its folder is made where it is missing.

    The permissions are `mode` less the umask of the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unused(path.parent)
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def rename_folder(temporary: Path, final: Path) -> None:
    """Rename a folder; `FileExistsError` where the name is taken, on every system."""
    try:
        temporary.rename(final)
    except OSError as error:
        if final.exists():
            raise FileExistsError(final) from error
        raise


def sync_folder(folder: Path) -> None:
    """Flush the names of new files in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Writing that is there as a whole or not at all, also after a crash."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def unused(folder: Path) -> Path:
    """Return a temporary name in a folder that no other process uses."""
    # not tempfile, whose names are private: other users may share the cache
    return folder / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"


def write_text(path: Path, text: str) -> None:
    """Write a small file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unused(path.parent)
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def rename_folder(temporary: Path, final: Path) -> None:
    """Rename a folder; `FileExistsError` where the name is taken, on every system."""
    try:
        temporary.rename(final)
    except OSError as error:
        if final.exists():
            raise FileExistsError(final) from error
        raise


def sync(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

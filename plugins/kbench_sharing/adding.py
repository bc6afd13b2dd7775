"""New files of a results repository: all are written beside it before the first has its name.

A command that is killed leaves no part of a file among the results, and what it has added is
whole. What it leaves beside them is removed by a later one.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from kbench.errors import BundleError
from kbench.features import read_file, write_file

_DRAFT, _STALE_S = ".kbench-", 3600.0


def add_files(repository: Path, files: Iterable[tuple[str, bytes]], most: int) -> tuple[int, int]:
    """Add files by name; return how many are new, and how many were there.

    BundleError is raised where a link is in the way, a file of the name has another content
    (files have `most` bytes), or the folder cannot be written.
    """
    draft = repository / f"{_DRAFT}{secrets.token_hex(8)}"
    pending: list[tuple[Path, Path]] = []
    n_kept, path = 0, repository
    try:
        _sweep(repository)
        for name, data in files:
            path = repository / name
            for parent in list(Path(name).parents)[:-1]:
                if (repository / parent).is_symlink():
                    raise BundleError(
                        f"{repository / parent} is a link, and nothing is written there"
                    )
            if os.path.lexists(path):
                _check_same(path, data, most)
                n_kept += 1
            else:
                # git writes without flushing too; a check finds what a loss of power left
                write_file(draft / str(len(pending)), data, flush=False)
                pending.append((draft / str(len(pending)), path))
        for written, path in pending:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.rename(path)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return len(pending), n_kept


def _sweep(repository: Path) -> None:
    """Remove what commands have left that were killed long ago."""
    for left in repository.glob(f"{_DRAFT}*"):
        if not left.is_symlink() and time.time() - left.stat().st_mtime > _STALE_S:
            shutil.rmtree(left, ignore_errors=True)


def _check_same(path: Path, data: bytes, most: int) -> None:
    try:
        same = read_file(path, most) == data
    except OSError:
        same = False
    if not same:
        raise BundleError(f"{path} was changed: its content is not that of its name")

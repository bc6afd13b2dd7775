"""Temporary folders of a cache, which are removed once their process has ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kbench.errors import DatasetError
from kbench.storage.files import unused
from kbench.storage.locks import try_lock

PREFIX = ".tmp-"

NEW_S = 60
"""Age in seconds from which a folder is locked, if its process is still there."""

UNLOCKED_S = 24 * 3600
"""Age in seconds from which a folder that cannot be locked is taken for abandoned."""


@contextmanager
def temporary(root: Path) -> Iterator[Path]:
    """Make a folder in a cache; what is left of it is removed at the end.

    It is locked, so that `sweep` of another process leaves it alone.
    """
    folder = unused(root)
    folder.mkdir()
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # some file systems have no locks
                try_lock(handle, shared=False)
            yield folder
        finally:
            os.close(handle)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(root: Path) -> None:
    """Remove the temporary folders of processes that were killed."""
    for folder in root.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            age = time.time() - folder.stat().st_mtime
            if age > UNLOCKED_S or (age > NEW_S and _is_abandoned(folder)):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY)
    try:
        return try_lock(handle, shared=False)
    finally:
        os.close(handle)


class ScratchFolder:
    """A temporary folder of a cache for arrays that become part of an entry.

    It is made for the first file. `refuse` turns an error of the system into a message.
    """

    def __init__(
        self, open_folder: Callable[[], Path], refuse: Callable[[OSError], DatasetError]
    ) -> None:
        self._open_folder, self._refuse = open_folder, refuse
        self._folder: Path | None = None
        self._n_files = 0

    def new_file(self) -> Path:
        """Return the name of a file that is not there yet."""
        if self._folder is None:
            self._folder = self._open_folder()
        self._n_files += 1
        return self._folder / f"{self._n_files}.npy"

    def refusal(self, error: OSError) -> DatasetError:
        """Return the message for a file that cannot be written."""
        return self._refuse(error)


def scratch_file(array: np.ndarray, root: Path) -> Path | None:
    """Return the file in a temporary folder of a cache that holds an array, and only it."""
    base: np.ndarray | None = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.mode != "r" or base.filename is None:
        return None
    path = Path(base.filename)
    is_whole = array.flags.c_contiguous and (array.dtype, array.shape) == (base.dtype, base.shape)
    is_ours = path.parent.parent == root.resolve() and path.parent.name.startswith(PREFIX)
    try:
        size = path.stat().st_size
    except OSError:
        return None
    return path if is_whole and is_ours and size == base.offset + base.nbytes else None

"""Files that must not change while they are read, once or several times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kbench.errors import DatasetError


@contextlib.contextmanager
def unchanged(files: Sequence[Path], what: str) -> Iterator[None]:
    """Refuse files that change meanwhile; an error that this causes is not reported."""
    before = _states(files)
    try:
        yield
    except Exception:
        if _states(files) != before:
            raise DatasetError(_changed(what)) from None
        raise
    if _states(files) != before:
        raise DatasetError(_changed(what))


def _states(files: Sequence[Path]) -> list[tuple[int, ...]]:
    states: list[tuple[int, ...]] = []
    for file in files:
        with contextlib.suppress(OSError):
            state = file.stat()
            states.append((state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
    return states


def _changed(what: str) -> str:
    return f"{what} has changed while it was read; run the same command again"

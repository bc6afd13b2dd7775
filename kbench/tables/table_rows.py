"""A user's table that is read in blocks of rows, as often as needed, from files that stay equal."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kbench.errors import DatasetError

if TYPE_CHECKING:
    import pandas


class Scan(Protocol):
    """What looks at one column, block by block."""

    note: str
    """What messages add to the name of the column."""

    def wants(self, series: "pandas.Series | None" = None) -> bool:
        """Whether values matter: those of this type, or of any."""

    def add(self, series: "pandas.Series") -> None:
        """Look at the next values."""

    def restart(self) -> None:
        """Discard all values: another pass begins."""


class TableRows(Protocol):
    """A table in one or several files, which `what` describes in messages."""

    files: Sequence[Path]
    what: str
    names: Sequence[str]

    def scan(self, scans: Mapping[str, Scan]) -> int:
        """Show columns to their `Scan`, in one pass if possible; return the number of rows."""

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of columns of numbers; see `scan`, after which it is called."""

    def blocks(self, names: Sequence[str]) -> "Iterator[Mapping[str, pandas.Series]]":
        """Yield the series of these columns, for consecutive rows."""


@dataclass(frozen=True)
class Opened:
    """A user's table, and how its files are written."""

    rows: TableRows
    params: Mapping[str, object] = field(default_factory=dict)
    """Parameters of the source that were not given and have been guessed."""
    sentence: str = ""
    """The format and the reading options of the files."""
    warnings: Sequence[str] = ()
    """What the guess leaves open, and the option that changes it."""


class FrameRows:
    """The rows of a data frame, in one block."""

    def __init__(self, frame: "pandas.DataFrame", what: str) -> None:
        self._frame, self.what = frame, what
        self.files: Sequence[Path] = ()
        self.names: Sequence[str] = [str(name).strip() for name in frame.columns]
        self._frame.columns = self.names

    def scan(self, scans: Mapping[str, Scan]) -> int:
        """Show columns to their `Scan`; return the number of rows."""
        for name, scan in scans.items():
            if scan.wants(self._frame[name]):
                scan.add(self._frame[name])
        return len(self._frame)

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of columns of numbers."""
        from pandas.api import types

        dtypes = {}
        for name in self.names:
            dtype = self._frame[name].dtype
            if types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype):
                dtypes[name] = dtype if isinstance(dtype, np.dtype) else np.dtype(np.float64)
        return dtypes

    def blocks(self, names: Sequence[str]) -> "Iterator[Mapping[str, pandas.Series]]":
        """Yield the series of these columns."""
        yield {name: self._frame[name] for name in names}


@contextlib.contextmanager
def reject_changes(files: Sequence[Path], source: str) -> Iterator[None]:
    """Reject files that change meanwhile; an error that this causes is not reported."""
    before = _states(files)
    try:
        yield
    except Exception:
        if _states(files) != before:
            raise DatasetError(_describe_change(source)) from None
        raise
    if _states(files) != before:
        raise DatasetError(_describe_change(source))


def _states(files: Sequence[Path]) -> list[tuple[int, ...]]:
    states: list[tuple[int, ...]] = []
    for file in files:
        with contextlib.suppress(OSError):
            state = file.stat()
            states.append((state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
    return states


def _describe_change(source: str) -> str:
    return f"{source} has changed while it was read; run the same command again"

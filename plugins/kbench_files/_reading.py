"""Files as they are: opened within limits, and read as tables of text.

A path is relative to the current folder.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbench import DatasetError
from kbench.tables.limits import BoundedText, check_file_size


def existing(path: Any, what: str = "file") -> tuple[Path, str]:
    """Return the file of a path and its description for messages, which begins with `what`."""
    file = Path(str(path)).expanduser()
    what = f"{what} {str(path)!r}"
    try:
        size = file.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(f"{what}: {reason} (looked for {file.absolute()})") from None
    if not file.is_file():
        raise DatasetError(f"{what} is not a file")
    if size == 0:
        raise DatasetError(f"{what} is empty")
    check_file_size(size, what)
    return file, what


def csv_table(path: str | Path, delimiter: str = ",", **_: Any) -> Any:
    """Return a CSV file as a data frame, before anything is encoded."""
    import pandas

    # a stream, not a name: pandas would fetch what looks like an address
    with bounded(*existing(path), delimiter) as text:
        return pandas.read_csv(
            text,
            sep=delimiter,
            index_col=False,  # or surplus values would shift the columns, silently
            na_values=["?"],
            skipinitialspace=True,
            low_memory=False,
        )


@contextlib.contextmanager
def bounded(file: Path, what: str, delimiter: str) -> Iterator[io.BufferedReader]:
    """Open a CSV file, perhaps a packed one; DatasetError where it unpacks to too much."""
    from pandas.io.common import get_handle

    # absolute: pandas takes a relative path such as "http:/x.csv" for an address
    with get_handle(file.absolute(), "rb", compression="infer", is_text=False) as opened:
        text = BoundedText(opened.handle, what, delimiter)
        try:
            yield io.BufferedReader(text, 1 << 18)
        except Exception:
            if text.problem is not None:  # pandas replaces it
                raise text.problem from None
            raise


def first_text(file: Path) -> str:
    """Return the first line of a file that pandas opens, without parsing it."""
    import pandas

    try:
        with pandas.io.common.get_handle(
            file.absolute(), "r", compression="infer", errors="replace"
        ) as text:
            return str(text.handle.readline(1 << 16))
    except (OSError, ValueError, EOFError):
        return ""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__

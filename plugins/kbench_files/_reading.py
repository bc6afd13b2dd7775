"""Files as they are: opened within limits.

A path is relative to the current folder.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kbench import DatasetError
from kbench.parameters import is_pattern, named_files
from kbench.tables.limits import check_file_size
from kbench_files._bounded import BoundedText

WIDE = ("utf-16", "utf16", "utf-32", "utf32")
"""Encodings with NUL bytes."""


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


def existing_files(path: Any, endings: Sequence[str] = ()) -> tuple[list[Path], str]:
    """Return a file, or those of a folder or a pattern, and a description for messages.

    Without `endings` there is one file.
    """
    folder = Path(str(path)).expanduser()
    try:
        is_one = not endings or (
            not folder.is_dir() and (folder.exists() or not is_pattern(folder))
        )
    except (OSError, ValueError):
        is_one = True
    if is_one:
        file, what = existing(path)
        return [file], what
    what = f"files {str(path)!r}"
    files = [file for file in named_files(folder) if file.suffix.lower() in endings]
    if not files:
        wanted = " or ".join(endings)
        hint = ""
        if folder.is_dir() and any(folder.glob(f"*/*{endings[0]}")):
            hint = f"; those in its folders are {str(folder / '*' / ('*' + endings[0]))!r}"
        raise DatasetError(f"{what}: there is no file that ends in {wanted} there{hint}")
    for file in files:
        existing(file)
    check_file_size(sum(file.stat().st_size for file in files), what)
    return files, what


@contextlib.contextmanager
def bounded(
    file: Path, what: str, delimiter: str = ",", encoding: str = ""
) -> Iterator[io.BufferedReader]:
    """Open a text file, perhaps a packed one; DatasetError where it unpacks to too much.

    Where the encoding is given and has no NUL bytes, these are refused.
    """
    from pandas.io.common import get_handle

    # absolute: pandas takes a relative path such as "http:/x.csv" for an address
    with get_handle(file.absolute(), "rb", compression="infer", is_text=False) as opened:
        may_have_nul = not encoding or encoding.lower().replace("_", "-").startswith(WIDE)
        text = BoundedText(opened.handle, what, delimiter, may_have_nul)
        try:
            yield io.BufferedReader(text, 1 << 18)
        except Exception:
            if text.problem is not None:  # pandas replaces it
                raise text.problem from None
            raise


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__

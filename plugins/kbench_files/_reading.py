"""Files as they are: opened within limits, which hold for what they unpack to too.

A path is relative to the current folder.
"""

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from kbench import DatasetError
from kbench.parameters import is_pattern, list_files
from kbench.tables.limits import check_file_size, check_values, max_bytes, too_large


class BoundedText(io.RawIOBase):
    """A stream of separated values that ends with an error where it becomes too large.

    It counts the bytes that come out of another stream, which may unpack a file, and
    the values between delimiters, each of which needs 8 bytes in memory. NUL bytes, which
    parsers treat as the end of a value, are errors on request. Parsers replace the error
    by one of their own: it is `problem`.
    """

    def __init__(
        self, source: IO[bytes], label: str, delimiter: str, may_have_nul: bool = True
    ) -> None:
        self.problem: DatasetError | None = None
        self._source, self._what, self._may_have_nul = source, label, may_have_nul
        self._ends = [*(delimiter.encode()[:1] or b","), *b"\n"]
        self._n_bytes = self._n_values = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray) -> int:
        """Read into a buffer; DatasetError where the limit is exceeded."""
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        if not self._may_have_nul and b"\0" in data:
            place = self._n_bytes + data.index(b"\0") + 1
            self.problem = DatasetError(
                f"{self._what}: it is not a text file (byte {place:,} is NUL)"
            )
            raise self.problem
        self._n_bytes += len(data)
        # numpy counts frequent bytes in a third of the time of `bytes.count`
        self._n_values += sum(
            int(np.count_nonzero(np.frombuffer(data, np.uint8) == end)) for end in self._ends
        )
        try:
            if self._n_bytes > max_bytes():
                size = self._n_bytes / 2**20
                raise too_large(self._what, f"unpacked, the file has at least {size:,.0f} MiB")
            check_values(self._n_values, self._what, "the values of the file")
        except DatasetError as error:
            self.problem = error
            raise
        return len(data)


WIDE = ("utf-16", "utf16", "utf-32", "utf32")
"""Encodings with NUL bytes."""


def existing(path: object, label: str = "file") -> tuple[Path, str]:
    """Return the file of a path and its description for messages, which begins with `label`."""
    file = Path(str(path)).expanduser()
    label = f"{label} {str(path)!r}"
    try:
        size = file.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(f"{label}: {reason} (looked for {file.absolute()})") from None
    if not file.is_file():
        raise DatasetError(f"{label} is not a file")
    if size == 0:
        raise DatasetError(f"{label} is empty")
    check_file_size(size, label)
    return file, label


def existing_files(path: object, endings: Sequence[str] = ()) -> tuple[list[Path], str]:
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
        file, label = existing(path)
        return [file], label
    label = f"files {str(path)!r}"
    files = [file for file in list_files(folder) if file.suffix.lower() in endings]
    if not files:
        wanted = " or ".join(endings)
        hint = ""
        if folder.is_dir() and any(folder.glob(f"*/*{endings[0]}")):
            hint = f"; those in its folders are {str(folder / '*' / ('*' + endings[0]))!r}"
        raise DatasetError(f"{label}: there is no file that ends in {wanted} there{hint}")
    for file in files:
        existing(file)
    check_file_size(sum(file.stat().st_size for file in files), label)
    return files, label


@contextlib.contextmanager
def open_bounded(
    file: Path, label: str, delimiter: str = ",", encoding: str = ""
) -> Iterator[io.BufferedReader]:
    """Open a text file, also a compressed one; DatasetError if it is too large.

    If the encoding is given and has no NUL bytes, these are errors.
    """
    from pandas.io.common import get_handle

    # absolute: pandas takes a relative path such as "http:/x.csv" for an address
    with get_handle(file.absolute(), "rb", compression="infer", is_text=False) as opened:
        may_have_nul = not encoding or encoding.lower().replace("_", "-").startswith(WIDE)
        stream = BoundedText(opened.handle, label, delimiter, may_have_nul)
        try:
            yield io.BufferedReader(stream, 1 << 18)
        except Exception:
            if stream.problem is not None:  # pandas replaces it
                raise stream.problem from None
            raise


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__

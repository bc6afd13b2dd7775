"""Size limits of a user's table, which hold before it is in memory."""

from __future__ import annotations

import io
import os
from typing import IO, Any

from kbench.errors import DatasetError


def max_bytes() -> int:
    """Return the largest size of a dataset, as a file and in memory.

    It is ``$KBENCH_MAX_DATASET_MB``, 4096 by default, in bytes; `DatasetError` if
    that is not a positive number.
    """
    text = os.environ.get("KBENCH_MAX_DATASET_MB", "4096")
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes < 2**33:
        raise DatasetError(f"KBENCH_MAX_DATASET_MB must be a positive number, got {text!r}")
    return int(megabytes * 2**20)


def check_file_size(size: int, what: str) -> None:
    """Refuse a file of more bytes than `max_bytes`; `what` is the dataset, for messages."""
    if size > max_bytes():
        raise too_large(what, f"the file has {size / 2**20:,.0f} MB")


def check_values(n_values: int, what: str, shape: str, n_bytes: int = 8) -> None:
    """Refuse a table that would need more than `max_bytes`.

    `n_values` is the number of its values, each of `n_bytes`, and `shape` their description,
    for messages.
    """
    if n_bytes * n_values > max_bytes():
        raise too_large(what, f"{shape} need {n_bytes * n_values / 2**20:,.0f} MB in memory")


def too_large(what: str, why: str) -> DatasetError:
    """Return the error for data of more than `max_bytes`."""
    return DatasetError(
        f"{what}: {why}, more than the {max_bytes() / 2**20:,.0f} MB allowed. "
        "Raise KBENCH_MAX_DATASET_MB."
    )


class BoundedText(io.RawIOBase):
    """A stream of separated values that ends with an error where it becomes too large.

    It counts the bytes that come out of another stream, which may unpack a file, and
    the values between delimiters, each of which needs 8 bytes in memory.

    Parameters
    ----------
    source : binary stream
    what : str
        The dataset, for messages.
    delimiter : str
        Sign between two values of a line.
    may_have_nul : bool, default True
        NUL bytes, which parsers take for the end of a value, are not refused.

    Attributes
    ----------
    problem : DatasetError or None
        The error that ended the stream: parsers replace it by an error of their own.
    """

    def __init__(
        self, source: IO[bytes], what: str, delimiter: str, may_have_nul: bool = True
    ) -> None:
        self.problem: DatasetError | None = None
        self._source, self._what, self._may_have_nul = source, what, may_have_nul
        self._delimiter = delimiter.encode()[:1] or b","
        self._n_bytes = self._n_values = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
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
        self._n_values += data.count(self._delimiter) + data.count(b"\n")
        try:
            if self._n_bytes > max_bytes():
                size = self._n_bytes / 2**20
                raise too_large(self._what, f"unpacked, the file has at least {size:,.0f} MB")
            check_values(self._n_values, self._what, "the values of the file")
        except DatasetError as error:
            self.problem = error
            raise
        return len(data)

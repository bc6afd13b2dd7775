"""Text of bounded size."""

from __future__ import annotations

import io
from typing import IO, Any

from kbench import DatasetError
from kbench.tables.limits import check_values, max_bytes, too_large


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

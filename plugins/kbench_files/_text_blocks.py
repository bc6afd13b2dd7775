"""Blocks of rows of a CSV file, all cells as strings; bundled with each exported model."""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from kbench.messages import option
from kbench_files._layout import SEP, find_layout, survey_lines

BLOCK = 20_000
"""Rows of a block."""

LONGEST_LINE = 10_000_000
"""Maximum number of characters per line: a file that unpacks to one line would fill the memory."""

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class TextBlocks:
    """The columns of a CSV file by name, for consecutive rows; at least one block.

    The table is found in the file as `kbench_files._layout` finds it, and a first line ``sep=;``
    names the delimiter. Where the names are in the first row, or `header_row` is given, all rows
    with a cell for each name are read; with `keep_totals`, rows of totals are read everywhere.
    ValueError names the error in the file and its line.

    Attributes
    ----------
    notices : sequence of str
        What is not read.
    """

    def __init__(
        self,
        path: Path,
        delimiter: str = ",",
        encoding: str = "utf-8",
        header_row: str = "",
        keep_totals: bool = False,
        n_rows: int = BLOCK,
    ) -> None:
        self._path, self._delimiter, self._n_rows = path, delimiter, n_rows
        is_utf8 = encoding.lower().replace("_", "-") == "utf-8"
        self._encoding = "utf-8-sig" if is_utf8 else encoding
        with self._open() as stream:
            sign = SEP.fullmatch(stream.readline(20).strip())
        self._delimiter = sign[1] if sign and sign[1] else delimiter
        with self._open() as stream:
            known = survey_lines(_lines(stream), self._read)
        self._layout = find_layout(*known, header_row, True, keep_totals)
        self.notices, names = self._layout.notices, self._layout.names
        if not names:
            raise ValueError(f"file {str(path)!r} is empty")
        if len(set(names)) < len(names):
            twice = min(name for name in set(names) if names.count(name) > 1)
            raise ValueError(f"file {str(path)!r}: several columns are named {twice!r}")

    def __iter__(self) -> Iterator[dict[str, list[object]]]:
        with self._rows() as rows:
            selected, is_first = self._layout.select(rows), True
            while (block := list(islice(selected, self._n_rows))) or is_first:
                columns = (
                    map(list, zip(*block, strict=True))
                    if block
                    else ([] for _ in self._layout.names)
                )
                yield dict(zip(self._layout.names, columns, strict=True))
                is_first = False

    @contextlib.contextmanager
    def _open(self) -> Iterator[io.TextIOWrapper]:
        label = f"file {str(self._path)!r}"
        opener = _OPENERS.get(self._path.suffix.lower(), open)
        try:
            with io.TextIOWrapper(
                opener(self._path, "rb"), encoding=self._encoding, newline=""
            ) as stream:
                yield stream
        except UnicodeError as error:
            byte = getattr(error, "object", b"")[getattr(error, "start", 0) :][:1]
            raise ValueError(
                f"{label}: it is not {self._encoding.removesuffix('-sig')} (byte "
                f"{byte.hex() or '?'}); name its encoding, such as {option('encoding', 'cp1252')}"
            ) from None
        except LookupError:
            raise ValueError(f"{label}: no encoding is named {self._encoding!r}") from None
        except (csv.Error, EOFError, ValueError, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise ValueError(f"{label}: {error}") from None

    @contextlib.contextmanager
    def _rows(self) -> Iterator[Iterator[list[str]]]:
        with self._open() as stream:
            yield self._read(_lines(stream))

    def _read(self, lines: Iterable[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True)


def _lines(stream: io.TextIOWrapper) -> Iterator[str]:
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"a line has more than {LONGEST_LINE:,} characters")
        yield line

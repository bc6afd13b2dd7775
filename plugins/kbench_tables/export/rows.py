"""CSV files in blocks of rows, all cells as texts; it leaves with a model."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbench.tables.texts import PREAMBLE, preamble

BLOCK = 20_000
"""Rows of a block."""

LONGEST_LINE = 10_000_000
"""Characters of a line, at most: a file that unpacks to one line would fill the memory."""

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def csv_blocks(
    path: Path, delimiter: str = ",", encoding: str = "utf-8", n_rows: int = BLOCK
) -> Iterator[dict[str, list[str]]]:
    """Yield the columns of a CSV file by name, for consecutive rows; at least one block.

    Lines that begin with ``#`` before that of column names are left out, and a first line
    ``sep=;`` names the delimiter.

    A `ValueError` says what is wrong with the file, and in which line.
    """
    what = f"file {str(path)!r}"
    try:
        with _opened(path, encoding) as text:
            n_before, named = preamble(text.read(PREAMBLE))
            text.seek(0)
            for _ in range(n_before):
                text.readline()
            yield from _blocks(text, what, named or delimiter, n_rows, n_before)
    except UnicodeError as error:
        found = getattr(error, "object", b"")[getattr(error, "start", 0) :][:1]
        raise ValueError(
            f"{what}: it is not {encoding} (byte {found.hex() or '?'}); name its encoding, such as "
            "--encoding cp1252"
        ) from None
    except LookupError:
        raise ValueError(f"{what}: no encoding is called {encoding!r}") from None
    except (csv.Error, EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ValueError(f"{what}: {error}") from None


def _opened(path: Path, encoding: str) -> Any:
    opener = _OPENERS.get(path.suffix.lower(), open)
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") == "utf-8" else encoding
    return io.TextIOWrapper(opener(path, "rb"), encoding=encoding, newline="")


def _lines(text: Any, what: str) -> Iterator[str]:
    while line := text.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{what}: a line has more than {LONGEST_LINE:,} characters")
        yield line


def _blocks(
    text: Any, what: str, delimiter: str, n_rows: int, n_before: int
) -> Iterator[dict[str, list[str]]]:
    reader = csv.reader(_lines(text, what), delimiter=delimiter, skipinitialspace=True)
    header = next((row for row in reader if row), None)
    if header is None:
        raise ValueError(f"{what} is empty")
    names = [name.strip() for name in header]
    if len(set(names)) < len(names):
        twice = min(name for name in set(names) if names.count(name) > 1)
        raise ValueError(f"{what}: several columns are named {twice!r}")
    rows: list[list[str]] = []
    is_first = True
    for row in reader:
        if not row:
            continue
        if len(row) != len(names):
            raise ValueError(
                f"{what}: line {reader.line_num + n_before:,} has {len(row):,} values, and the "
                f"first line has {len(names):,} names"
            )
        rows.append(row)
        if len(rows) == n_rows:
            yield dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
            rows, is_first = [], False
    if rows or is_first:
        columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
        yield dict(zip(names, columns, strict=True))

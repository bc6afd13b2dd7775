"""A reader of ARFF files: exact, bounded in memory, and strict about every line.

Own code, because pyarrow does not read ARFF and liac-arff 2.5 fails stated needs: it
truncates 1.5 to 1 in a column declared "integer", accepts a column twice in a sparse
row and text in the header, refuses dates, tabs, "real [0,1]" and files without
@relation, and does not name the column of a mistake. Its pattern for nominal values
is exponential: 14 quoted ones without a closing brace take it 2 s, 18 more than 50 s.
100,000 x 51 numbers take it 4.1 s (here 1.1; with a quote in every line 4.7, here
6.6), 5 million sparse values 7.3 s and 560 MB (here 3.7 s and 310).

Blocks of plain lines (no quotes, comments or escapes: nearly all of OpenML) are
parsed together (`arff_rows`); other blocks, and blocks with a mistake, go through a
tokeniser that names the line. A large dense table is not in memory as a whole: its blocks
go to a file (`kbench.tables.limits`), from which the columns are mapped. Weights of
instances and relational attributes are not supported.

Format: https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from kbench.errors import DatasetError
from kbench.tables.arff_rows import (
    QUOTED,
    DenseRows,
    LineError,
    SparseRows,
    decoded,
    split_values,
    unquoted,
)
from kbench.tables.limits import check_file_size
from kbench.tables.table import Column, Table

BLOCK = 8 * 2**20
"""Bytes of the file that are parsed together."""

MAX_COLUMNS = 200_000
"""More attributes than this are taken for an absurd header."""

MAX_LINE = 64 * 2**20
"""Bytes of the longest line."""

_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s'\"{{][^\s{{]*)\s*(.*)$", re.I | re.S)


def read_arff(path: Path, what: str) -> Table:
    """Read a dense or sparse ARFF file.

    DatasetError is raised where the file is not ARFF, with the number of the line and the reason,
    or is larger than ``KBENCH_MAX_DATASET_MB``.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    what : str
        The dataset, for messages.

    Returns
    -------
    Table
        With a CSC matrix where the file is sparse.
    """
    check_file_size(path.stat().st_size, what)
    with path.open("rb") as file:
        try:
            columns, first = _parse_header(file)
            rows = SparseRows(columns) if _is_sparse(file) else DenseRows(columns)
            for start, block in _blocks(file, first):
                rows.parse(block, start)
        except LineError as error:
            raise DatasetError(f"{what}: {error}") from None
    if not rows.n_rows:
        raise DatasetError(f"{what}: the file has no rows")
    return rows.table()


def is_sparse_arff(path: Path, what: str) -> bool:
    """Tell whether the rows of an ARFF file are sparse, from its header and its first row.

    DatasetError is raised where the header is not that of an ARFF file.
    """
    with path.open("rb") as file:
        try:
            _parse_header(file)
            return _is_sparse(file)
        except LineError as error:
            raise DatasetError(f"{what}: {error}") from None


def _parse_header(file: BinaryIO) -> tuple[list[Column], int]:
    """Read up to and with @data; return the columns and the number of the next line."""
    columns: list[Column] = []
    number = 0
    for number, raw in enumerate(iter(partial(file.readline, MAX_LINE), b""), 1):
        line = decoded(raw, number).lstrip("\ufeff").strip()
        if not line or line.startswith("%"):
            continue
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            columns.append(_parse_attribute(line, number))
            if len(columns) > MAX_COLUMNS:
                raise LineError(f"more than {MAX_COLUMNS:,} attributes are declared")
        elif word != "@relation":
            raise LineError(f"line {number} is not part of an ARFF header: {line[:60]!r}")
    else:
        raise LineError(f"the file ends in line {number + 1} without @data: not an ARFF file")
    if not columns:
        raise LineError("no attribute is declared")
    return columns, number + 1


def _parse_attribute(line: str, number: int) -> Column:
    match = _ATTRIBUTE.match(line)
    if not match:
        raise LineError(f"line {number}: the attribute cannot be read: {line[:60]!r}")
    name, kind = unquoted(match[1]), match[2].strip()
    if kind.startswith("{"):
        end = kind.rfind("}")
        if end < 0:
            raise LineError(f"line {number}: the values of {name!r} have no closing brace")
        categories = [value for value, _ in split_values(kind[1:end], number)]
        if categories and categories[-1] == "":  # a comma before the brace
            categories.pop()
        return Column(name, "nominal", list(dict.fromkeys(categories)))
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word in ("numeric", "real", "integer"):
        return Column(name, "numeric")
    if word in ("string", "date"):
        return Column(name, "string")
    raise LineError(f"line {number}: attribute {name!r} has the unknown type {kind[:40]!r}")


def _is_sparse(file: BinaryIO) -> bool:
    """Look at the first instance; the position in the file stays the same."""
    position = file.tell()
    lines = map(bytes.strip, iter(partial(file.readline, MAX_LINE), b""))
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    file.seek(position)
    return first.startswith(b"{")


def _blocks(file: BinaryIO, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, about `BLOCK` bytes together, with the number of the first."""
    rest = b""
    while read := file.read(BLOCK):
        cut = read.rfind(b"\n") + 1
        if not cut:
            rest += read
            if len(rest) > MAX_LINE:
                raise LineError(f"line {first} is longer than {MAX_LINE:,} bytes")
            continue
        block, rest = rest + read[:cut], read[cut:]
        yield first, block
        first += block.count(b"\n")
    if rest:
        yield first, rest

"""A reader of ARFF files: exact, bounded in memory, and strict about every line.

Blocks of plain lines (no quotes, comments or escapes: nearly all of OpenML) go
to Arrow's CSV parser after their commas have been counted; other blocks, and
blocks with a mistake, go through a tokeniser that names the line. Weights of
instances and relational attributes are not supported.

Format: https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kbench.errors import DatasetError
from kbench.tables.arff_dense import DenseBody
from kbench.tables.arff_sparse import SparseBody
from kbench.tables.arff_text import QUOTED, LineError, text_of, tokens_of, unquoted
from kbench.tables.limits import max_bytes
from kbench.tables.table import Column, Table

BLOCK = 8 * 2**20
"""Bytes of the file that are parsed together."""

MAX_COLUMNS = 200_000
"""More attributes than this are taken for an absurd header."""

MAX_LINE = 64 * 2**20
"""Bytes of the longest line."""

_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s'\"{{][^\s{{]*)\s*(.*)$", re.I | re.S)

_NUMERIC = {"numeric", "real", "integer"}


def read_arff(path: Path, what: str) -> Table:
    """Read a dense or sparse ARFF file.

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

    Raises
    ------
    DatasetError
        The file is not ARFF, with the number of the line and the reason, or
        is larger than ``KBENCH_MAX_DATASET_MB``.
    """
    size = path.stat().st_size
    if size > max_bytes():
        raise DatasetError(
            f"{what}: the file has {size / 2**20:,.0f} MB, more than the "
            f"{max_bytes() / 2**20:,.0f} MB allowed. Raise KBENCH_MAX_DATASET_MB."
        )
    with path.open("rb") as file:
        try:
            columns, first = _header(file)
        except LineError as error:
            raise DatasetError(f"{what}: {error}") from None
        sparse = _is_sparse(file)
        parse = SparseBody(columns) if sparse else DenseBody(columns)
        for start, block in _blocks(file, first):
            try:
                parse.block(block, start)
            except LineError as error:
                raise DatasetError(f"{what}: {error}") from None
    if not parse.n_rows:
        raise DatasetError(f"{what}: the file has no rows")
    return parse.table()


def _header(file: BinaryIO) -> tuple[list[Column], int]:
    """Read up to and with @data; return the columns and the number of the next line."""
    columns: list[Column] = []
    number = 0
    while True:
        raw = file.readline(MAX_LINE)
        number += 1
        if not raw:
            raise LineError(f"the file ends in line {number} without @data: it is no ARFF file")
        line = text_of(raw, number).lstrip("\ufeff").strip()
        if not line or line.startswith("%"):
            continue
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            columns.append(_attribute(line, number))
            if len(columns) > MAX_COLUMNS:
                raise LineError(f"more than {MAX_COLUMNS:,} attributes are declared")
        elif word != "@relation":
            raise LineError(f"line {number} is no part of an ARFF header: {line[:60]!r}")
    if not columns:
        raise LineError("no attribute is declared")
    return columns, number + 1


def _attribute(line: str, number: int) -> Column:
    found = _ATTRIBUTE.match(line)
    if not found:
        raise LineError(f"line {number}: the attribute cannot be read: {line[:60]!r}")
    name, kind = unquoted(found[1]), found[2].strip()
    if kind.startswith("{"):
        end = kind.rfind("}")
        if end < 0:
            raise LineError(f"line {number}: the values of {name!r} have no closing brace")
        categories = [value for value, _ in tokens_of(kind[1:end], number)]
        if categories and categories[-1] == "":  # a comma before the brace
            categories.pop()
        return Column(name, "nominal", list(dict.fromkeys(categories)))
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word in _NUMERIC:
        return Column(name, "numeric")
    if word in ("string", "date"):
        return Column(name, "string")
    raise LineError(f"line {number}: attribute {name!r} has the unknown type {kind[:40]!r}")


def _is_sparse(file: BinaryIO) -> bool:
    """Look at the first instance; the file stays where it is."""
    place = file.tell()
    sparse = False
    while raw := file.readline(MAX_LINE):
        line = raw.strip()
        if line and not line.startswith(b"%"):
            sparse = line.startswith(b"{")
            break
    file.seek(place)
    return sparse


def _blocks(file: BinaryIO, first: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines, about `BLOCK` bytes together, with the number of the first."""
    rest = b""
    while True:
        read = file.read(BLOCK)
        if not read:
            break
        cut = read.rfind(b"\n") + 1
        if not cut:
            rest += read
            if len(rest) > MAX_LINE:
                raise DatasetError(f"{file.name}: line {first} is longer than {MAX_LINE:,} bytes")
            continue
        block, rest = rest + read[:cut], read[cut:]
        yield first, block
        first += block.count(b"\n")
    if rest:
        yield first, rest

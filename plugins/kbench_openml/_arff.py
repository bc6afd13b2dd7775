"""A reader of ARFF files: exact, bounded in memory, and strict about every line.

Blocks of plain lines (no quotes, comments or escapes: nearly all of OpenML) go
to Arrow's CSV parser after their commas have been counted; other blocks, and
blocks with a mistake, go through a tokeniser that names the line. Weights of
instances and relational attributes are not supported.

Format: https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kbench import DatasetError
from kbench_openml._table import Column, Table
from kbench_openml._transport import max_bytes

BLOCK = 8 * 2**20
"""Bytes of the file that are parsed together."""

MAX_COLUMNS = 200_000
"""More attributes than this are taken for an absurd header."""

MAX_LINE = 64 * 2**20
"""Bytes of the longest line."""

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{][^\s{{]*)\s*(.*)$", re.I | re.S)
_VALUE = re.compile(rf"\s*(?:({_QUOTED})|([^,'\"]*?))\s*(,|$)", re.S)
_ENTRY = re.compile(rf"\s*(\d+)\s+(?:({_QUOTED})|([^,'\"\s]+))\s*(,|$)", re.S)
_ESCAPE = re.compile(r"\\(.)", re.S)
_NEEDS_CARE = (b"'", b'"', b"\\", b"%")
_NUMERIC = {"numeric", "real", "integer"}


class _LineError(ValueError):
    """A line that is not ARFF; the message says why."""


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
        except _LineError as error:
            raise DatasetError(f"{what}: {error}") from None
        sparse = _is_sparse(file)
        parse = _SparseBody(columns) if sparse else _DenseBody(columns)
        for start, block in _blocks(file, first):
            try:
                parse.block(block, start)
            except _LineError as error:
                raise DatasetError(f"{what}: {error}") from None
    if not parse.n_rows:
        raise DatasetError(f"{what}: the file has no rows")
    return parse.table()


# ---------------------------------------------------------------------------
# Header
# ---------------------------------------------------------------------------


def _header(file: BinaryIO) -> tuple[list[Column], int]:
    """Read up to and with @data; return the columns and the number of the next line."""
    columns: list[Column] = []
    number = 0
    while True:
        raw = file.readline(MAX_LINE)
        number += 1
        if not raw:
            raise _LineError(f"the file ends in line {number} without @data: it is no ARFF file")
        line = _text(raw, number).lstrip("\ufeff").strip()
        if not line or line.startswith("%"):
            continue
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            columns.append(_attribute(line, number))
            if len(columns) > MAX_COLUMNS:
                raise _LineError(f"more than {MAX_COLUMNS:,} attributes are declared")
        elif word != "@relation":
            raise _LineError(f"line {number} is no part of an ARFF header: {line[:60]!r}")
    if not columns:
        raise _LineError("no attribute is declared")
    return columns, number + 1


def _attribute(line: str, number: int) -> Column:
    found = _ATTRIBUTE.match(line)
    if not found:
        raise _LineError(f"line {number}: the attribute cannot be read: {line[:60]!r}")
    name, kind = _unquoted(found[1]), found[2].strip()
    if kind.startswith("{"):
        end = kind.rfind("}")
        if end < 0:
            raise _LineError(f"line {number}: the values of {name!r} have no closing brace")
        categories = [value for value, _ in _tokens(kind[1:end], number)]
        if categories and categories[-1] == "":  # a comma before the brace
            categories.pop()
        return Column(name, "nominal", list(dict.fromkeys(categories)))
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word in _NUMERIC:
        return Column(name, "numeric")
    if word in ("string", "date"):
        return Column(name, "string")
    raise _LineError(f"line {number}: attribute {name!r} has the unknown type {kind[:40]!r}")


def _unquoted(token: str) -> str:
    if token[:1] in ("'", '"'):
        return _ESCAPE.sub(r"\1", token[1:-1])
    return token


def _text(raw: bytes, number: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _LineError(f"line {number} is not UTF-8") from None


# ---------------------------------------------------------------------------
# Body
# ---------------------------------------------------------------------------


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


def _lines(block: bytes, start: int) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(block.split(b"\n"), start):
        line = _text(raw, number).strip()
        if line and not line.startswith("%"):
            yield number, line


def _tokens(line: str, number: int) -> list[tuple[str, bool]]:
    """Split at commas outside quotes; each value with whether it stood in quotes."""
    values, place = [], 0
    while True:
        found = _VALUE.match(line, place)
        if not found:
            raise _LineError(f"line {number}: {line[place : place + 40]!r} is not a value")
        quoted = found[1] is not None
        values.append((_unquoted(found[1]) if quoted else found[2], quoted))
        place = found.end()
        if not found[3]:
            return values


def _number(token: str, quoted: bool, column: Column, number: int) -> float:
    if not quoted and token in ("?", ""):
        return float("nan")
    try:
        return float(token)
    except ValueError:
        raise _LineError(
            f"line {number}: {token[:40]!r} in the numeric column {column.name!r}"
        ) from None


def _code(token: str, quoted: bool, column: Column, known: dict[str, int], number: int) -> int:
    code = known.get(token)
    if code is None and (quoted or token not in ("?", "")):
        code = known.get(token.strip())
        if code is None:
            raise _LineError(
                f"line {number}: {token[:40]!r} is not among the declared values of {column.name!r}"
            )
    return -1 if code is None else code


class _Body:
    """What both kinds of files share: the declared values by name."""

    def __init__(self, columns: list[Column]):
        self.columns = columns
        self.known = [{name: code for code, name in enumerate(c.categories)} for c in columns]
        # such files could not tell a missing value from one of that name
        self.plain = not any("?" in known or "" in known for known in self.known)
        self.n_rows = 0


class _DenseBody(_Body):
    """Parse blocks of dense instances, column by column."""

    def __init__(self, columns: list[Column]):
        super().__init__(columns)
        self.parts: list[list[Any]] = [[] for _ in columns]

    def block(self, block: bytes, start: int) -> None:
        if self.plain and not _needs_care(block) and self._quick(block):
            return
        self._careful(block, start)

    def _quick(self, block: bytes) -> bool:
        """Parse a block of plain lines; False if it is anything else."""
        import pyarrow
        from pyarrow import csv

        d = len(self.columns)
        counts = _commas_per_line(block)
        if d == 1 or np.any((counts != d - 1) & (counts >= 0)):
            return False
        names = [str(j) for j in range(d)]
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        kinds = [pyarrow.float64() if c.kind == "numeric" else text for c in self.columns]
        try:
            read_values = csv.read_csv(
                io.BytesIO(block),
                # the block in one piece, so that each column has one dictionary
                csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                csv.ParseOptions(quote_char=False),
                csv.ConvertOptions(
                    column_types=dict(zip(names, kinds, strict=True)),
                    null_values=["?", ""],
                    strings_can_be_null=True,
                ),
            )
        except pyarrow.ArrowInvalid:
            return False
        n = read_values.num_rows
        if n != np.count_nonzero(counts >= 0):
            return False
        values = []
        for j, column in enumerate(self.columns):
            chunk = read_values.column(j).combine_chunks()
            if column.kind == "numeric":
                values.append(chunk.to_numpy(zero_copy_only=False))
                continue
            if isinstance(chunk, pyarrow.ChunkedArray):  # as older versions return it
                chunk = chunk.chunk(0)
            read = chunk.dictionary.to_pylist()
            codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            if column.kind == "string":
                texts = [None if text.strip() in ("?", "") else text.strip() for text in read]
                values.append([None if code < 0 else texts[code] for code in codes])
                continue
            known = {**self.known[j], "?": -1, "": -1}
            try:
                table = [known[name] if name in known else known[name.strip()] for name in read]
            except KeyError:
                return False
            values.append(np.array([*table, -1], dtype=np.int32)[codes])
        self._add(values, n)
        return True

    def _careful(self, block: bytes, start: int) -> None:
        d = len(self.columns)
        rows: list[list[Any]] = []
        for number, line in _lines(block, start):
            tokens = _tokens(line, number)
            if len(tokens) != d:
                raise _LineError(f"line {number} has {len(tokens)} values; {d} are declared")
            row: list[Any] = []
            for column, known, (token, quoted) in zip(
                self.columns, self.known, tokens, strict=True
            ):
                if column.kind == "numeric":
                    row.append(_number(token, quoted, column, number))
                elif column.kind == "nominal":
                    row.append(_code(token, quoted, column, known, number))
                else:
                    row.append(None if not quoted and token in ("?", "") else token)
            rows.append(row)
        if not rows:
            return
        values: list[Any] = []
        for column, given in zip(self.columns, zip(*rows, strict=True), strict=True):
            if column.kind == "string":
                values.append(list(given))
            else:
                values.append(
                    np.array(given, dtype=np.float64 if column.kind == "numeric" else np.int32)
                )
        self._add(values, len(rows))

    def _add(self, values: list[Any], n: int) -> None:
        for part, each in zip(self.parts, values, strict=True):
            part.append(each)
        self.n_rows += n

    def table(self) -> Table:
        for column, part in zip(self.columns, self.parts, strict=True):
            if column.kind == "string":
                column.values = [text for each in part for text in each]
            elif part:
                column.values = np.concatenate(part)
            else:
                column.values = np.empty(0, np.float64 if column.kind == "numeric" else np.int32)
            part.clear()  # one column at a time, to need the memory of one
        return Table(self.columns, self.n_rows)


def _commas_per_line(block: bytes) -> np.ndarray:
    """Count the commas of each line; -1 for a line with nothing but white space."""
    raw = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    if not len(ends) or ends[-1] != len(raw) - 1:
        ends = np.append(ends, len(raw))
    commas = np.searchsorted(np.flatnonzero(raw == ord(",")), ends)
    counts = np.diff(commas, prepend=0)
    for line in np.flatnonzero(counts == 0):
        if not block[ends[line - 1] + 1 if line else 0 : ends[line]].strip():
            counts[line] = -1
    return counts


class _SparseBody(_Body):
    """Parse blocks of sparse instances, ``{index value, ...}``."""

    def __init__(self, columns: list[Column]):
        super().__init__(columns)
        self.numeric = np.array([column.kind == "numeric" for column in columns])
        self.lengths: list[np.ndarray] = []
        self.indices: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def block(self, block: bytes, start: int) -> None:
        if self.plain and not _needs_care(block) and self._quick(block):
            return
        self._careful(block, start)

    def _quick(self, block: bytes) -> bool:
        """Parse a block of plain lines; False if it is anything else."""
        lines = [line for line in map(bytes.strip, block.split(b"\n")) if line]
        if not all(line[:1] == b"{" and line[-1:] == b"}" for line in lines):
            return False
        tokens = b" ".join([line[1:-1].replace(b",", b" ") for line in lines]).split()
        lengths = np.array(
            [len(line[1:-1].split(b",")) if line[1:-1].strip() else 0 for line in lines],
            dtype=np.int64,
        )
        if len(tokens) != 2 * lengths.sum():
            return False
        try:
            indices = np.array(tokens[0::2], dtype=bytes).astype(np.int64)
            given = tokens[1::2]
            if len(indices) and (indices.min() < 0 or indices.max() >= len(self.columns)):
                return False
            values = np.empty(len(given))
            numeric = self.numeric[indices]
            if numeric.all():
                values[:] = [np.nan if token == b"?" else float(token) for token in given]
            else:
                for place, (j, token) in enumerate(zip(indices.tolist(), given, strict=True)):
                    if numeric[place]:
                        values[place] = np.nan if token == b"?" else float(token)
                    else:
                        values[place] = (
                            np.nan if token == b"?" else self.known[j][token.decode("utf-8")]
                        )
        except (ValueError, KeyError):
            return False
        if not _strictly_increasing(indices, lengths):
            return False
        self._add(lengths, indices, values)
        return True

    def _careful(self, block: bytes, start: int) -> None:
        lengths, indices, values = [], [], []
        for number, line in _lines(block, start):
            if not (line.startswith("{") and line.endswith("}")):
                raise _LineError(f"line {number} is not of the form {{index value, ...}}")
            inside, place, seen = line[1:-1], 0, set()
            while inside.strip():
                found = _ENTRY.match(inside, place)
                if not found:
                    raise _LineError(
                        f"line {number}: {inside[place : place + 40]!r} is not 'index value'"
                    )
                j, quoted = int(found[1]), found[2] is not None
                if j >= len(self.columns) or j in seen:
                    why = "twice" if j in seen else f"of {len(self.columns)} (from 0)"
                    raise _LineError(f"line {number} gives a value for column {j} {why}")
                seen.add(j)
                column, token = self.columns[j], _unquoted(found[2]) if quoted else found[3]
                if column.kind == "string":
                    raise _LineError(
                        f"line {number}: the text column {column.name!r} in a sparse file is not "
                        "supported"
                    )
                if column.kind == "numeric":
                    value = _number(token, quoted, column, number)
                else:
                    code = _code(token, quoted, column, self.known[j], number)
                    value = float("nan") if code < 0 else float(code)
                indices.append(j)
                values.append(value)
                place = found.end()
                if not found[4]:
                    break
            lengths.append(len(seen))
        self._add(
            np.array(lengths, dtype=np.int64),
            np.array(indices, dtype=np.int64),
            np.array(values, dtype=np.float64),
        )

    def _add(self, lengths: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
        self.lengths.append(lengths)
        self.indices.append(indices)
        self.values.append(values)
        self.n_rows += len(lengths)

    def table(self) -> Table:
        import scipy.sparse

        indptr = np.concatenate([[0], np.cumsum(np.concatenate(self.lengths))])
        matrix = scipy.sparse.csr_matrix(
            (np.concatenate(self.values), np.concatenate(self.indices), indptr),
            shape=(self.n_rows, len(self.columns)),
        )
        return Table(self.columns, self.n_rows, matrix.tocsc())


def _strictly_increasing(indices: np.ndarray, lengths: np.ndarray) -> bool:
    """Tell whether the indices of every row rise, so that none is there twice."""
    if len(indices) < 2:
        return True
    rising = np.diff(indices) > 0
    starts = np.cumsum(lengths)[:-1]
    starts = starts[(starts > 0) & (starts < len(indices))]
    rising[starts - 1] = True
    return bool(rising.all())


def _needs_care(block: bytes) -> bool:
    """Tell whether a block has quotes, escapes or comments."""
    return any(sign in block for sign in _NEEDS_CARE)

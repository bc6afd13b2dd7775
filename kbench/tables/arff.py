"""A reader of ARFF files: exact, bounded in memory, and strict about every line.

Not a library, because pyarrow does not read ARFF and liac-arff 2.5 fails stated needs: it
truncates 1.5 to 1 in a column declared "integer", accepts a column twice in a sparse
row and text in the header, rejects dates, tabs, "real [0,1]" and files without
@relation, and does not name the column of an error. Its pattern for nominal values
is exponential: 14 quoted ones without a closing brace take it 2 s, 18 more than 50 s.

A large table is not in memory as a whole: its rows go to files (`kbench.tables.limits`), which are
mapped. Weights of instances and relational attributes are not supported.

Format: https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
"""

import contextlib
import gzip
import re
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from kbench.errors import DatasetError
from kbench.tables.limits import GrowingArray, GrowingRows, check_file_size
from kbench.tables.table import Column, Table

VALUES = 1 << 18
"""Values of rows that are put in arrays together."""

MAX_COLUMNS = 200_000
"""More attributes than this are taken for an absurd header."""

MAX_LINE = 64 * 2**20
"""Bytes of the longest line."""

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_VALUE = re.compile(rf"(?:\s*({_QUOTED})\s*|([^,'\"]*))(,|$)", re.S)
_ENTRY = re.compile(rf"\s*(\d+)\s+(?:({_QUOTED})|([^,'\"\s]+))\s*(,|$)", re.S)
_ESCAPE = re.compile(r"\\(.)", re.S)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s'\"{{][^\s{{]*)\s*(.*)$", re.I | re.S)


class _LineError(ValueError):
    """A line that is not ARFF; the message says why."""


class _Quoted(str):
    """A value that stood in quotes: blanks belong to it, and it is not missing."""

    __slots__ = ()


class _Lines(Iterator[str]):
    """The lines of a file, without blank ones and comments; `number` is that of the last one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.number = file, 0

    def __next__(self) -> str:
        while raw := self._file.readline(MAX_LINE):
            self.number += 1
            if len(raw) == MAX_LINE:
                raise _LineError(f"it is longer than {MAX_LINE:,} bytes")
            try:
                line = raw.decode("utf-8-sig" if self.number == 1 else "utf-8").strip()
            except UnicodeDecodeError:
                raise _LineError("it is not UTF-8") from None
            if line and not line.startswith("%"):
                return line
        raise StopIteration


@contextlib.contextmanager
def _open(path: Path, source: str) -> Iterator[_Lines]:
    """Open a file; an error in it becomes a `DatasetError` that names the line."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        lines = _Lines(cast(BinaryIO, file))
        try:
            yield lines
        except _LineError as error:
            raise DatasetError(f"{source}: line {lines.number}: {error}") from None


def read_arff(path: Path, source: str) -> Table:
    """Read a dense or sparse ARFF file in UTF-8, also with gzip; `source` is for messages.

    Raises DatasetError if the file is not ARFF, with the number of the line and the reason,
    or is larger than ``KBENCH_MAX_DATASET_MIB``.
    """
    check_file_size(path.stat().st_size, source)
    rows: _DenseRows | _SparseRows | None = None
    with _open(path, source) as lines:
        columns = _header(lines)
        for line in lines:
            if rows is None:
                rows = (_SparseRows if _is_sparse(line) else _DenseRows)(columns)
            rows.add(line)
    if rows is None:
        raise DatasetError(f"{source}: the file has no rows")
    return rows.table()


def is_sparse_arff(path: Path, source: str) -> bool:
    """Return whether the rows of an ARFF file are sparse, from its header and its first row."""
    with _open(path, source) as lines:
        _header(lines)
        return _is_sparse(next(lines, ""))


def _is_sparse(line: str) -> bool:
    return line.startswith("{")


def _header(lines: _Lines) -> list[Column]:
    columns: list[Column] = []
    for line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            columns.append(_attribute(line))
            if len(columns) > MAX_COLUMNS:
                raise _LineError(f"more than {MAX_COLUMNS:,} attributes are declared")
        elif word != "@relation":
            raise _LineError(f"it is not part of an ARFF header: {line[:60]!r}")
    else:
        raise _LineError("the file ends here without @data: not an ARFF file")
    if not columns:
        raise _LineError("no attribute is declared before it")
    return columns


def _attribute(line: str) -> Column:
    match = _ATTRIBUTE.match(line)
    if not match:
        raise _LineError(f"the attribute cannot be read: {line[:60]!r}")
    name, kind = match[1], match[2].strip()
    name = _unquote(name) if name[0] in "'\"" else name
    if kind.startswith("{"):
        end = kind.rfind("}")
        if end < 0:
            raise _LineError(f"the values of {name!r} have no closing brace")
        categories = [_text(value) for value in _values(kind[1:end])]
        if categories and categories[-1] == "":  # a comma before the brace
            categories.pop()
        return Column(name, "nominal", list(dict.fromkeys(categories)))
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word in ("numeric", "real", "integer"):
        return Column(name, "numeric")
    if word in ("string", "date"):
        return Column(name, "string")
    raise _LineError(f"attribute {name!r} has the unknown type {kind[:40]!r}")


# -- values


def _values(line: str) -> list[str]:
    """Split at commas outside quotes."""
    if "'" not in line and '"' not in line:
        return line.split(",")
    values, position = [], 0
    while True:
        match = _VALUE.match(line, position)
        if not match:
            raise _LineError(f"{line[position : position + 40].strip()!r} is not a value")
        values.append(match[2] if match[1] is None else _unquote(match[1]))
        position = match.end()
        if not match[3]:
            return values


def _entries(inside: str) -> Iterator[tuple[int, str]]:
    position = 0
    is_last = not inside.strip()
    while not is_last:
        match = _ENTRY.match(inside, position)
        if not match:
            raise _LineError(f"{inside[position : position + 40]!r} is not 'index value'")
        yield int(match[1]), match[3] if match[2] is None else _unquote(match[2])
        position = match.end()
        is_last = not match[4]


def _unquote(token: str) -> _Quoted:
    return _Quoted(_ESCAPE.sub(r"\1", token[1:-1]))


def _text(value: str) -> str:
    return str(value) if isinstance(value, _Quoted) else value.strip()


def _is_missing(value: str) -> bool:
    return not isinstance(value, _Quoted) and value.strip() in ("?", "")


def _codes(column: Column) -> dict[str, int]:
    return {name: code for code, name in enumerate(column.categories)}


def _parser(column: Column, no_code: float = -1) -> Callable[[str], Any]:
    """Return the function that turns a value of a column into a number, a code or a text.

    Missing are NaN, `no_code` and None.
    """
    codes = _codes(column)

    def number(value: str) -> float:
        try:
            return float(value)
        except ValueError:
            if _is_missing(value):
                return np.nan
        raise _LineError(f"{_text(value)[:40]!r} in the numeric column {column.name!r}")

    def code(value: str) -> float:
        code_of = codes.get(value)
        if code_of is None:
            code_of = codes.get(value.strip())
        if code_of is not None:
            return code_of
        if _is_missing(value):
            return no_code
        raise _LineError(
            f"{_text(value)[:40]!r} is not among the declared values of {column.name!r}"
        )

    def text(value: str) -> str | None:
        return None if _is_missing(value) else _text(value)

    return {"numeric": number, "nominal": code, "string": text}[column.kind]


# -- rows


class _DenseRows:
    """Dense rows, collected as records; those of a large file are written to another one."""

    def __init__(self, columns: list[Column]) -> None:
        self._columns = columns
        self._parsers = [_parser(column) for column in columns]
        # most values need no more than this, which is several times faster
        self._usual = [
            float
            if column.kind == "numeric"
            else _codes(column).__getitem__
            if column.kind == "nominal"
            else parser
            for column, parser in zip(columns, self._parsers, strict=True)
        ]
        kinds = {j: column.kind for j, column in enumerate(columns)}
        self._texts: dict[int, list[Any]] = {j: [] for j in kinds if kinds[j] == "string"}
        types = {"numeric": np.float64, "nominal": np.int32}
        fields = [(str(j), types[kind]) for j, kind in kinds.items() if j not in self._texts]
        self._type = np.dtype(fields)
        self._records = GrowingArray(self._type)
        self._rows: list[list[Any]] = []
        self._most_rows = max(1, VALUES // len(columns))

    def add(self, line: str) -> None:
        values = _values(line)
        if len(values) != len(self._parsers):
            raise _LineError(f"it has {len(values)} values; {len(self._parsers)} are declared")
        try:
            row = [parse(value) for parse, value in zip(self._usual, values, strict=True)]
        except (ValueError, KeyError):
            row = [parse(value) for parse, value in zip(self._parsers, values, strict=True)]
        self._rows.append(row)
        if len(self._rows) == self._most_rows:
            self._collect()

    def _collect(self) -> None:
        records = np.empty(len(self._rows), self._type)
        for j, values in enumerate(zip(*self._rows, strict=True)):
            if j in self._texts:
                self._texts[j] += values
            else:
                records[str(j)] = values
        self._records.append(records)
        self._rows = []

    def table(self) -> Table:
        self._collect()
        records = self._records.array()
        for j, column in enumerate(self._columns):
            column.values = self._texts[j] if j in self._texts else records[str(j)]
        return Table(self._columns, len(records))


class _SparseRows:
    """Sparse rows, ``{index value, ...}``, collected for a CSR matrix."""

    def __init__(self, columns: list[Column]) -> None:
        self._columns = columns
        self._parsers = [_parser(column, np.nan) for column in columns]
        self._rows = GrowingRows()
        self._begin_block()

    def _begin_block(self) -> None:
        self._ends, self._indices, self._values = array("q", [0]), array("i"), array("d")

    def add(self, line: str) -> None:
        if not (line.startswith("{") and line.endswith("}")):
            raise _LineError("it is not of the form {index value, ...}")
        row: dict[int, float] = {}
        for j, value in _entries(line[1:-1]):
            if j >= len(self._columns) or j in row:
                why = "twice" if j in row else f"of {len(self._columns)} (from 0)"
                raise _LineError(f"it gives a value for column {j} {why}")
            column = self._columns[j]
            if column.kind == "string":
                raise _LineError(
                    f"the text column {column.name!r} in a sparse file is not supported"
                )
            row[j] = self._parsers[j](value)
        self._indices.extend(row)
        self._values.extend(row.values())
        self._ends.append(len(self._values))
        if len(self._values) >= VALUES:
            self._collect()

    def _collect(self) -> None:
        from scipy.sparse import csr_matrix

        parts = tuple(map(np.asarray, (self._values, self._indices, self._ends)))
        self._rows.append(csr_matrix(parts, shape=(len(self._ends) - 1, len(self._columns))))
        self._begin_block()

    def table(self) -> Table:
        self._collect()
        matrix = self._rows.matrix(len(self._columns))
        return Table(self._columns, matrix.shape[0], matrix)

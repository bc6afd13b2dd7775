"""The rows of ARFF files: plain blocks fast, all others line by line."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kbench.tables.limits import GrowingArray
from kbench.tables.table import Column, Table

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""

_VALUE = re.compile(rf"\s*(?:({QUOTED})|([^,'\"]*?))\s*(,|$)", re.S)

_ENTRY = re.compile(rf"\s*(\d+)\s+(?:({QUOTED})|([^,'\"\s]+))\s*(,|$)", re.S)

_ESCAPE = re.compile(r"\\(.)", re.S)

_DTYPES = {"numeric": np.float64, "nominal": np.int32, "string": object}


class LineError(ValueError):
    """A line that is not ARFF; the message says why."""


def unquoted(token: str) -> str:
    """Return a token without its quotes and escapes."""
    if token[:1] in ("'", '"'):
        return _ESCAPE.sub(r"\1", token[1:-1])
    return token


def decoded(raw: bytes, number: int) -> str:
    """Decode a line, or say which one is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise LineError(f"line {number} is not UTF-8") from None


def split_values(line: str, number: int) -> list[tuple[str, bool]]:
    """Split at commas outside quotes; each value with whether it stood in quotes."""
    if "'" not in line and '"' not in line:
        return [(value.strip(), False) for value in line.split(",")]
    values, position = [], 0
    while True:
        match = _VALUE.match(line, position)
        if not match:
            raise LineError(f"line {number}: {line[position : position + 40]!r} is not a value")
        quoted = match[1] is not None
        values.append((unquoted(match[1]) if quoted else match[2], quoted))
        position = match.end()
        if not match[3]:
            return values


class Rows:
    """Base of both kinds of rows: blocks go in, a table comes out."""

    def __init__(self, columns: list[Column]):
        self.columns = columns
        self.codes = [{name: code for code, name in enumerate(c.categories)} for c in columns]
        # plain blocks could not tell a missing value from a category of that name
        self.plain = not any("?" in codes or "" in codes for codes in self.codes)
        self.n_rows = 0

    def parse(self, block: bytes, start: int) -> None:
        """Parse a block of whole lines; `start` is the number of the first."""
        plain = self.plain and not any(sign in block for sign in (b"'", b'"', b"\\", b"%"))
        if not (plain and self._parse_plain(block)):
            self._parse_lines(_lines(block, start))

    def _parse_plain(self, block: bytes) -> bool:
        """Parse a block without quotes, comments and escapes; False where that fails."""
        raise NotImplementedError

    def _parse_lines(self, lines: Iterator[tuple[int, str]]) -> None:
        """Parse numbered lines one by one, and raise `LineError` for a mistake."""
        raise NotImplementedError

    def table(self) -> Table:
        """Return the rows of all blocks as a table."""
        raise NotImplementedError

    def _value(self, j: int, token: str, quoted: bool, number: int) -> Any:
        """Return the number, code or text of a token of column `j`.

        Missing values are NaN, -1 and None.
        """
        column, codes = self.columns[j], self.codes[j]
        missing = not quoted and token in ("?", "")
        if column.kind == "string":
            return None if missing else token
        if column.kind == "numeric":
            try:
                return float("nan" if missing else token)
            except ValueError:
                raise LineError(
                    f"line {number}: {token[:40]!r} in the numeric column {column.name!r}"
                ) from None
        code = codes.get(token, -1 if missing else codes.get(token.strip()))
        if code is None:
            raise LineError(
                f"line {number}: {token[:40]!r} is not among the declared values of {column.name!r}"
            )
        return code


def _lines(block: bytes, start: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block with their numbers, without blank lines and comments."""
    for number, raw in enumerate(block.split(b"\n"), start):
        line = decoded(raw, number).strip()
        if line and not line.startswith("%"):
            yield number, line


class DenseRows(Rows):
    """Dense instances, collected as records; those of a large file are written to another one."""

    def __init__(self, columns: list[Column]):
        super().__init__(columns)
        self.texts: dict[str, list[object]] = {}
        fields = []
        for j, column in enumerate(columns):
            if column.kind == "string":
                self.texts[str(j)] = []
            else:
                fields.append((str(j), _DTYPES[column.kind]))
        self.dtype = np.dtype(fields)
        self.records = GrowingArray(self.dtype)

    def _parse_plain(self, block: bytes) -> bool:
        import pyarrow
        from pyarrow import csv

        d = len(self.columns)
        if d == 1:  # a blank line would be a value
            return False
        names = [str(j) for j in range(d)]
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        kinds = [pyarrow.float64() if c.kind == "numeric" else text for c in self.columns]
        try:
            table = csv.read_csv(
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
            # Arrow refuses rows of other lengths, but ends a row at a lone "\r" too
            if table.num_rows != sum(bool(line.strip()) for line in block.split(b"\n")):
                return False
            values = [self._column_values(j, table.column(j)) for j in range(d)]
        except (pyarrow.ArrowInvalid, KeyError):
            return False
        self._add(values, table.num_rows)
        return True

    def _column_values(self, j: int, column: Any) -> Any:
        """Convert a column of Arrow; KeyError for a category that is not declared."""
        chunk = column.combine_chunks()
        if self.columns[j].kind == "numeric":
            return np.asarray(chunk.to_numpy(zero_copy_only=False))
        if hasattr(chunk, "chunk"):  # a chunked array, as older versions return it
            chunk = chunk.chunk(0)
        texts = [
            text if text in self.codes[j] else text.strip() for text in chunk.dictionary.to_pylist()
        ]
        if self.columns[j].kind == "string":
            values = [None if text in ("?", "") else text for text in texts] + [None]
        else:
            codes = {**self.codes[j], "?": -1, "": -1}
            values = [*(codes[text] for text in texts), -1]
        # the last value is for -1, a missing one
        codes_of_rows = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.array(values, _DTYPES[self.columns[j].kind])[codes_of_rows]

    def _parse_lines(self, lines: Iterator[tuple[int, str]]) -> None:
        d = len(self.columns)
        rows = []
        for number, line in lines:
            tokens = split_values(line, number)
            if len(tokens) != d:
                raise LineError(f"line {number} has {len(tokens)} values; {d} are declared")
            rows.append([self._value(j, *token, number) for j, token in enumerate(tokens)])
        values = [
            np.array(given, _DTYPES[column.kind])
            for column, given in zip(self.columns, zip(*rows, strict=True), strict=bool(rows))
        ]
        self._add(values, len(rows))

    def _add(self, values: list[np.ndarray], n_rows: int) -> None:
        if not n_rows:
            return
        records = np.empty(n_rows, self.dtype)
        for j, new in enumerate(values):
            if str(j) in self.texts:
                self.texts[str(j)] += new.tolist()
            else:
                records[str(j)] = new
        self.records.append(records)
        self.n_rows += n_rows

    def table(self) -> Table:
        """Return the rows of all blocks as a table."""
        records = self.records.array()
        for j, column in enumerate(self.columns):
            text = self.texts.get(str(j))
            column.values = records[str(j)] if text is None else text
        return Table(self.columns, self.n_rows)


class SparseRows(Rows):
    """Sparse instances, ``{index value, ...}``, collected for a CSR matrix."""

    def __init__(self, columns: list[Column]):
        super().__init__(columns)
        self.parts: list[tuple[np.ndarray, ...]] = []  # lengths of rows, indices, values
        self.converters: list[Callable[[bytes], float]] = [
            float
            if column.kind == "numeric"
            else {name.encode(): code for name, code in codes.items()}.__getitem__
            for column, codes in zip(columns, self.codes, strict=True)
        ]

    def _parse_plain(self, block: bytes) -> bool:
        lines = [line for line in map(bytes.strip, block.split(b"\n")) if line]
        if not all(line[:1] == b"{" and line[-1:] == b"}" for line in lines):
            return False
        rows = [line[1:-1] if line[1:-1].strip() else b"" for line in lines]
        lengths = np.array([row.count(b",") + bool(row) for row in rows], dtype=np.int64)
        # index, value, comma, index, value, ...
        tokens = b",".join(filter(None, rows)).replace(b",", b" , ").split()
        if len(tokens) != max(0, 3 * lengths.sum() - 1) or not {b","}.issuperset(tokens[2::3]):
            return False
        try:
            indices = np.array(tokens[0::3], dtype=bytes).astype(np.int64)
            if len(indices) and (indices.min() < 0 or indices.max() >= len(self.columns)):
                return False
            values = [
                np.nan if token == b"?" else self.converters[j](token)
                for j, token in zip(indices.tolist(), tokens[1::3], strict=True)
            ]
        except (ValueError, KeyError, OverflowError):
            return False
        # the indices of a row rise where none is there twice
        places = np.repeat(np.arange(len(rows)) * len(self.columns), lengths) + indices
        if np.any(np.diff(places) <= 0):
            return False
        self._add(lengths, indices, values)
        return True

    def _parse_lines(self, lines: Iterator[tuple[int, str]]) -> None:
        lengths: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        for number, line in lines:
            if not (line.startswith("{") and line.endswith("}")):
                raise LineError(f"line {number} is not of the form {{index value, ...}}")
            row = dict(self._entries(line[1:-1], number))
            lengths.append(len(row))
            indices += row.keys()
            values += row.values()
        self._add(lengths, indices, values)

    def _entries(self, inside: str, number: int) -> Iterator[tuple[int, float]]:
        """Yield the index and the value of each entry of a row."""
        seen: set[int] = set()
        position = 0
        while inside.strip():
            match = _ENTRY.match(inside, position)
            if not match:
                wrong = inside[position : position + 40]
                raise LineError(f"line {number}: {wrong!r} is not 'index value'")
            j, quoted = int(match[1]), match[2] is not None
            if j >= len(self.columns) or j in seen:
                why = "twice" if j in seen else f"of {len(self.columns)} (from 0)"
                raise LineError(f"line {number} gives a value for column {j} {why}")
            seen.add(j)
            column = self.columns[j]
            if column.kind == "string":
                raise LineError(
                    f"line {number}: the text column {column.name!r} in a sparse file is not "
                    "supported"
                )
            value = self._value(j, unquoted(match[2]) if quoted else match[3], quoted, number)
            yield j, np.nan if column.kind == "nominal" and value < 0 else value
            position = match.end()
            if not match[4]:
                break

    def _add(self, lengths: Any, indices: Any, values: Any) -> None:
        part = (
            np.array(lengths, np.int64),
            np.array(indices, np.int32),
            np.array(values, np.float64),
        )
        self.parts.append(part)
        self.n_rows += len(lengths)

    def table(self) -> Table:
        """Return the rows of all blocks as a table."""
        import scipy.sparse

        lengths, indices, values = map(np.concatenate, zip(*self.parts, strict=True))
        self.parts.clear()  # else all values would be in memory three times
        matrix = scipy.sparse.csr_matrix(
            (values, indices, np.concatenate([[0], np.cumsum(lengths)])),
            shape=(self.n_rows, len(self.columns)),
        )
        return Table(self.columns, self.n_rows, matrix.tocsc())

"""The rows of a dense ARFF file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from kbench.tables.arff_text import (
    Body,
    LineError,
    code_of,
    lines_of,
    needs_care,
    number_of,
    tokens_of,
)
from kbench.tables.table import Column, Table


class DenseBody(Body):
    """Parse blocks of dense instances, column by column."""

    def __init__(self, columns: list[Column]):
        super().__init__(columns)
        self.parts: list[list[Any]] = [[] for _ in columns]

    def block(self, block: bytes, start: int) -> None:
        """Parse a block of whole lines; `start` is the number of the first."""
        if self.plain and not needs_care(block) and self._quick(block):
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
        for number, line in lines_of(block, start):
            tokens = tokens_of(line, number)
            if len(tokens) != d:
                raise LineError(f"line {number} has {len(tokens)} values; {d} are declared")
            row: list[Any] = []
            for column, known, (token, quoted) in zip(
                self.columns, self.known, tokens, strict=True
            ):
                if column.kind == "numeric":
                    row.append(number_of(token, quoted, column, number))
                elif column.kind == "nominal":
                    row.append(code_of(token, quoted, column, known, number))
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
        """Return the rows of all blocks as a table."""
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

"""The rows of a sparse ARFF file."""

from __future__ import annotations

import re

import numpy as np

from kbench.tables.arff_text import (
    QUOTED,
    Body,
    LineError,
    code_of,
    lines_of,
    needs_care,
    number_of,
    unquoted,
)
from kbench.tables.table import Column, Table

_ENTRY = re.compile(rf"\s*(\d+)\s+(?:({QUOTED})|([^,'\"\s]+))\s*(,|$)", re.S)


class SparseBody(Body):
    """Parse blocks of sparse instances, ``{index value, ...}``."""

    def __init__(self, columns: list[Column]):
        super().__init__(columns)
        self.numeric = np.array([column.kind == "numeric" for column in columns])
        self.lengths: list[np.ndarray] = []
        self.indices: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def block(self, block: bytes, start: int) -> None:
        """Parse a block of whole lines; `start` is the number of the first."""
        if self.plain and not needs_care(block) and self._quick(block):
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
        for number, line in lines_of(block, start):
            if not (line.startswith("{") and line.endswith("}")):
                raise LineError(f"line {number} is not of the form {{index value, ...}}")
            inside, place, seen = line[1:-1], 0, set()
            while inside.strip():
                found = _ENTRY.match(inside, place)
                if not found:
                    raise LineError(
                        f"line {number}: {inside[place : place + 40]!r} is not 'index value'"
                    )
                j, quoted = int(found[1]), found[2] is not None
                if j >= len(self.columns) or j in seen:
                    why = "twice" if j in seen else f"of {len(self.columns)} (from 0)"
                    raise LineError(f"line {number} gives a value for column {j} {why}")
                seen.add(j)
                column, token = self.columns[j], unquoted(found[2]) if quoted else found[3]
                if column.kind == "string":
                    raise LineError(
                        f"line {number}: the text column {column.name!r} in a sparse file is not "
                        "supported"
                    )
                if column.kind == "numeric":
                    value = number_of(token, quoted, column, number)
                else:
                    code = code_of(token, quoted, column, self.known[j], number)
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
        """Return the rows of all blocks as a table."""
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

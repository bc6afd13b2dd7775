"""The attributes of a table: its columns, with the indicators of one nominal column as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbench.features import row_hashes

VALUES = 1 << 20
"""Values that are read together."""


@dataclass(frozen=True)
class Attribute:
    """One column of a matrix, or the adjacent indicator columns of a one-hot encoding."""

    name: str
    first: int
    width: int = 1
    nominal: bool = False


class Attributes:
    """Reads the attributes of a dense or CSR matrix, some rows and columns at a time.

    Parameters
    ----------
    X : array or CSR matrix, shape (n_rows, n_columns)
    names, kinds : sequence of str, optional
        A name for each column; "numeric", "nominal" or "category".
    """

    def __init__(self, X: Any, names: Sequence[str] = (), kinds: Sequence[str] = ()) -> None:
        self._X = X
        n = X.shape[1]
        self.all = list(_joined(names or [f"x{j}" for j in range(n)], kinds or ["numeric"] * n))

    def __len__(self) -> int:
        return len(self.all)

    def values(self, rows: np.ndarray, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the values of attributes in float64; an indicator's number stands for its value.

        The result has shape (rows, attributes).
        """
        found = np.empty((len(rows), len(chosen)))
        for at in _blocks(len(chosen), max(1, VALUES // max(len(rows), 1))):
            attributes = [self.all[j] for j in chosen[at]]
            columns = np.concatenate([each.first + np.arange(each.width) for each in attributes])
            dense = self._dense(rows, columns)
            start = 0
            for k, each in enumerate(attributes, start=at.start):
                part = dense[:, start : start + each.width]
                start += each.width
                found[:, k] = part[:, 0] if each.width == 1 else _number(part)
        return found

    def row_hashes(self, rows: np.ndarray) -> np.ndarray:
        """Return a hash of each row; equal rows have equal ones, NaN equals NaN."""
        hashes = np.empty(len(rows), dtype=np.uint64)
        for at in _blocks(len(rows), max(1, VALUES // max(self._X.shape[1], 1))):
            hashes[at] = row_hashes(self._X[rows[at]])
        return hashes

    def _dense(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if hasattr(self._X, "indptr"):
            return np.asarray(self._X[rows][:, columns].toarray(), dtype=float)
        step = max(1, VALUES // max(self._X.shape[1], 1))
        # whole rows, as they lie in the file, and few of them at a time
        parts = [
            np.asarray(self._X[rows[at]][:, columns], dtype=float)
            for at in _blocks(len(rows), step)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(columns)))


def _blocks(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _joined(names: Sequence[str], kinds: Sequence[str]) -> Iterator[Attribute]:
    """Yield attributes; neighbours such as ``colour=red`` and ``colour=blue`` are one."""
    start, n = 0, len(names)
    while start < n:
        stem, sign, _ = names[start].partition("=")
        end = start + 1
        if kinds[start] == "nominal" and sign:
            while end < n and kinds[end] == "nominal" and names[end].startswith(f"{stem}="):
                end += 1
        name = stem if end - start > 1 else names[start]
        yield Attribute(name, start, end - start, kinds[start] != "numeric")
        start = end


def _number(indicators: np.ndarray) -> np.ndarray:
    """Return the number of the indicator that is set; -1 for none, NaN where one is missing."""
    numbers = np.where((indicators > 0).any(axis=1), np.argmax(indicators, axis=1), -1.0)
    return np.where(np.isnan(indicators).any(axis=1), np.nan, numbers)

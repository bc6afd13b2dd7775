"""Files in the format of SVMlight and LIBSVM, read block by block into a CSR matrix."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from kbench import DatasetError
from kbench.tables.limits import GrowingArray, GrowingRows, check_values
from kbench_files._reading import existing, first_line, open_bounded

BLOCK = 1 << 22
"""Bytes of the lines that are parsed together."""

NAME_VALUES = 16
"""Numbers that need as much memory as a column's name."""


class SvmlightRows:
    """The rows of a file; labels that are NaN are missing."""

    def __init__(self, path: str, n_features: int | None) -> None:
        file, self.what = existing(path)
        self.files = [file]
        self._n_features = n_features

    def read(self) -> tuple[Any, np.ndarray]:
        """Return the rows that have labels as a CSR matrix, and the labels of all rows."""
        labels, rows = GrowingArray(np.float64), GrowingRows()
        first, last = 1, 0
        for X, y in self._blocks():
            labels.append(y)
            if X.nnz:
                first, last = min(first, X.indices.min()), max(last, X.indices.max())
            is_missing = np.isnan(y)
            X = X[~is_missing] if is_missing.any() else X
            X.eliminate_zeros()
            rows.append(X)
        # indices begin with 1, unless one is 0 or there is none
        shift = int(first) if last else 0
        X = rows.matrix(self._check_line(int(last) + 1 - shift))
        X.indices = _shift_line_number(X.indices, shift)
        X.has_sorted_indices = X.has_canonical_format = True  # the parser refuses others
        return X, labels.array()

    def _blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        from sklearn.datasets import load_svmlight_file

        n_lines = 0
        try:
            with open_bounded(self.files[0], self.what, ":") as stream:
                while lines := stream.readlines(BLOCK):
                    try:
                        yield load_svmlight_file(io.BytesIO(b"".join(lines)), zero_based=True)
                    except Exception as error:  # the reader's errors have no common base
                        number, error = _first_wrong(lines, error)
                        raise self._unreadable(error, f"line {n_lines + number:,}: ") from None
                    n_lines += len(lines)
        except DatasetError:
            raise
        except Exception as error:  # nor have those of packed files
            raise self._unreadable(error, f"after line {n_lines:,}: ") from None

    def _unreadable(self, error: Exception, place: str) -> DatasetError:
        return DatasetError(
            f"{self.what}: it cannot be read as svmlight: {place}{first_line(error)}"
        )

    def _check_line(self, n_columns: int) -> int:
        """Return the number of columns, of which there is one at least."""
        wanted = self._n_features
        if wanted is not None and wanted < n_columns:
            why = ValueError(f"n_features is {wanted:,}, but it has {n_columns:,} columns")
            raise self._unreadable(why, "")
        n_columns = max(n_columns, 1) if wanted is None else wanted
        # each column has a name
        check_values(NAME_VALUES * n_columns, self.what, f"{n_columns:,} columns")
        return n_columns


def _first_wrong(lines: list[bytes], error: Exception) -> tuple[int, Exception]:
    from sklearn.datasets import load_svmlight_file

    for number, line in enumerate(lines, 1):
        try:
            load_svmlight_file(io.BytesIO(line), zero_based=True)
        except Exception as found:
            return number, found
    return 1, error


def _shift_line_number(indices: np.ndarray, shift: int) -> np.ndarray:
    """Return indices that begin with 0."""
    if not shift:
        return indices
    shifted = GrowingArray(indices.dtype)
    for start in range(0, len(indices), BLOCK):
        shifted.append(indices[start : start + BLOCK] - shift)
    return shifted.array()

"""Size limits of a user's table, and the arrays that grow within them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np

from kbench.errors import DatasetError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def max_bytes() -> int:
    """Return the largest size of a dataset, as a file and in memory.

    It is ``$KBENCH_MAX_DATASET_MIB``, 4096 by default, in bytes; `DatasetError` if
    that is not a positive number.
    """
    limit = os.environ.get("KBENCH_MAX_DATASET_MIB", "4096")
    try:
        megabytes = float(limit)
    except ValueError:
        megabytes = 0.0
    if not 0 < megabytes < 2**33:
        raise DatasetError(f"KBENCH_MAX_DATASET_MIB must be a positive number, got {limit!r}")
    return int(megabytes * 2**20)


def check_file_size(size: int, source: str) -> None:
    """Reject a file of more bytes than `max_bytes`; `source` is the dataset, for messages."""
    if size > max_bytes():
        raise too_large(source, f"the file has {size / 2**20:,.0f} MiB")


def check_values(n_values: int, source: str, shape: str, n_bytes: int = 8) -> None:
    """Reject a table that would need more than `max_bytes`.

    `n_values` is the number of its values, each of `n_bytes`, and `shape` their description,
    for messages.
    """
    if n_bytes * n_values > max_bytes():
        raise too_large(source, f"{shape} need {n_bytes * n_values / 2**20:,.0f} MiB in memory")


def too_large(source: str, why: str) -> DatasetError:
    """Return the error for data of more than `max_bytes`."""
    return DatasetError(
        f"{source}: {why}, more than the {max_bytes() / 2**20:,.0f} MiB allowed. "
        "Raise KBENCH_MAX_DATASET_MIB."
    )


SPILL = 1 << 24
"""Bytes from which an array is kept in a file."""


class Scratch(Protocol):
    """A place for files that are removed unless the data cache takes them over."""

    def new_file(self) -> Path:
        """Return the name of a file that is not there yet."""

    def refusal(self, error: OSError) -> DatasetError:
        """Return the message for a file that cannot be written."""


_scratch: ContextVar[Scratch | None] = ContextVar("scratch", default=None)


@contextmanager
def spilling_to(scratch: Scratch) -> Iterator[None]:
    """Keep large arrays that are made in this context in files."""
    token = _scratch.set(scratch)
    try:
        yield
    finally:
        _scratch.reset(token)


class GrowingArray:
    """An array to which rows are appended; without a `width`, it has one dimension.

    Raises DatasetError if the disk is full.

    Examples
    --------
    >>> rows = GrowingArray(np.float64, width=2)
    >>> rows.append(np.zeros((3, 2)))
    >>> rows.append(np.ones((1, 2)))
    >>> rows.array().shape
    (4, 2)
    """

    def __init__(self, dtype: np.typing.DTypeLike, width: int | None = None) -> None:
        self._dtype = np.dtype(dtype)
        self._width = () if width is None else (width,)
        self._blocks: list[np.ndarray] = []
        self._n_rows = self._n_bytes = 0
        self._place = _scratch.get()
        self._path: Path | None = None
        self._file: BinaryIO | None = None

    def append(self, block: np.ndarray) -> None:
        """Append rows, of which no copy is made: they must not change later."""
        block = np.ascontiguousarray(block, self._dtype)
        self._n_rows += len(block)
        self._n_bytes += block.nbytes
        self._blocks.append(block)
        if self._place is not None and (self._file is not None or self._n_bytes >= SPILL):
            try:
                self._write(self._place)
            except OSError as error:
                raise self._place.refusal(error) from error

    def array(self) -> np.ndarray:
        """Return all rows; those in a file are memory-mapped and read-only."""
        if self._path is None or self._file is None or self._place is None:
            return np.concatenate([np.empty((0, *self._width), self._dtype), *self._blocks])
        try:
            self._file.seek(0)
            self._write_header()
            self._file.close()
        except OSError as error:
            raise self._place.refusal(error) from error
        mapped = np.load(self._path, mmap_mode="r", allow_pickle=False)
        # records come back as bytes: their fields may not fit into a header
        return mapped.view(np.ndarray).view(self._dtype)  # type: ignore[no-any-return]

    def _write(self, place: Scratch) -> None:
        if self._file is None:
            self._path = place.new_file()
            self._file = self._path.open("wb")
            self._write_header()
        for block in self._blocks:
            self._file.write(block.reshape(-1).view(np.uint8).data)
        self._blocks.clear()

    def _write_header(self) -> None:
        # numpy leaves room for a larger number of rows: a header written later has this length
        assert self._file is not None
        shape = (self._n_rows, *self._width)
        header = {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


class GrowingRows:
    """A CSR matrix of float64 to which rows are appended, which must not change later."""

    def __init__(self) -> None:
        self._data, self._indices = GrowingArray(np.float64), GrowingArray(np.int32)
        self._ends = GrowingArray(np.int64)
        self.n_stored = 0

    def append(self, X: "csr_matrix") -> None:
        """Append the rows of a CSR matrix."""
        self._data.append(X.data)
        self._indices.append(X.indices)
        self._ends.append(X.indptr[1:].astype(np.int64) + self.n_stored)
        self.n_stored += X.nnz

    def matrix(self, n_columns: int) -> "csr_matrix":
        """Return all rows; large arrays of them are memory-mapped and read-only."""
        from scipy.sparse import csr_matrix

        indptr = np.concatenate([[0], self._ends.array()])
        parts = self._data.array(), self._indices.array(), indptr
        return csr_matrix(parts, shape=(len(indptr) - 1, n_columns), copy=False)

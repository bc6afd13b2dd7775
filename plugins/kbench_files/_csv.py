"""CSV files, read block by block: the types of columns are those of the whole file."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbench import DatasetError
from kbench_files._columns import MISSING, ColumnScan, is_number, is_numeric, text_places
from kbench_files._encoding import block_rows
from kbench_files._reading import bounded, existing, first_line

OPTIONS: dict[str, Any] = {
    "index_col": False,  # or surplus values would shift the columns, silently
    "na_values": ["?"],
    "skipinitialspace": True,
    "low_memory": False,
}
"""How pandas reads a CSV file."""

NUMBERS = {"int64", "float64"}
"""Types of numbers of which a column is float64 where blocks differ."""

LARGE = {"uint64", "other"}
"""Types of integers beyond int64, and of those beyond uint64."""


def csv_table(path: str | Path, delimiter: str = ",", **_: Any) -> Any:
    """Return a CSV file as a data frame, before anything is encoded."""
    import pandas

    # a stream, not a name: pandas would fetch what looks like an address
    with bounded(*existing(path), delimiter) as text:
        return pandas.read_csv(text, sep=delimiter, **OPTIONS)


class CsvRows:
    """The rows of a CSV file; see `kbench_files._encoding.TableRows`.

    pandas infers the types of each block. Where they differ, a column gets the type that
    pandas gives it in the whole file: integers and fractions are floats, numbers and text
    are text.
    """

    def __init__(self, path: str, delimiter: str, ignore: Sequence[str]) -> None:
        file, self.what = existing(path)
        self.files = [file]
        self._delimiter = delimiter
        self.names = self._header(ignore)
        self._types: dict[str, Any] = {}
        self._whole: dict[str, Any] = {}
        self._only: Any = None  # the frame, where there is one block

    def scan(self, scans: Mapping[str, ColumnScan]) -> int:
        """Infer the types of all columns, look at those in `scans`, and count the rows."""
        kinds: dict[str, set[str]] = {name: set() for name in self.names}
        n_rows = n_blocks = 0
        for frame in self._read(self.names):
            self._only = None if n_blocks else frame
            for name in self.names:
                series = frame[name]
                kind = _kind(series)
                if name in scans:
                    if kind == "text" and "text" not in kinds[name]:
                        _note_text(scans[name], series, n_rows, bool(kinds[name] & NUMBERS))
                    if scans[name].wants(series):
                        scans[name].add(series)
                kinds[name].add(kind)
            n_rows += len(frame)
            n_blocks += 1
        if n_blocks > 1:
            large = {n for n, found in kinds.items() if found & LARGE and found != {"uint64"}}
            self._whole = {name: self._whole_column(name) for name in large}
            self._types = {n: self._type(kinds[n]) for n in self.names if n not in large}
            self._scan_again({n: scans[n] for n in scans if n in large or not _agree(kinds[n])})
            found = {**self._types, **{name: s.dtype for name, s in self._whole.items()}}
        else:
            found = {name: self._only[name].dtype for name in self.names} if n_rows else {}
        self._numeric = [
            name
            for name, kind in found.items()
            if kinds[name] != {"empty"} and not (kind is str or kind is None) and is_numeric(kind)
        ]
        return n_rows

    def _scan_again(self, scans: Mapping[str, ColumnScan]) -> None:
        """Look at columns of which the blocks have other types than the whole file."""
        no_numbers = {name for name, kind in self._types.items() if kind is str or kind is None}
        no_numbers |= {name for name, s in self._whole.items() if not is_numeric(s.dtype)}
        again = {n: scan for n, scan in scans.items() if scan.wants() or n in no_numbers}
        for scan in again.values():
            scan.restart()
        for frame in self.blocks(list(again)) if again else ():
            for name, scan in again.items():
                scan.add(frame[name])

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the type of the columns of numbers: text has no shorter one."""
        return dict.fromkeys(self._numeric, np.dtype(np.float64))

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the series of these columns, for consecutive rows."""
        if self._only is not None:
            yield {name: self._only[name] for name in names}
            return
        types = {name: self._types[name] for name in names if name in self._types}
        given = {name: kind for name, kind in types.items() if kind is not None}
        start = 0
        # a pass over all lines is needed for the number of rows of a block only
        for frame in self._read(list(types) or self.names[:1], given):
            rows = slice(start, start + len(frame))
            whole = {n: s.iloc[rows] for n, s in self._whole.items() if n in names}
            yield {**{name: frame[name] for name in types}, **whole}
            start = rows.stop

    def _read(self, names: Sequence[str], types: Mapping[str, Any] | None = None) -> Iterator[Any]:
        import pandas

        reading = {"usecols": list(names), "dtype": types} if types is not None else {}
        with self._explained(), bounded(self.files[0], self.what, self._delimiter) as text:
            rows = block_rows(len(self.names))
            with pandas.read_csv(
                text, sep=self._delimiter, chunksize=rows, **OPTIONS, **reading
            ) as blocks:
                while True:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error", pandas.errors.ParserWarning)
                        frame = next(blocks, None)
                    if frame is None:
                        return
                    frame.columns = [str(name) for name in frame.columns]
                    yield frame

    def _type(self, kinds: set[str]) -> Any:
        """Return the type of a column in the whole file; None where all blocks have it."""
        known = kinds - {"empty"}
        if known <= NUMBERS:
            return np.dtype(np.int64 if kinds == {"int64"} else np.float64)
        if known == {"uint64"}:
            return np.dtype(np.uint64)
        return None if known == {"bool"} else str

    def _whole_column(self, name: str) -> Any:
        """Read integers beyond int64: what they become depends on all values of a column."""
        import pandas

        with self._explained(), bounded(self.files[0], self.what, self._delimiter) as text:
            return pandas.read_csv(text, sep=self._delimiter, usecols=[name], **OPTIONS)[name]

    def _header(self, ignore: Sequence[str]) -> list[str]:
        """Return the names of the columns; refuse those that pandas would change silently."""
        import pandas

        as_written = {"header": None, "dtype": str, "keep_default_na": False}
        with self._explained(), bounded(self.files[0], self.what, self._delimiter) as text:
            header = pandas.read_csv(
                text, sep=self._delimiter, nrows=1, skipinitialspace=True, **as_written
            )
        written = [str(name) for name in header.iloc[0]]
        self._n_names = len(written)
        with self._explained(), bounded(self.files[0], self.what, self._delimiter) as text:
            read = pandas.read_csv(text, sep=self._delimiter, nrows=0, **OPTIONS).columns
        _check_header(written, list(read), self.what, ignore, self._delimiter)
        return [str(name) for name in read]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of pandas into a message."""
        import pandas

        try:
            yield
        except DatasetError:
            raise
        except pandas.errors.ParserWarning:
            raise DatasetError(
                f"{self.what}: its rows have more values than its first line has names "
                f"({self._n_names})"
            ) from None
        except UnicodeDecodeError as error:
            raise DatasetError(f"{self.what}: {_not_utf8(error)}") from None
        except Exception as error:  # pandas' errors have no common base
            other = _other_delimiter(_first_text(self.files[0]), self._delimiter)
            if isinstance(error, pandas.errors.ParserError) and other:
                raise DatasetError(
                    f"{self.what}: its rows do not have equally many values; is the delimiter "
                    f"{other!r}? {_saying(other)}"
                ) from None
            why = f"it cannot be read as CSV: {first_line(error)}"
            raise DatasetError(f"{self.what}: {why}") from None


def _kind(series: Any) -> str:
    """Return what a block of a column has: a type of numbers, bool, text, empty or other."""
    import pandas

    if series.isna().all():
        return "empty"
    if is_numeric(series.dtype):
        return str(series.dtype)
    found = pandas.api.types.infer_dtype(series, skipna=True)
    if found == "string":
        first = series[series.notna()].iloc[0]
        is_text = not (first in MISSING or is_number(first)) or len(text_places(series))
        return "text" if is_text else "other"
    return "bool" if found == "boolean" else "other"


def _agree(kinds: set[str]) -> bool:
    """Whether the values of all blocks are those of the whole file."""
    known = kinds - {"empty"}
    # a block without a value is one of floats
    return len(known) < 2 and ("empty" not in kinds or known <= {"float64"})


def _note_text(scan: ColumnScan, series: Any, start: int, is_after_numbers: bool) -> None:
    """Note the first text in a column that begins with numbers."""
    place = text_places(series)[0]
    if is_after_numbers or series.iloc[:place].notna().any():
        row, found = start + place + 1, str(series.iloc[place])[:40]
        scan.note = f" (numbers before row {row:,}, which has {found!r})"


def _check_header(
    names: list[str], read: list[Any], what: str, ignore: Sequence[str], delimiter: str
) -> None:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DatasetError(f"{what}: several columns are named {twice[0]!r}; rename all but one")
    if len(names) == 1:
        other = _other_delimiter(names[0], delimiter)
        hint = f"; is the delimiter {other!r}? {_saying(other)}" if other else ""
        raise DatasetError(f"{what}: it has one column only, {names[0][:60]!r}{hint}")
    for place, name in enumerate(names):
        if not name and read[place] not in ignore:
            # most often the row numbers that pandas writes, which may reveal the labels
            raise DatasetError(
                f"{what}: column {place + 1} has no name; name it, or leave it out: ignore "
                f"{read[place]!r}"
            )


def _other_delimiter(line: str, delimiter: str) -> str | None:
    """Guess the delimiter of a line, None if it is the given one."""
    signs = [sign for sign in ";\t|," if sign in line and sign != delimiter]
    most = max(signs, key=line.count, default=None)
    return most if most is not None and line.count(most) > line.count(delimiter) else None


def _saying(delimiter: str) -> str:
    written = "$'\\t'" if delimiter == "\t" else f"'{delimiter}'"
    return f"Say delimiter = {delimiter!r} (on the command line: --delimiter {written})"


def _not_utf8(error: UnicodeDecodeError) -> str:
    byte = error.object[error.start]
    return (
        f"it is not UTF-8 text (byte 0x{byte:02x}). Convert it, say with "
        "`iconv -f latin1 -t utf-8 OLD > NEW`"
    )


def _first_text(file: Path) -> str:
    """Return the first line of a file that pandas opens, without parsing it."""
    import pandas

    try:
        with pandas.io.common.get_handle(
            file.absolute(), "r", compression="infer", errors="replace"
        ) as text:
            return str(text.handle.readline(1 << 16))
    except (OSError, ValueError, EOFError):
        return ""

"""CSV files, read block by block: the types of columns are those of the whole file."""

import codecs
import contextlib
import csv
import io
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas

from kbench import DatasetError
from kbench.messages import list_some, option, plural
from kbench.tables.table import find_repeated
from kbench.tables.table_rows import Opened, Scan
from kbench.tables.texts import MISSING, is_number
from kbench_files._columns import is_numeric, text_places
from kbench_files._dialect import Dialect, detect, lay_out, not_encoded, parse
from kbench_files._encoding import block_rows
from kbench_files._layout import Row
from kbench_files._reading import existing, first_line, open_bounded

OPTIONS: dict[str, object] = {
    "index_col": False,  # or surplus values would shift the columns, silently
    "skipinitialspace": True,
    "low_memory": False,
}
"""Options with which pandas reads a CSV file."""

FEW_TEXTS = 1000
"""Maximum number of distinct strings that are stripped without pandas, which takes longer."""

RAGGED = 10
"""Rows with too few or too many values that a message lists."""

Columns: TypeAlias = "dict[str, pandas.Series]"

NUMBERS = {"int64", "float64"}
"""Types of numbers of which a column is float64 where blocks differ."""

LARGE = {"uint64", "other"}
"""Types of integers beyond int64, and of those beyond uint64."""


def csv_rows(path: str | Path, drop: Sequence[str] = (), **given: object) -> Opened:
    """Return a CSV file as a table that is read in blocks; guess what is not `given`."""
    file, label = existing(path)
    usual = vars(Dialect())
    settings = {name: value for name, value in given.items() if name in usual}
    detected = detect(file, label, settings)
    known = {**usual, **settings}  # marks of missing values may be given, and infinite ones found
    guessed = {n: value for n, value in vars(detected.dialect).items() if value != known[n]}
    return Opened(
        CsvRows(str(path), detected.dialect, drop), guessed, detected.sentence, detected.doubts
    )


class _Rewritten(io.RawIOBase):
    """The table in a file as a CSV file with names in its first line and nothing else.

    Parsers replace an error by another one: it is `problem`.
    """

    def __init__(self, rows: Iterable[Row], dialect: Dialect) -> None:
        self.problem: ValueError | None = None
        self._rows, self._rest = iter(rows), b""
        self._encode = codecs.getincrementalencoder(dialect.encoding)().encode
        self._delimiter = dialect.delimiter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:
        try:
            while not self._rest and (rows := [*itertools.islice(self._rows, 1000)]):
                text = io.StringIO(newline="")
                csv.writer(text, delimiter=self._delimiter).writerows(rows)
                self._rest = self._encode(text.getvalue())
        except ValueError as error:
            self.problem = error
            raise
        n = len(data := self._rest[: len(buffer)])
        buffer[:n], self._rest = data, self._rest[n:]
        return n


class CsvRows:
    """The rows of a CSV file; see `kbench.tables.table_rows.TableRows`.

    pandas infers the types of each block. Where they differ, a column gets the type that pandas
    gives it in the whole file: integers and fractions are floats, numbers and text are text.
    """

    def __init__(self, path: str, dialect: Dialect, drop: Sequence[str] = ()) -> None:
        file, self.what = existing(path)
        self.files = [file]
        self._dialect = dialect.check(self.what)
        self._layout = lay_out(file, self.what, dialect) if dialect.header_row else None
        self.names = self._header(drop)
        self._options = {**_options(self._dialect), "names": self.names, "header": 0}
        self._types: dict[str, object] = {}
        self._whole: dict[str, pandas.Series] = {}
        self._as_text: set[str] = set()  # numbers that pandas does not parse as they are
        self._only: Columns | None = None  # where there is one block

    def scan(self, scans: Mapping[str, Scan]) -> int:
        """Infer the types of all columns, look at those in `scans`, and count the rows."""
        kinds: dict[str, set[str]] = {name: set() for name in self.names}
        n_rows = n_blocks = 0
        ends_early = False
        for columns in self._read(self.names):
            last = columns[self.names[-1]]
            ends_early = ends_early or bool(last.isna().any())
            self._only = None if n_blocks else columns
            for name, series in columns.items():
                kind = _kind(series)
                if name in scans:
                    if kind == "text" and "text" not in kinds[name]:
                        is_after = bool(kinds[name] & NUMBERS)
                        _note_text(scans[name], series, n_rows, is_after, self._dialect)
                    if scans[name].wants(series):
                        scans[name].add(series)
                kinds[name].add(kind)
            n_rows += len(last)
            n_blocks += 1
        if ends_early:  # pandas fills rows that are too short
            self._refuse_ragged()
        if n_blocks > 1:
            large = {n for n, seen in kinds.items() if seen & LARGE and seen != {"uint64"}}
            self._whole = {name: self._whole_column(name) for name in large}
            self._types = {n: self._type(kinds[n]) for n in self.names if n not in large}
            self._scan_again({n: scans[n] for n in scans if n in large or not _agree(kinds[n])})
            seen = {**self._types, **{name: s.dtype for name, s in self._whole.items()}}
        else:
            seen = {name: series.dtype for name, series in (self._only or {}).items()}
        self._numeric = [
            name
            for name, kind in seen.items()
            if kinds[name] != {"empty"} and not (kind is str or kind is None) and is_numeric(kind)
        ]
        return n_rows

    def _scan_again(self, scans: Mapping[str, Scan]) -> None:
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

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, pandas.Series]]:
        """Yield the series of these columns, for consecutive rows."""
        if self._only is not None:
            yield {name: self._only[name] for name in names}
            return
        types = {name: self._types[name] for name in names if name in self._types}
        dtypes = {name: kind for name, kind in types.items() if kind is not None}
        start = 0
        # a pass over all lines is needed for the number of rows of a block only
        for columns in self._read(list(types) or self.names[:1], dtypes):
            rows = slice(start, start + len(next(iter(columns.values()))))
            whole = {n: s.iloc[rows] for n, s in self._whole.items() if n in names}
            yield {**{name: columns[name] for name in types}, **whole}
            start = rows.stop

    def _read(
        self, names: Sequence[str], types: Mapping[str, object] | None = None
    ) -> Iterator[Columns]:
        reading: dict[str, object] = {}
        converted = None
        if types is not None:
            converted = {n for n in self._as_text if types.get(n, str) is not str}
            reading = {"usecols": list(names), "dtype": {**types, **dict.fromkeys(converted, str)}}
        with self._explain_errors(), self._open() as stream:
            rows = block_rows(len(self.names))
            with pandas.read_csv(stream, **self._options, chunksize=rows, **reading) as blocks:
                while True:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error", pandas.errors.ParserWarning)
                        frame = next(blocks, None)
                    if frame is None:
                        return
                    columns, numbers = _clean_names(frame, self._dialect, converted)
                    if types is None:
                        self._as_text |= numbers
                    for name in converted or ():
                        columns[name] = columns[name].astype(np.float64)
                    yield columns

    def _type(self, kinds: set[str]) -> Any:
        """Return the type of a column in the whole file; None where all blocks have it."""
        filled = kinds - {"empty"}
        if filled <= NUMBERS:
            return np.dtype(np.int64 if kinds == {"int64"} else np.float64)
        if filled == {"uint64"}:
            return np.dtype(np.uint64)
        return None if filled == {"bool"} else str

    def _whole_column(self, name: str) -> pandas.Series:
        """Read integers beyond int64: what they become depends on all values of a column."""
        with self._explain_errors(), self._open() as stream:
            frame = pandas.read_csv(stream, **self._options, usecols=[name])
        return _clean_names(frame, self._dialect)[0][name]

    def _header(self, drop: Sequence[str]) -> list[str]:
        """Return the names of the columns; refuse those that pandas would change silently."""
        # not by pandas, which takes a second for a row of ten thousand texts
        with self._explain_errors(), self._open() as opened:
            # the text is read ahead: bytes after the line are another error
            reader = parse(opened, self._dialect, errors="surrogateescape")
            rows = (row for row in reader if "".join(row).strip() or len(row) > 1)
            written = [name.strip() for name in next(rows, ())]
            encoding = self._dialect.encoding
            "".join(written).encode(encoding, "surrogateescape").decode(encoding)
        if not written:
            raise DatasetError(f"{self.what}: cannot be read as CSV: No columns to parse from file")
        self._n_names = len(written)
        _check_header(written, self.what, self._dialect)
        places = self._layout.places if self._layout else range(len(written))
        return check_names(written, places, self.what, drop)

    @contextlib.contextmanager
    def _open(self) -> Iterator[io.BufferedReader]:
        """Open the file, or the table that its layout describes."""
        # a stream, not a name: pandas would fetch what looks like an address
        dialect, layout = self._dialect, self._layout
        with open_bounded(self.files[0], self.what, dialect.delimiter, dialect.encoding) as stream:
            if layout is None:
                yield stream
                return
            rows = itertools.chain([layout.names], layout.select(parse(stream, dialect)))
            rewritten = _Rewritten(rows, dialect)
            try:
                yield io.BufferedReader(rewritten, 1 << 18)
            except Exception:
                if isinstance(rewritten.problem, UnicodeDecodeError):
                    raise rewritten.problem from None
                if rewritten.problem is not None:
                    raise DatasetError(f"{self.what}: {rewritten.problem}") from None
                raise

    @contextlib.contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except DatasetError:
            raise
        except UnicodeDecodeError as error:
            raise DatasetError(not_encoded(error, self.what)) from None
        except Exception as error:  # pandas' errors have no common base
            if isinstance(error, pandas.errors.ParserError | pandas.errors.ParserWarning):
                other = _other_delimiter(self._first_line(), self._dialect.delimiter)
                if other:
                    raise DatasetError(
                        f"{self.what}: its rows have different numbers of values; is the "
                        f"delimiter {other!r}? {_saying(other)}"
                    ) from None
                self._refuse_ragged()
            why = f"it cannot be read as CSV: {first_line(error)}"
            raise DatasetError(f"{self.what}: {why}") from None

    def _first_line(self) -> str:
        with contextlib.suppress(OSError, ValueError, EOFError, DatasetError), self._open() as raw:
            return raw.readline(1 << 16).decode(self._dialect.encoding, "replace")
        return ""

    def _refuse_ragged(self) -> None:
        dialect, lines, n_ragged = self._dialect, list[str](), 0
        with self._open() as opened, contextlib.suppress(csv.Error, UnicodeDecodeError):
            reader = parse(opened, dialect)
            for row in reader:
                if len(row) not in (0, self._n_names):
                    n_ragged += 1
                    if len(lines) < RAGGED:
                        lines.append(f"line {reader.line_num:,} has {len(row):,}")
        if n_ragged:
            more = f", and {n_ragged - RAGGED:,} more" if n_ragged > RAGGED else ""
            raise DatasetError(
                f"{self.what}: its first line has {self._n_names:,} names, but "
                f"{plural(n_ragged, 'row')} {'has' if n_ragged == 1 else 'have'} more or fewer "
                f"values: {', '.join(lines)}{more}. Quote values that contain the delimiter "
                f"{dialect.delimiter!r} or a line break, and keep the delimiters of empty ones."
            )


def _options(dialect: Dialect) -> dict[str, object]:
    return {
        **OPTIONS,
        "sep": dialect.delimiter,
        "decimal": dialect.decimal,
        "encoding": dialect.encoding,
        "na_values": ["?", *dialect.na_values],
    }


def _clean_names(
    frame: pandas.DataFrame, dialect: Dialect, converted: set[str] | None = None
) -> tuple[Columns, set[str]]:
    """Strip texts; make numbers of texts that are numbers then or have marks of thousands.

    Returned are the columns of the frame, once: it makes a series each time. Only columns in
    `converted` are made numbers, or all that can be; their names are returned too.
    """
    missing = {*MISSING, *dialect.na_values}
    numbers = set()
    columns: Columns = dict(frame.items())
    for name, series in columns.items():
        if _is_plain(series.dtype) or is_numeric(series.dtype):
            continue
        if pandas.api.types.infer_dtype(series) != "string":
            continue
        is_asked = bool(dialect.thousands) if converted is None else name in converted
        different = series.unique()
        if not is_asked and len(different) <= FEW_TEXTS and _are_clean(different, missing):
            continue
        cells = series.str.strip()
        cells = cells.mask(cells.isin(missing))
        is_changed = not cells.equals(series)
        if is_changed:
            columns[name] = cells
        if converted is not None and not is_asked:
            continue
        present = cells.dropna() if is_asked or is_changed else cells[:0]
        if len(present) and present.str.fullmatch(dialect.number).all():
            plain = dialect.plain(cells) if dialect.thousands or dialect.decimal != "." else cells
            columns[name] = pandas.to_numeric(plain)
            numbers.add(name)
    return columns, numbers


def _are_clean(different: Iterable[object], missing: Set[str]) -> bool:
    """Return whether no text has blanks around it or is a mark of a missing value."""
    texts = {each for each in different if isinstance(each, str)}
    return {*map(str.strip, texts)} == texts and texts.isdisjoint(missing)


def _is_plain(dtype: object) -> bool:
    """Whether a type is one of numpy's floats and signed integers."""
    return isinstance(dtype, np.dtype) and dtype.kind in "if"


def _kind(series: pandas.Series) -> str:
    """Return what a block of a column has: a type of numbers, bool, text, empty or other."""
    if _is_plain(series.dtype):
        values = series.to_numpy()
        has_none = not len(values) or (values.dtype.kind == "f" and bool(np.isnan(values).all()))
        return "empty" if has_none else str(values.dtype)
    if series.isna().all():
        return "empty"
    if is_numeric(series.dtype):
        return str(series.dtype)
    inferred = pandas.api.types.infer_dtype(series, skipna=True)
    if inferred == "string":
        first = next(filter(pandas.notna, series))
        is_text = not (first in MISSING or is_number(first)) or len(text_places(series))
        return "text" if is_text else "other"
    return "bool" if inferred == "boolean" else "other"


def _agree(kinds: set[str]) -> bool:
    """Whether the values of all blocks are those of the whole file."""
    filled = kinds - {"empty"}
    # a block without a value is one of floats
    return len(filled) < 2 and ("empty" not in kinds or filled <= {"float64"})


def _note_text(
    scan: Scan, series: pandas.Series, start: int, is_after_numbers: bool, dialect: Dialect
) -> None:
    """Note the first text in a column that begins with numbers."""
    # the first values decide, most often the first one
    for row, string in (
        (row, str(value)) for row, value in enumerate(series, start + 1) if pandas.notna(value)
    ):
        if not (string in MISSING or dialect.number.fullmatch(string)):
            if is_after_numbers:
                scan.note = f" (numbers before row {row:,}, which has {string[:40]!r})"
            return
        is_after_numbers = True


def _check_header(names: list[str], label: str, dialect: Dialect) -> None:
    is_range = names in ([str(i + first) for i in range(len(names))] for first in (0, 1))
    n_numbers = sum(bool(dialect.number.fullmatch(name)) for name in names)
    n_fractions = sum(dialect.decimal in n and bool(dialect.number.fullmatch(n)) for n in names)
    if (n_numbers == len(names) and not is_range) or n_fractions >= max(2, len(names) / 2):
        raise DatasetError(
            f"{label}: its first line has numbers instead of column names: {list_some(names, 4)}. "
            "Add a header line."
        )
    if len(names) == 1:
        other = _other_delimiter(names[0], dialect.delimiter)
        hint = f"; is the delimiter {other!r}? {_saying(other)}" if other else ""
        raise DatasetError(f"{label}: it has only one column, {names[0][:60]!r}{hint}")


def check_names(
    written: Sequence[str], places: Iterable[int], label: str, drop: Sequence[str]
) -> list[str]:
    """Return the names that pandas gives to columns; reject equal names and unnamed columns."""
    if twice := find_repeated(filter(None, written)):
        raise DatasetError(f"{label}: several columns are named {list_some(twice)}; rename them")
    read = [name or f"Unnamed: {place}" for place, name in zip(places, written, strict=True)]
    # most often the row numbers that pandas writes, which may reveal the labels
    unnamed = [i for i, name in enumerate(written) if not name and read[i] not in drop]
    if unnamed:
        noun, verb = ("column", "has") if len(unnamed) == 1 else ("columns", "have")
        raise DatasetError(
            f"{label}: {noun} {', '.join(str(i + 1) for i in unnamed)} {verb} no name; add names, "
            f"name their row with {option('header_row', '2')}, or drop them: "
            f"{option('drop', [read[i] for i in unnamed])}"
        )
    return read


def _other_delimiter(line: str, delimiter: str) -> str | None:
    signs = [sign for sign in ";\t|," if sign in line and sign != delimiter]
    most = max(signs, key=line.count, default=None)
    return most if most is not None and line.count(most) > line.count(delimiter) else None


def _saying(delimiter: str) -> str:
    return f"Give {option('delimiter', delimiter)}"

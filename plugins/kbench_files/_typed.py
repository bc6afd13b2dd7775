"""Files whose columns have types: parquet, read block by block, Excel and dense ARFF."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas
import pyarrow
from pyarrow import types

from kbench import DatasetError, DatasetParameterError
from kbench.messages import did_you_mean, list_some, option
from kbench.tables.arff import is_sparse_arff, read_arff
from kbench.tables.limits import check_values
from kbench.tables.table import find_repeated
from kbench.tables.table_rows import FrameRows, Opened, Scan
from kbench_files._csv import check_names
from kbench_files._encoding import block_rows
from kbench_files._layout import Row, find_layout, survey
from kbench_files._reading import existing, existing_files, first_line

ENDINGS = (".parquet", ".pq")

BUFFER = 1 << 18
"""Bytes of a column that are read together: a file may be one row group."""


def parquet_rows(path: str | Path, **_: object) -> Opened:
    """Return parquet files as a table that is read in blocks."""
    return Opened(ParquetRows(str(path)))


class ParquetRows:
    """The rows of parquet files; see `kbench.tables.table_rows.TableRows`.

    All files have the same columns, in any order. Types of numbers may differ, and a column
    without values, which has no type, fits any.
    """

    def __init__(self, path: str) -> None:
        self.files, self.what = existing_files(path, ENDINGS)
        self._n_rows = []
        self._types: dict[str, list[Any]] = {}
        for file in self.files:
            with file.open("rb") as opened:
                self._add(file, opened)
        self.names = list(self._types)

    def _add(self, file: Path, opened: BinaryIO) -> None:
        import pyarrow.parquet

        label = self._label(file)
        try:
            parquet = pyarrow.parquet.ParquetFile(opened)
            schema = parquet.schema_arrow
        except Exception as error:  # pyarrow's errors on a damaged file have no common base
            why = f"it cannot be read as parquet: {first_line(error)}"
            raise DatasetError(f"{label}: {why}") from None
        stored = schema.pandas_metadata or {}
        indices = {name for name in stored.get("index_columns", ()) if isinstance(name, str)}
        columns = [(field.name, field.type) for field in schema if field.name not in indices]
        if twice := find_repeated(name for name, _ in columns):
            raise DatasetError(f"{label}: several columns are named {twice[0]!r}")
        first = self._label(self.files[0])
        if self._n_rows and {name for name, _ in columns} != self._types.keys():
            its, there = {name for name, _ in columns}, set(self._types)
            differ = [f"{label} lacks {list_some(sorted(there - its))}"] if there - its else []
            differ += [f"only {label} has {list_some(sorted(its - there))}"] if its - there else []
            raise DatasetError(
                f"{self.what}: all files must have the same columns, but compared with {first}, "
                f"{' and '.join(differ)}"
            )
        for name, type_ in columns:
            types_ = self._types.setdefault(name, [])
            other = next((t for t in types_ if not _fit(t, type_)), None)
            if other is not None:
                raise DatasetError(
                    f"{self.what}: column {name!r} is {type_} in {label}, but {other} in the files "
                    "before"
                )
            types_.append(type_)
        self._n_rows.append(parquet.metadata.num_rows)

    def scan(self, scans: Mapping[str, Scan]) -> int:
        """Scan columns that the types do not describe; return the number of rows."""
        nested = [name for name in scans if any(map(types.is_nested, self._types[name]))]
        if nested:
            raise DatasetError(
                f"{self.what}: lists and records are not supported: {list_some(nested)}. Drop "
                f"columns with {option('drop', nested[:3])}."
            )
        n_rows, n = sum(self._n_rows), len(scans)
        numeric = self.numeric()
        size = min(8, max(4, np.result_type(*numeric.values()).itemsize)) if numeric else 8
        check_values(n_rows * n, self.what, f"{n_rows:,} rows with {n:,} columns", n_bytes=size)
        needed = {n: s for n, s in scans.items() if n not in numeric or s.wants()}
        for block in self.blocks(list(needed)) if needed else ():
            for name, scan in needed.items():
                scan.add(block[name])
        return n_rows

    def numeric(self) -> Mapping[str, np.dtype]:
        """Return the types of the columns of numbers."""
        numeric = {}
        for name, kinds in self._types.items():
            # a column without a value in a file has no type there
            dtypes = [_number_type(kind) for kind in kinds if str(kind) != "null"]
            if dtypes and None not in dtypes:
                numeric[name] = np.result_type(*dtypes)
        return numeric

    def blocks(self, names: Sequence[str]) -> Iterator[Mapping[str, pandas.Series]]:
        """Yield series by the names of their columns."""
        for file in self.files:
            yield from self._read_file(file, names)

    def _read_file(self, file: Path, names: Sequence[str]) -> Iterator[Mapping[str, pandas.Series]]:
        import pyarrow.parquet

        # a text that is there a million times is one text
        texts = [name for name in names if any(map(_is_text, self._types[name]))]
        row = 0
        try:
            with file.open("rb") as opened:
                # else the reader would fetch, and keep, whole row groups
                table = pyarrow.parquet.ParquetFile(
                    opened,
                    read_dictionary=texts,
                    pre_buffer=False,
                    buffer_size=BUFFER,
                    page_checksum_verification=True,  # of the writers that store checksums
                )
                rows = block_rows(len(names))
                for batch in table.iter_batches(rows, columns=list(names), use_threads=False):
                    yield _block(batch, names, texts)
                    row += batch.num_rows
        except Exception as error:  # pyarrow's errors on a damaged file have no common base
            why = f"it cannot be read as parquet after row {row:,}: {first_line(error)}"
            raise DatasetError(f"{self._label(file)}: {why}") from None

    def _label(self, file: Path) -> str:
        return self.what if len(self.files) == 1 else f"file {str(file)!r}"


def _block(
    batch: pyarrow.RecordBatch, names: Sequence[str], texts: Sequence[str]
) -> dict[str, pandas.Series]:
    """Return the columns of a block as pandas has them; texts are objects, decimals floats."""
    columns: dict[str, pandas.Series] = {}
    plain = {}
    for name in names:
        column = batch.column(name)
        if types.is_dictionary(column.type):
            codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            values = column.dictionary.to_pylist()
            if name in texts:
                columns[name] = pandas.Series(np.array([*values, None], dtype=object)[codes])
            else:
                columns[name] = pandas.Series(pandas.Categorical.from_codes(codes, values))
        elif types.is_decimal(column.type):
            # by its digits, as Python does it
            plain[name] = column.cast(pyarrow.string()).cast(pyarrow.float64())
        else:
            plain[name] = column.cast(pyarrow.float64()) if types.is_null(column.type) else column
    if plain:
        table = pyarrow.table(plain).replace_schema_metadata(batch.schema.metadata)
        frame = table.to_pandas(split_blocks=True)
        columns |= {name: frame[name] for name in plain}
    return columns


def _is_text(kind: pyarrow.DataType) -> bool:
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _number_type(kind: pyarrow.DataType) -> np.dtype | None:
    if types.is_decimal(kind):
        return np.dtype(np.float64)
    is_number = types.is_integer(kind) or types.is_floating(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


def _fit(one: pyarrow.DataType, other: pyarrow.DataType) -> bool:
    """Whether a column may have these types in two files."""
    if one.equals(other) or types.is_null(one) or types.is_null(other):
        return True
    if types.is_dictionary(one) and types.is_dictionary(other):
        return _fit(one.value_type, other.value_type)
    is_text = _is_text(one) and _is_text(other)
    return is_text or (_number_type(one) is not None and _number_type(other) is not None)


def _read_cells(path: str | Path, sheet: str) -> tuple[list[Row], str, list[str]]:
    """Return the cells of a sheet, its name, by default the first one, and those of all sheets."""
    file, label = existing(path)
    try:
        # merged cells are known only if the whole book is in memory
        needs_all = {"read_only": False} if _has_merged_cells(file) else None
        with pandas.ExcelFile(file.absolute(), engine_kwargs=needs_all) as book:
            sheets = [str(name) for name in book.sheet_names]
            if sheet and sheet not in sheets:
                hint = did_you_mean(sheet, sheets) or f"; available: {list_some(sheets)}"
                raise DatasetError(f"{label}: no sheet is named {sheet!r}{hint}")
            chosen = sheet or sheets[0]
            frame = pandas.read_excel(
                book, sheet_name=chosen, header=None, dtype=object, na_filter=False
            )
            rows = frame.to_numpy().tolist()
            for merged in book.book[chosen].merged_cells.ranges if needs_all else ():
                # a cell above several rows is that of each of them
                column, top, bottom = merged.min_col - 1, merged.min_row - 1, merged.max_row
                for row in rows[top + 1 : bottom]:
                    row[column] = rows[top][column]
    except ImportError as error:
        needed = "openpyxl" if file.suffix.lower() == ".xlsx" else "xlrd"
        extra = "pip install 'kbench-core[excel]'" if needed == "openpyxl" else "pip install xlrd"
        raise DatasetError(
            f"{label}: reading it needs {needed}: {extra}, or save it as CSV"
        ) from error
    except DatasetError:
        raise
    except Exception as error:  # the readers' errors have no common base
        why = f"it cannot be read as an Excel file: {first_line(error)}"
        raise DatasetError(f"{label}: {why}") from None
    check_values(frame.size, label, f"{frame.shape[0]:,} rows with {frame.shape[1]:,} columns")
    return rows, chosen, sheets


def _has_merged_cells(file: Path) -> bool:
    if not zipfile.is_zipfile(file):
        return False
    with zipfile.ZipFile(file) as book:
        names = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        return any(b"<mergeCell " in book.read(name) for name in names)


def _read_types(names: Sequence[str], rows: Iterable[Row], missing: Sequence[str]) -> Any:
    """Return rows of cells as pandas reads a sheet; texts that are numbers become these."""
    from pandas.io.parsers import TextParser

    frame = TextParser([names, *map(list, rows)], header=0, na_values=["?", *missing]).read()
    for name in names:
        if frame[name].dtype == object or str(frame[name].dtype) == "str":
            values = frame[name].map(
                lambda value: value.strip() if isinstance(value, str) else value
            )
            values = values.where(~values.isin(["", *missing])).infer_objects()
            try:  # numbers in cells of text
                values = pandas.to_numeric(values)
            except (ValueError, TypeError):  # texts and numbers are categories, as in a CSV file
                if {*map(type, values.dropna())} - {str} <= {int, float}:
                    values = values.map(str, na_action="ignore")
            frame[name] = values
    return frame


def excel_rows(
    path: str | Path,
    sheet: str = "",
    drop: Sequence[str] = (),
    header_row: str = "",
    keep_totals: bool = False,
    na_values: Sequence[str] = (),
    detects: bool = True,
    **_: object,
) -> Opened:
    """Return a sheet of an Excel file as a table in blocks."""
    cells, chosen, sheets = _read_cells(path, sheet)
    file, label = existing(path)
    if not sheet and len(sheets) > 1:
        another = f"{option('sheet')} reads another one: {list_some(sheets[1:])}"
        label = f"{label}, sheet {chosen!r} ({another})"
    if not cells:
        raise DatasetError(f"{label}: it has no rows")
    written, places, body = cells[0], range(len(cells[0])), iter(cells[1:])
    params, notices, sentence = {}, (), f"the sheet {chosen!r}"
    if detects or header_row:
        try:
            layout = find_layout(*survey(cells), header_row, keep_totals=keep_totals)
        except ValueError as error:
            raise DatasetError(f"{label}: {error}") from None
        if not layout.is_plain:
            written, places, body = layout.names, layout.places, layout.select(cells)
            params, notices = {"header_row": layout.header_row}, layout.notices
            sentence += f", names in row {layout.header_row}"
    read = check_names([str(name).strip() for name in written], places, label, drop)
    frame = _read_types(read, body, na_values)
    infinite = [n for n in read if frame[n].dtype.kind == "f" and np.isinf(frame[n]).any()]
    if infinite:
        frame = frame.replace([np.inf, -np.inf], np.nan)
        notices = (*notices, f"infinite values are read as missing in {list_some(infinite)}")
    rows = FrameRows(frame, label)
    rows.files = [file]
    return Opened(rows, params, sentence, notices)


ONLY_DENSE = ("categorical", "date_formats", "target_encode", "strip_units", "groups")
ONLY_DENSE += ("time_column",)
"""Parameters that need a table with columns of text, dates or groups."""


def arff_rows(path: str | Path, **given: object) -> Opened | None:
    """Return a dense ARFF file as a table in blocks; None if it is sparse."""
    file, label = existing(path)
    if is_sparse_arff(file, label):
        refuse_for_sparse(given, label)
        return None
    return Opened(
        arff_frame(path), {}, "dense ARFF; the types of columns are those that it declares"
    )


def refuse_for_sparse(params: Mapping[str, object], label: str) -> None:
    """Raise an error for parameters that have no meaning for sparse rows."""
    asked = [name for name in ONLY_DENSE if params.get(name)]
    if asked:
        raise DatasetParameterError(
            f"{label}: {asked[0]} does not apply to sparse rows, whose columns are numbers and "
            "declared categories"
        )


def arff_frame(path: str | Path) -> FrameRows:
    """Return a dense ARFF file: declared categories keep their order, dates are strings."""
    file, label = existing(path)
    columns = read_arff(file, label).columns
    series = {
        "nominal": lambda c: pandas.Series(
            pandas.Categorical.from_codes(c.values, list(c.categories))
        ),
        "string": lambda c: pandas.Series(c.values, dtype=object),
        "numeric": lambda c: pandas.Series(np.array(c.values)),
    }
    names = [column.name for column in columns]
    rows = FrameRows(pandas.concat([series[c.kind](c) for c in columns], axis=1, keys=names), label)
    rows.files = [file]
    return rows

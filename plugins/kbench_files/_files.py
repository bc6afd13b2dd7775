"""A user's own data: CSV, parquet, ARFF and svmlight (libsvm) files.

The path is relative to the current folder. All give the same canonical form as
OpenML's data: missing values stay NaN, columns of text become indicators.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kbench import Dataset, DatasetError
from kbench.messages import listed
from kbench.tables.arff import read_arff
from kbench.tables.columns import is_free_text
from kbench.tables.limits import BoundedText, check_file_size, check_values
from kbench.tables.table import Column, Table, no_column, to_dataset

NAME_VALUES = 16
"""Numbers that need as much memory as a column's name."""


def load_csv(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    delimiter: str = ",",
    group: str = "",
) -> Dataset:
    """Read a CSV file with a line of column names.

    Parameters
    ----------
    path : str
        The file, in UTF-8; also compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``).
    target : str
        Name of the column with the labels.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text always do,
        in alphabetical order.
    delimiter : str, default ","
        Sign between two values.
    group : str, optional
        Group of the dataset; its name (the file's stem) by default.

    Returns
    -------
    Dataset
        Empty cells and the usual marks (NA, NaN, null, ?) are missing values.

    Raises
    ------
    DatasetError
        The file cannot be read, a column is not there, or is text.
    """
    import pandas

    file, what = _existing(path)
    try:
        as_written = {"header": None, "dtype": str, "keep_default_na": False}
        with _bounded(file, what, delimiter) as text:
            header = pandas.read_csv(
                text, sep=delimiter, nrows=1, skipinitialspace=True, **as_written
            )
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = csv_table(file, delimiter)
    except pandas.errors.ParserWarning:
        raise DatasetError(
            f"{what}: its rows have more values than its first line has names ({header.shape[1]})"
        ) from None
    except DatasetError:
        raise
    except UnicodeDecodeError as error:
        raise DatasetError(f"{what}: {_not_utf8(error)}") from None
    except Exception as error:  # pandas' errors have no common base
        other = _other_delimiter(_first_text(file), delimiter)
        if isinstance(error, pandas.errors.ParserError) and other:
            raise DatasetError(
                f"{what}: its rows do not have equally many values; is the delimiter {other!r}? "
                f"{_saying(other)}"
            ) from None
        raise DatasetError(f"{what}: it cannot be read as CSV: {_first_line(error)}") from None
    _check_header([str(name) for name in header.iloc[0]], frame, what, ignore, delimiter)
    return _from_frame(frame, file, what, target, ignore, nominal, group)


def csv_table(path: str | Path, delimiter: str = ",", **_: Any) -> Any:
    """Return a CSV file as a data frame, before anything is encoded."""
    import pandas

    # a stream, not a name: pandas would fetch what looks like an address
    with _bounded(*_existing(path), delimiter) as text:
        return pandas.read_csv(
            text,
            sep=delimiter,
            index_col=False,  # or surplus values would shift the columns, silently
            na_values=["?"],
            skipinitialspace=True,
            low_memory=False,
        )


@contextlib.contextmanager
def _bounded(file: Path, what: str, delimiter: str) -> Iterator[io.BufferedReader]:
    """Open a CSV file, perhaps a packed one; DatasetError where it unpacks to too much."""
    from pandas.io.common import get_handle

    # absolute: pandas takes a relative path such as "http:/x.csv" for an address
    with get_handle(file.absolute(), "rb", compression="infer", is_text=False) as opened:
        text = BoundedText(opened.handle, what, delimiter)
        try:
            yield io.BufferedReader(text, 1 << 18)
        except Exception:
            if text.problem is not None:  # pandas replaces it
                raise text.problem from None
            raise


def load_parquet(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    group: str = "",
) -> Dataset:
    """Read a parquet file.

    Parameters
    ----------
    path : str
        The file.
    target : str
        Name of the column with the labels.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text and
        dictionaries always do.
    group : str, optional
        Group of the dataset; its name (the file's stem) by default.

    Returns
    -------
    Dataset
        Categories of a dictionary column keep their order.

    Raises
    ------
    DatasetError
        The file cannot be read, a column is not there, or is text.
    """
    file, what = _existing(path)
    try:
        frame = parquet_table(file)
    except DatasetError:
        raise
    except Exception as error:  # pyarrow's errors on a damaged file have no common base
        raise DatasetError(f"{what}: it cannot be read as parquet: {_first_line(error)}") from None
    return _from_frame(frame, file, what, target, ignore, nominal, group)


def parquet_table(path: str | Path, **_: Any) -> Any:
    """Return a parquet file as a data frame, before anything is encoded."""
    import pandas

    file, what = _existing(path)
    with file.open("rb") as opened:
        _check_parquet(opened, what)
        return pandas.read_parquet(opened)


def _check_parquet(file: BinaryIO, what: str) -> None:
    """Refuse a file that is small because the same values are stored once."""
    import pyarrow
    import pyarrow.parquet
    from pyarrow import compute

    schema = pyarrow.parquet.read_schema(file)
    kinds = pyarrow.types
    texts = [
        field.name
        for field in schema
        if kinds.is_string(field.type)
        or kinds.is_large_string(field.type)
        or kinds.is_binary(field.type)
        or kinds.is_large_binary(field.type)
    ]
    table = pyarrow.parquet.ParquetFile(file, read_dictionary=texts)
    n, d = table.metadata.num_rows, table.metadata.num_columns
    check_values(n * d, what, f"{n:,} rows with {d:,} columns")
    n_bytes = 0
    for batch in table.iter_batches(columns=texts) if texts else ():
        for column in batch.columns:
            lengths = compute.binary_length(column.dictionary).take(column.indices)
            n_bytes += compute.sum(lengths).as_py() or 0
        check_values(n_bytes // 8, what, "its texts")
    file.seek(0)


def load_arff(path: str, target: str, ignore: Sequence[str] = (), group: str = "") -> Dataset:
    """Read an ARFF file, dense or sparse.

    Parameters
    ----------
    path : str
        The file, in UTF-8.
    target : str
        Name of the attribute with the labels.
    ignore : sequence of str, optional
        Attributes to leave out.
    group : str, optional
        Group of the dataset; its name (the file's stem) by default.

    Returns
    -------
    Dataset
        Nominal attributes become indicators in the declared order.

    Raises
    ------
    DatasetError
        The file is not ARFF (with the line), or a column is not there, or is
        text.
    """
    file, what = _existing(path)
    table = read_arff(file, what)
    return to_dataset(
        table, what, target, tuple(ignore), name=file.stem, source=f"file {file.name}", group=group
    )


def load_svmlight(path: str, n_features: int | None = None, group: str = "") -> Dataset:
    """Read a file in the format of SVMlight and LIBSVM.

    Parameters
    ----------
    path : str
        The file; also compressed (``.gz``, ``.bz2``).
    n_features : int, optional
        Number of columns; by default the largest that occurs.
    group : str, optional
        Group of the dataset; its name (the file's stem) by default.

    Returns
    -------
    Dataset
        `X` is a CSR matrix.

    Raises
    ------
    DatasetError
        The file cannot be read, or its labels are not whole numbers.
    """
    import scipy.sparse
    from sklearn.datasets import load_svmlight_file

    file, what = _existing(path)
    try:
        with _bounded(file, what, ":") as text:
            X, labels = load_svmlight_file(text, n_features=n_features)
    except DatasetError:
        raise
    except Exception as error:  # the reader's errors have no common base
        raise DatasetError(f"{what}: it cannot be read as svmlight: {_first_line(error)}") from None
    # each column has a name
    check_values(NAME_VALUES * X.shape[1], what, f"{X.shape[1]:,} columns")
    names = [f"x{j}" for j in range(X.shape[1])] + ["label"]
    both = scipy.sparse.hstack([X, scipy.sparse.csr_matrix(labels[:, None])], format="csc")
    table = Table([Column(name, "numeric") for name in names], len(labels), both)
    return to_dataset(table, what, "label", name=file.stem, source=f"file {file.name}", group=group)


def _existing(path: Any) -> tuple[Path, str]:
    file = Path(str(path)).expanduser()
    what = f"file {str(path)!r}"
    try:
        size = file.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(f"{what}: {reason} (looked for {file.absolute()})") from None
    if not file.is_file():
        raise DatasetError(f"{what} is not a file")
    if size == 0:
        raise DatasetError(f"{what} is empty")
    check_file_size(size, what)
    return file, what


def _check_header(
    names: list[str], frame: Any, what: str, ignore: Sequence[str], delimiter: str
) -> None:
    """Refuse headers that pandas would change silently."""
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DatasetError(f"{what}: several columns are named {twice[0]!r}; rename all but one")
    if len(names) == 1:
        other = _other_delimiter(names[0], delimiter)
        hint = f"; is the delimiter {other!r}? {_saying(other)}" if other else ""
        raise DatasetError(f"{what}: it has one column only, {names[0][:60]!r}{hint}")
    for place, name in enumerate(names):
        if not name and frame.columns[place] not in ignore:
            # most often the row numbers that pandas writes, which may reveal the labels
            raise DatasetError(
                f"{what}: column {place + 1} has no name; name it, or leave it out: ignore "
                f"{frame.columns[place]!r}"
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


def _from_frame(frame, file, what, target, ignore, nominal, group) -> Dataset:
    frame.columns = [str(name) for name in frame.columns]
    unknown = [name for name in nominal if name not in frame.columns]
    if unknown:
        raise DatasetError(f"{what}, nominal: {no_column(unknown[0], list(frame.columns))}")
    if not len(frame):
        raise DatasetError(f"{what}: it has no rows")
    left_out = {target, *ignore}
    no_value = frame.isna().all()
    empty = [name for name in frame.columns[no_value.to_numpy()] if name not in left_out]
    if empty:
        raise DatasetError(
            f"{what}: no row has a value in {listed(empty)}. Leave out what is empty: "
            f"ignore {', '.join(map(repr, empty[:3]))}."
        )
    columns = [
        _column(frame.iloc[:, j], name, name in nominal, name in left_out)
        for j, name in enumerate(frame.columns)
    ]
    return to_dataset(
        Table(columns, len(frame)),
        what,
        target,
        tuple(ignore),
        name=file.name.partition(".")[0] or file.name,
        source=f"file {file.name}",
        group=group,
    )


def _column(series: Any, name: str, nominal: bool, any_text: bool) -> Column:
    import pandas

    if isinstance(series.dtype, pandas.CategoricalDtype):
        categories = [str(value) for value in series.cat.categories]
        return Column(name, "nominal", categories, np.asarray(series.cat.codes, dtype=np.int32))
    is_bool = pandas.api.types.is_bool_dtype(series.dtype)
    if pandas.api.types.is_numeric_dtype(series.dtype) and not nominal and not is_bool:
        return Column(name, "numeric", (), series.to_numpy(dtype=np.float64, na_value=np.nan))
    codes, values = pandas.factorize(series, sort=True)
    is_plain = nominal or is_bool or pandas.api.types.is_numeric_dtype(series.dtype)
    if not (is_plain or any_text) and is_free_text(values, len(series)):
        return Column(name, "string", (), None)
    return Column(name, "nominal", [str(value) for value in values], codes.astype(np.int32))


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


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__

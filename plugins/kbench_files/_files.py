"""A user's own data: CSV, parquet, ARFF and svmlight (libsvm) files.

All give the same canonical form as OpenML's data: missing values stay NaN, columns of
text become indicators. Without a task, a target of numbers that are not all whole is
that of a regression task.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kbench import Dataset, DatasetError
from kbench.messages import listed
from kbench.tables.arff import read_arff
from kbench.tables.columns import is_free_text
from kbench.tables.limits import check_values
from kbench.tables.table import Column, Table, no_column, to_dataset
from kbench_files._reading import bounded, csv_table, existing, first_line, first_text
from kbench_files._splits import with_splits

NAME_VALUES = 16
"""Numbers that need as much memory as a column's name."""


def load_csv(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    delimiter: str = ",",
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    label: str = "",
) -> Dataset:
    """Read a CSV file with a line of column names.

    Parameters
    ----------
    path : str
        The file, in UTF-8; also compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``).
    target : str
        Name of the column to predict.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text always do,
        in alphabetical order.
    delimiter : str, default ","
        Sign between two values.
    group : str, optional
        Group of the dataset; its name by default.
    task : {"classification", "regression"}, optional
        By default regression if the target has a number that is not whole.
    weight : str, optional
        Name of the column with the weights of the rows.
    splits : str, optional
        File of the splits for ``splits = "official"`` in the protocol: CSV, perhaps
        compressed, with a line of names, then one line per row of the data; one column
        per split, 1 where the row is tested and 0 where it is for training.
    overlapping_splits : bool, default False
        Rows may be tested in several splits, as in repeated holdouts.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

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

    file, what = existing(path)
    try:
        as_written = {"header": None, "dtype": str, "keep_default_na": False}
        with bounded(file, what, delimiter) as text:
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
        other = _other_delimiter(first_text(file), delimiter)
        if isinstance(error, pandas.errors.ParserError) and other:
            raise DatasetError(
                f"{what}: its rows do not have equally many values; is the delimiter {other!r}? "
                f"{_saying(other)}"
            ) from None
        raise DatasetError(f"{what}: it cannot be read as CSV: {first_line(error)}") from None
    _check_header([str(name) for name in header.iloc[0]], frame, what, ignore, delimiter)
    table = _table(frame, what, (target, weight, *ignore), nominal)
    facts = _facts(file, label, group)
    data = to_dataset(table, what, target, tuple(ignore), task, weight, **facts)
    return with_splits(data, table.n_rows, splits, overlapping_splits)


def load_parquet(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    label: str = "",
) -> Dataset:
    """Read a parquet file.

    Parameters
    ----------
    path : str
        The file.
    target : str
        Name of the column to predict.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text and
        dictionaries always do.
    group : str, optional
        Group of the dataset; its name by default.
    task : {"classification", "regression"}, optional
        By default regression if the target has a number that is not whole.
    weight : str, optional
        Name of the column with the weights of the rows.
    splits : str, optional
        File of the splits for ``splits = "official"`` in the protocol: CSV, perhaps
        compressed, with a line of names, then one line per row of the data; one column
        per split, 1 where the row is tested and 0 where it is for training.
    overlapping_splits : bool, default False
        Rows may be tested in several splits, as in repeated holdouts.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

    Returns
    -------
    Dataset
        Categories of a dictionary column keep their order.

    Raises
    ------
    DatasetError
        The file cannot be read, a column is not there, or is text.
    """
    file, what = existing(path)
    try:
        frame = parquet_table(file)
    except DatasetError:
        raise
    except Exception as error:  # pyarrow's errors on a damaged file have no common base
        raise DatasetError(f"{what}: it cannot be read as parquet: {first_line(error)}") from None
    table = _table(frame, what, (target, weight, *ignore), nominal)
    facts = _facts(file, label, group)
    data = to_dataset(table, what, target, tuple(ignore), task, weight, **facts)
    return with_splits(data, table.n_rows, splits, overlapping_splits)


def parquet_table(path: str | Path, **_: Any) -> Any:
    """Return a parquet file as a data frame, before anything is encoded."""
    import pandas

    file, what = existing(path)
    with file.open("rb") as opened:
        _check_parquet(opened, what)
        frame = pandas.read_parquet(opened)
    infer = pandas.api.types.infer_dtype
    decimals = [name for name, column in frame.items() if infer(column) == "decimal"]
    return frame.astype(dict.fromkeys(decimals, np.float64))


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


def load_arff(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    label: str = "",
) -> Dataset:
    """Read an ARFF file, dense or sparse.

    Parameters
    ----------
    path : str
        The file, in UTF-8.
    target : str
        Name of the attribute to predict.
    ignore : sequence of str, optional
        Attributes to leave out.
    group : str, optional
        Group of the dataset; its name by default.
    task : {"classification", "regression"}, optional
        By default regression if the target has a number that is not whole.
    weight : str, optional
        Name of the column with the weights of the rows.
    splits : str, optional
        File of the splits for ``splits = "official"`` in the protocol: CSV, perhaps
        compressed, with a line of names, then one line per row of the data; one column
        per split, 1 where the row is tested and 0 where it is for training.
    overlapping_splits : bool, default False
        Rows may be tested in several splits, as in repeated holdouts.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

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
    file, what = existing(path)
    table = read_arff(file, what)
    facts = _facts(file, label, group)
    data = to_dataset(table, what, target, tuple(ignore), task, weight, **facts)
    return with_splits(data, table.n_rows, splits, overlapping_splits)


def load_svmlight(
    path: str,
    n_features: int | None = None,
    group: str = "",
    task: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    label: str = "",
) -> Dataset:
    """Read a file in the format of SVMlight and LIBSVM.

    Parameters
    ----------
    path : str
        The file; also compressed (``.gz``, ``.bz2``).
    n_features : int, optional
        Number of columns; by default the largest that occurs.
    group : str, optional
        Group of the dataset; its name by default.
    task : {"classification", "regression"}, optional
        By default regression if the target has a number that is not whole.
    splits : str, optional
        File of the splits for ``splits = "official"`` in the protocol: CSV, perhaps
        compressed, with a line of names, then one line per row of the data; one column
        per split, 1 where the row is tested and 0 where it is for training.
    overlapping_splits : bool, default False
        Rows may be tested in several splits, as in repeated holdouts.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

    Returns
    -------
    Dataset
        `X` is a CSR matrix.

    Raises
    ------
    DatasetError
        The file cannot be read, or its labels are not those of the task.
    """
    import scipy.sparse
    from sklearn.datasets import load_svmlight_file

    file, what = existing(path)
    try:
        with bounded(file, what, ":") as text:
            X, labels = load_svmlight_file(text, n_features=n_features)
    except DatasetError:
        raise
    except Exception as error:  # the reader's errors have no common base
        raise DatasetError(f"{what}: it cannot be read as svmlight: {first_line(error)}") from None
    # each column has a name
    check_values(NAME_VALUES * X.shape[1], what, f"{X.shape[1]:,} columns")
    names = [f"x{j}" for j in range(X.shape[1])] + ["label"]
    both = scipy.sparse.hstack([X, scipy.sparse.csr_matrix(labels[:, None])], format="csc")
    table = Table([Column(name, "numeric") for name in names], len(labels), both)
    data = to_dataset(table, what, "label", (), task, **_facts(file, label, group))
    return with_splits(data, len(labels), splits, overlapping_splits)


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


def _facts(file: Path, label: str, group: str) -> dict[str, str]:
    """Return the name, source and group of a dataset."""
    stem = file.name.partition(".")[0] or file.name
    return {"name": label or stem, "source": f"file {file.name}", "group": group}


def _table(frame: Any, what: str, left_out: Sequence[str | None], nominal: Sequence[str]) -> Table:
    """Return the typed columns of a data frame; those `left_out` may be empty or text."""
    frame.columns = [str(name) for name in frame.columns]
    unknown = [name for name in nominal if name not in frame.columns]
    if unknown:
        raise DatasetError(f"{what}, nominal: {no_column(unknown[0], list(frame.columns))}")
    if not len(frame):
        raise DatasetError(f"{what}: it has no rows")
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
    return Table(columns, len(frame))


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

"""A user's own data: CSV, parquet, ARFF and svmlight (libsvm) files.

All give the same canonical form as OpenML's data: missing values stay NaN, columns of
text become indicators. Without a task, a target of numbers that are not all whole is
that of a regression task.

All but ARFF are read block by block, so that a table is never in memory as a whole. The
result does not depend on the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kbench import Dataset
from kbench.parameters import is_pattern
from kbench.tables.arff import is_sparse_arff, read_arff
from kbench.tables.rows import unchanged
from kbench.tables.table import Column, labelled, to_dataset
from kbench_files._arff import ArffRows, refuse_for_sparse
from kbench_files._csv import CsvRows
from kbench_files._dialect import Dialect
from kbench_files._encoding import Roles, encoded
from kbench_files._excel import excel_rows
from kbench_files._parquet import ParquetRows
from kbench_files._parts import with_parts
from kbench_files._reading import existing
from kbench_files._splits import with_splits
from kbench_files._svmlight import SvmlightRows


def load_csv(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    date: Sequence[str] = (),
    by_target: Sequence[str] = (),
    unit: Sequence[str] = (),
    delimiter: str = ",",
    decimal: str = ".",
    thousands: str = "",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    skip: int = 0,
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    group_by: str | None = None,
    order_by: str | None = None,
    label: str = "",
) -> Dataset:
    """Read a CSV file with a line of column names.

    Parameters
    ----------
    path : str
        The file; also compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``). Blanks around
        names and values are left out.
    target : str
        Name of the column to predict.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text always do,
        in alphabetical order.
    date : sequence of str, optional
        Columns of dates as ``"COLUMN=FORMAT"``, such as ``"joined=%d.%m.%Y"`` or
        ``"joined=ISO8601"``, which become days since 1970. ``"|year"``, ``"|week"`` and
        ``"|day"`` after it add the sine and cosine of the place in that period.
    by_target : sequence of str, optional
        Columns of categories that each fit replaces by means of the target (scikit-learn's
        `TargetEncoder`), instead of an indicator column per category.
    unit : sequence of str, optional
        Columns of numbers with a sign or a unit around them, which is left out, as
        ``"COLUMN=UNIT"``, such as ``"price=$"``, perhaps with the decimal mark and the one
        between thousands: ``"price=€|,."``. Brackets around a number are a minus.
    delimiter : str, default ","
        Sign between two values.
    decimal : {".", ","}
        Decimal mark.
    thousands : str, optional
        Sign between groups of three digits: ``"."``, ``","``, ``"'"``, or a blank.
    encoding : str, default "utf-8"
        Encoding of the text; a byte order mark is left out.
    missing : sequence of str, optional
        Texts of missing values, beside the usual ones.
    skip : int, default 0
        Lines before that of column names.
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
    group_by : str, optional
        Column of groups, which is not a feature: for ``splits = "official"`` there are five
        folds, each with all rows of a group or none.
    order_by : str, optional
        Column of numbers or dates: for ``splits = "official"`` there is one split, which tests
        the fifth of the rows that comes last, 50,000 at most.
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
    dialect = Dialect(delimiter, decimal, thousands, encoding, tuple(missing), int(skip))
    rows = CsvRows(path, dialect, ignore)
    grouped = () if group_by is None else (group_by,)
    roles = Roles(target, (*ignore, *grouped), nominal, date, by_target, unit, task, weight)
    with unchanged(rows.files, rows.what):
        facts = _facts(path, label, group)
        data, n_rows = encoded(rows, roles, facts)
        data = with_parts(data, rows, group_by, order_by, date)
    return with_splits(data, n_rows, splits, overlapping_splits)


def load_parquet(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    date: Sequence[str] = (),
    by_target: Sequence[str] = (),
    unit: Sequence[str] = (),
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    group_by: str | None = None,
    order_by: str | None = None,
    label: str = "",
) -> Dataset:
    """Read a parquet file, or several of one table.

    Parameters
    ----------
    path : str
        The file; or a folder with files of one table, or a pattern such as
        ``parts/*.parquet``, which are read in the order of their names.
    target : str
        Name of the column to predict.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text and
        dictionaries always do.
    date : sequence of str, optional
        Columns of dates as ``"COLUMN=FORMAT"``, such as ``"joined=%d.%m.%Y"`` or
        ``"joined=ISO8601"``, which become days since 1970. ``"|year"``, ``"|week"`` and
        ``"|day"`` after it add the sine and cosine of the place in that period.
    by_target : sequence of str, optional
        Columns of categories that each fit replaces by means of the target (scikit-learn's
        `TargetEncoder`), instead of an indicator column per category.
    unit : sequence of str, optional
        Columns of numbers with a sign or a unit around them, which is left out, as
        ``"COLUMN=UNIT"``, such as ``"price=$"``, perhaps with the decimal mark and the one
        between thousands: ``"price=€|,."``. Brackets around a number are a minus.
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
    group_by : str, optional
        Column of groups, which is not a feature: for ``splits = "official"`` there are five
        folds, each with all rows of a group or none.
    order_by : str, optional
        Column of numbers or dates: for ``splits = "official"`` there is one split, which tests
        the fifth of the rows that comes last, 50,000 at most.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

    Returns
    -------
    Dataset
        Categories of a dictionary column keep their order. `X` is float32 where it holds
        all columns exactly by their types: columns of float32 and float16, perhaps beside
        integers of at most 16 bits.

    Raises
    ------
    DatasetError
        A file cannot be read or has other columns than the first one, a column is not
        there, or is text.
    """
    rows = ParquetRows(path)
    grouped = () if group_by is None else (group_by,)
    roles = Roles(target, (*ignore, *grouped), nominal, date, by_target, unit, task, weight)
    with unchanged(rows.files, rows.what):
        facts = _facts(path, label, group)
        data, n_rows = encoded(rows, roles, facts)
        data = with_parts(data, rows, group_by, order_by, date)
    return with_splits(data, n_rows, splits, overlapping_splits)


def load_excel(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    date: Sequence[str] = (),
    by_target: Sequence[str] = (),
    unit: Sequence[str] = (),
    sheet: str = "",
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    group_by: str | None = None,
    order_by: str | None = None,
    label: str = "",
) -> Dataset:
    """Read a sheet of an Excel file with a line of column names.

    Parameters
    ----------
    path : str
        The file. ``.xlsx`` needs openpyxl (the extra ``excel``), ``.xls`` needs xlrd.
    target : str
        Name of the column to predict.
    ignore : sequence of str, optional
        Columns to leave out.
    nominal : sequence of str, optional
        Columns of numbers that stand for categories. Columns of text always do.
    date : sequence of str, optional
        Columns of dates as ``"COLUMN=FORMAT"``, such as ``"joined=%d.%m.%Y"`` or
        ``"joined=ISO8601"``, which become days since 1970. ``"|year"``, ``"|week"`` and
        ``"|day"`` after it add the sine and cosine of the place in that period.
    by_target : sequence of str, optional
        Columns of categories that each fit replaces by means of the target (scikit-learn's
        `TargetEncoder`), instead of an indicator column per category.
    unit : sequence of str, optional
        Columns of numbers with a sign or a unit around them, which is left out, as
        ``"COLUMN=UNIT"``, such as ``"price=$"``, perhaps with the decimal mark and the one
        between thousands: ``"price=€|,."``. Brackets around a number are a minus.
    sheet : str, optional
        Name of the sheet; the first one by default.
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
    group_by : str, optional
        Column of groups, which is not a feature: for ``splits = "official"`` there are five
        folds, each with all rows of a group or none.
    order_by : str, optional
        Column of numbers or dates: for ``splits = "official"`` there is one split, which tests
        the fifth of the rows that comes last, 50,000 at most.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

    Returns
    -------
    Dataset
        Empty cells and the usual marks are missing values.

    Raises
    ------
    DatasetError
        The file cannot be read, a column is not there, or is text.
    """
    rows = excel_rows(path, sheet, ignore).rows
    grouped = () if group_by is None else (group_by,)
    roles = Roles(target, (*ignore, *grouped), nominal, date, by_target, unit, task, weight)
    with unchanged(rows.files, rows.what):
        facts = _facts(path, label, group)
        data, n_rows = encoded(rows, roles, facts)
        data = with_parts(data, rows, group_by, order_by, date)
    return with_splits(data, n_rows, splits, overlapping_splits)


def load_arff(
    path: str,
    target: str,
    ignore: Sequence[str] = (),
    nominal: Sequence[str] = (),
    date: Sequence[str] = (),
    by_target: Sequence[str] = (),
    unit: Sequence[str] = (),
    group: str = "",
    task: str | None = None,
    weight: str | None = None,
    splits: str | None = None,
    overlapping_splits: bool = False,
    group_by: str | None = None,
    order_by: str | None = None,
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
    nominal : sequence of str, optional
        Attributes of numbers that stand for categories. Attributes of text always do, in
        alphabetical order.
    date : sequence of str, optional
        Columns of dates as ``"COLUMN=FORMAT"``, such as ``"joined=%d.%m.%Y"`` or
        ``"joined=ISO8601"``, which become days since 1970. ``"|year"``, ``"|week"`` and
        ``"|day"`` after it add the sine and cosine of the place in that period.
    by_target : sequence of str, optional
        Columns of categories that each fit replaces by means of the target (scikit-learn's
        `TargetEncoder`), instead of an indicator column per category.
    unit : sequence of str, optional
        Columns of numbers with a sign or a unit around them, which is left out, as
        ``"COLUMN=UNIT"``, such as ``"price=$"``, perhaps with the decimal mark and the one
        between thousands: ``"price=€|,."``. Brackets around a number are a minus.
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
    group_by : str, optional
        Column of groups, which is not a feature: for ``splits = "official"`` there are five
        folds, each with all rows of a group or none.
    order_by : str, optional
        Column of numbers or dates: for ``splits = "official"`` there is one split, which tests
        the fifth of the rows that comes last, 50,000 at most.
    label : str, optional
        Name of the dataset; the file's name without its ending by default. In a suite
        file it is the label of the line.

    Returns
    -------
    Dataset
        Nominal attributes become indicators in the declared order. `X` is a CSR matrix where
        the rows are sparse; these have no `nominal`, `date`, `by_target`, `unit`, `group_by`
        and `order_by`.

    Raises
    ------
    DatasetError
        The file is not ARFF (with the line), or a column is not there, or is
        text.
    """
    file, what = existing(path)
    facts = _facts(path, label, group)
    with unchanged([file], what):
        if is_sparse_arff(file, what):
            asked = {"nominal": nominal, "date": date, "by_target": by_target, "unit": unit}
            refuse_for_sparse({**asked, "group_by": group_by, "order_by": order_by}, what)
            table = read_arff(file, what)
            data = to_dataset(table, what, target, tuple(ignore), task, weight, **facts)
            n_rows = table.n_rows
        else:
            rows = ArffRows(path)
            grouped = () if group_by is None else (group_by,)
            roles = Roles(target, (*ignore, *grouped), nominal, date, by_target, unit, task, weight)
            data, n_rows = encoded(rows, roles, facts)
            data = with_parts(data, rows, group_by, order_by, date)
    return with_splits(data, n_rows, splits, overlapping_splits)


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
    rows = SvmlightRows(path, n_features)
    with unchanged(rows.files, rows.what):
        X, labels = rows.read()
        facts = _facts(path, label, group)
        data = labelled(X, Column("label", "numeric", (), labels), rows.what, task, **facts)
    return with_splits(data, len(labels), splits, overlapping_splits)


def _facts(path: str, label: str, group: str) -> dict[str, str]:
    """Return the name, source and group of a dataset."""
    file = Path(path)
    if is_pattern(file.name):  # the files of a folder
        file = file.parent
    stem = file.name.partition(".")[0] or file.name
    return {"name": label or stem, "source": f"file {file.name}", "group": group}

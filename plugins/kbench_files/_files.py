"""A user's data: CSV, parquet, Excel, ARFF and svmlight (libsvm) files.

All give the same canonical form as OpenML's data: missing values stay NaN, columns of strings
become indicators. Without a task, a target with a non-integer number is that of a regression task.

Files except ARFF and Excel are read block by block, so that a table is never in memory as a
whole. The result does not depend on the blocks.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from kbench import Dataset, DatasetError
from kbench.parameters import is_pattern
from kbench.tables.arff import is_sparse_arff, read_arff
from kbench.tables.cell_values import Texts
from kbench.tables.table import Column, label_rows, to_dataset
from kbench.tables.table_rows import TableRows, reject_changes
from kbench_files import FORMS
from kbench_files._dialect import Dialect
from kbench_files._reading import existing_files

_OWN = {
    "csv": tuple(each.name for each in fields(Dialect)),
    "parquet": (),
    "excel": ("sheet", "header_row", "keep_totals", "na_values"),
    "arff": (),
    "svmlight": ("n_features",),
}
"""Parameters of `load_table` that only files of one form have."""

_OF_COLUMNS = ("target", "drop", "categorical", "date_formats", "target_encode", "strip_units")
_OF_COLUMNS += ("weight", "groups", "time_column")
"""Parameters of files whose columns have names."""


def load_table(
    path: str,
    target: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    date_formats: Sequence[str] = (),
    target_encode: Sequence[str] = (),
    strip_units: Sequence[str] = (),
    delimiter: str = ",",
    decimal: str = ".",
    thousands: str = "",
    encoding: str = "utf-8",
    na_values: Sequence[str] = (),
    header_row: str = "",
    keep_totals: bool = False,
    sheet: str = "",
    n_features: int | None = None,
    dataset_family: str = "",
    task: str | None = None,
    weight: str | None = None,
    split_file: str | None = None,
    overlapping_splits: bool = False,
    groups: str | None = None,
    time_column: str | None = None,
    label: str = "",
    form: str | None = None,
) -> Dataset:
    """Read a file of a user's data.

    Parameters
    ----------
    path : str
        The file. CSV and svmlight files may be compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``);
        the path of a parquet table may be a folder of its files, or a pattern such as
        ``parts/*.parquet``, which are read in the order of their names. ``.xlsx`` needs openpyxl
        (the extra ``excel``), ``.xls`` needs xlrd. ARFF is in UTF-8.
    target : str
        Name of the column to predict. Blanks around names and values are left out.
    drop : sequence of str, optional
        Columns to leave out.
    categorical : sequence of str, optional
        Columns of numbers that stand for categories. Columns of strings always do,
        in alphabetical order; declared categories keep theirs.
    date_formats : sequence of str, optional
        Columns of dates as ``"COLUMN=FORMAT"``, such as ``"joined=%d.%m.%Y"`` or
        ``"joined=ISO8601"``, which become days since 1970. ``"|year"``, ``"|week"`` and
        ``"|day"`` after it add the sine and cosine of the place in that period.
    target_encode : sequence of str, optional
        Columns of categories that each fit replaces by means of the target (scikit-learn's
        `TargetEncoder`), instead of an indicator column per category.
    strip_units : sequence of str, optional
        Columns of numbers with a sign or a unit around them, which is left out, as
        ``"COLUMN=UNIT"``, such as ``"price=$"``, optionally with the decimal mark and the one
        between thousands: ``"price=€|,."``. Brackets around a number are a minus.
    delimiter : str, default ","
        Separator of two values.
    decimal : {".", ","}
        Decimal mark.
    thousands : str, optional
        Separator of groups of three digits: ``"."``, ``","``, ``"'"``, or a blank.
    encoding : str, default "utf-8"
        Encoding of the file; a byte order mark is left out.
    na_values : sequence of str, optional
        Strings that stand for missing values, in addition to the usual ones.
    header_row : str, optional
        Row of the column names, such as ``"4"``, or the first and the last of two rows, ``"2-3"``.
        Rows above it, empty rows and columns, comments, and what stands below the table are left
        out then: totals, notes and other tables. By default all rows below the first one are read.
    keep_totals : bool, default False
        Read rows of totals too, if `header_row` is given.
    sheet : str, optional
        Name of the sheet; the first one by default.
    n_features : int, optional
        Number of columns; by default the largest that occurs.
    dataset_family : str, optional
        Family of the dataset, which is averaged before tests; its name by default.
    task : {"classification", "regression"}, optional
        By default regression if the target has a non-integer number.
    weight : str, optional
        Name of the column with the weights of the rows.
    split_file : str, optional
        File of the splits for ``cv = "official"`` in the protocol: CSV, also
        compressed, with a header, then one line per row of the data; one column
        per split, 1 if the row is tested and 0 if it is for training.
    overlapping_splits : bool, default False
        Rows may be tested in several splits, as in repeated holdouts.
    groups : str, optional
        Column of groups, which is not a feature: for ``cv = "official"`` there are five
        folds, each with all rows of a group or none.
    time_column : str, optional
        Column of numbers or dates: for ``cv = "official"`` there is one split, which tests
        the fifth of the rows that comes last, 50,000 at most.
    label : str, optional
        Name of the dataset; the file's name without its extension by default. In a suite
        file it is the label of the entry.
    form : {"csv", "parquet", "excel", "arff", "svmlight"}, optional
        By default the extension of the file decides.

    Returns
    -------
    Dataset
        Empty cells and the usual marks (NA, NaN, null, ?) are missing values. `X` is a CSR
        matrix if the rows of the file are sparse; these have no `categorical`, `date_formats`,
        `target_encode`, `strip_units`, `groups` and `time_column`. `X` is float32 if it holds
        all columns exactly by their types, as in parquet files: columns of float32 and float16,
        optionally next to integers of at most 16 bits.

    Raises
    ------
    DatasetError
        A file cannot be read, a column does not exist, or is not numeric; or the target is not
        that of the task.
    """
    # these import pandas, which the parameters do not need
    from kbench_files._csv import CsvRows
    from kbench_files._encoding import Roles, encode
    from kbench_files._splits import add_holdout_splits, add_splits
    from kbench_files._svmlight import SvmlightRows
    from kbench_files._typed import ENDINGS, ParquetRows, arff_frame, excel_rows, refuse_for_sparse

    form = find_form(path) if form is None else form
    files, what = existing_files(path, ENDINGS if form == "parquet" else ())
    facts = _facts(path, label, dataset_family)
    texts = Texts(decimal, thousands, tuple(na_values))
    roles = Roles(
        *(str(target), drop, categorical, date_formats, target_encode, strip_units),
        *(task, weight, texts),
    )
    with reject_changes(files, what):
        if form == "svmlight":
            X, labels = SvmlightRows(path, n_features).read()
            data = label_rows(X, Column("label", "numeric", (), labels), what, task, **facts)
            n_rows = len(labels)
        elif form == "arff" and is_sparse_arff(files[0], what):
            refuse_for_sparse({**vars(roles), "groups": groups, "time_column": time_column}, what)
            table = read_arff(files[0], what)
            data = to_dataset(table, what, roles.target, tuple(drop), task, weight, **facts)
            n_rows = table.n_rows
        else:
            dialect = Dialect(
                delimiter, decimal, thousands, encoding, tuple(na_values), header_row, keep_totals
            )
            rows: TableRows
            if form == "csv":
                rows = CsvRows(path, dialect, drop)
            elif form == "excel":
                rows = excel_rows(path, sheet, drop, header_row, keep_totals, na_values, False).rows
            else:
                rows = ParquetRows(path) if form == "parquet" else arff_frame(path)
            grouped = () if groups is None else (groups,)
            data, n_rows = encode(rows, replace(roles, drop=(*drop, *grouped)), facts)
            data = add_holdout_splits(data, rows, groups, time_column, date_formats)
    return add_splits(data, n_rows, split_file, overlapping_splits)


def _make_loader(form: str) -> Callable[[Callable[[], None]], Callable[..., Dataset]]:
    """Return a decorator that loads files of one form, with the parameters that these have.

    The decorated function gives the name and the summary. Both stand in the source, because
    `kbench list` reads them there.
    """
    foreign = {name for names in _OWN.values() for name in names}
    foreign |= {"form", *(_OF_COLUMNS if form == "svmlight" else ())}
    whole = inspect.signature(load_table)
    parameters = [
        each.replace(default=each.empty) if name == "target" else each
        for name, each in whole.parameters.items()
        if name in _OWN[form] or name not in foreign
    ]
    signature = whole.replace(parameters=parameters)

    def loader(described: Callable[[], None]) -> Callable[..., Dataset]:
        def load(*args: Any, **params: Any) -> Dataset:
            try:
                arguments = signature.bind(*args, **params).arguments
            except TypeError as error:  # it does not say of what
                raise TypeError(f"{load.__name__}() {error}") from None
            return load_table(**arguments, form=form)

        before, heading, after = inspect.cleandoc(load_table.__doc__ or "").partition(
            "\n\nReturns\n"
        )
        start, *entries = re.split(r"\n(?=\w+ : )", before)
        shown = [entry for entry in entries if entry.partition(" : ")[0] in signature.parameters]
        start = start.replace("Read a file of a user's data.", described.__doc__ or "")
        load.__doc__ = "\n".join([start, *shown]) + heading + after
        load.__name__ = load.__qualname__ = described.__name__
        vars(load)["__signature__"] = signature
        return load

    return loader


@_make_loader("csv")
def load_csv() -> None:
    """Load a CSV file with a header line."""


@_make_loader("parquet")
def load_parquet() -> None:
    """Load a Parquet file, or several files of one table."""


@_make_loader("excel")
def load_excel() -> None:
    """Load a sheet of an Excel file with a header row."""


@_make_loader("arff")
def load_arff() -> None:
    """Load a dense or sparse ARFF file."""


@_make_loader("svmlight")
def load_svmlight() -> None:
    """Load a file in svmlight (LIBSVM) format."""


def find_form(path: str) -> str:
    """Return the form of a file by its extension, after which one of compression may follow."""
    endings = {ending: form for form, endings in FORMS.items() for ending in endings}
    forms = [endings[end.lower()] for end in Path(path).suffixes if end.lower() in endings]
    if not forms:
        raise DatasetError(f"file {path!r}: its name must end in one of {', '.join(endings)}")
    return forms[-1]


def _facts(path: str, label: str, dataset_family: str) -> dict[str, str]:
    file = Path(path).parent if is_pattern(Path(path).name) else Path(path)
    stem = file.name.partition(".")[0] or file.name
    return {"name": label or stem, "source": f"file {file.name}", "dataset_family": dataset_family}

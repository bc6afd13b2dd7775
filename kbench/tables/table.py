"""Typed columns, and the canonical form of datasets."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kbench.errors import DatasetError
from kbench.messages import listed, printable
from kbench.records import Dataset
from kbench.tables.limits import max_bytes

MAX_NUMERIC_LABELS = 100
"""Different whole numbers up to which a numeric target is taken for classes."""

MANY_CLASSES = 50
"""Classes beyond which most of them must have several rows."""

ROWS = 4096
"""Rows of the canonical form that are filled together."""


@dataclass
class Column:
    """One attribute.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"numeric", "nominal", "string"}
        "string" is free text (or a date), which is not a feature.
    categories : sequence of str
        Values of a nominal column, in the order in which they are declared.
    values : ndarray, optional
        float64 with NaN for missing, of a numeric column; whole numbers that
        point into `categories` with -1 for missing, of a nominal one; both of
        shape (n_rows,). A list of str or None, of a string column. None in a
        sparse table.
    """

    name: str
    kind: Literal["numeric", "nominal", "string"]
    categories: Sequence[str] = ()
    values: Any = None


@dataclass
class Table:
    """Columns of equal length.

    Parameters
    ----------
    columns : list of Column
        The attributes.
    n_rows : int
        Number of rows.
    sparse : scipy CSC matrix, optional
        The values of a sparse table, shape (n_rows, n_columns). Values that
        are not stored are 0, or the first category.
    """

    columns: list[Column]
    n_rows: int
    sparse: Any = field(default=None, repr=False)


def to_dataset(
    table: Table,
    what: str,
    target: str,
    ignore: Sequence[str] = (),
    **facts: Any,
) -> Dataset:
    """Bring a table to kbench's canonical form.

    Numeric columns become float64; nominal ones become one indicator column
    per declared value, in that order, all of them NaN where the value is
    missing. The target becomes 0..k-1 in the order of its declared values, of
    which those that no row has are left out. Rows without a target are left
    out; `row_ids` then has the remaining ones.

    Parameters
    ----------
    table : Table
        The columns.
    what : str
        The dataset, for messages.
    target : str
        Name of the column to predict.
    ignore : sequence of str
        Columns that are neither target nor feature: row numbers, names.
    **facts
        Further fields of `Dataset`.

    Returns
    -------
    Dataset
        `X` is a CSR matrix where the table is sparse.

    Raises
    ------
    DatasetError
        A column is missing, is text, or is not a classification target; or the
        result would be larger than ``KBENCH_MAX_DATASET_MB``.
    """
    names = [column.name for column in table.columns]
    if len(set(names)) != len(names):
        twice = min(name for name in names if names.count(name) > 1)
        raise DatasetError(f"{what}: several columns are named {twice!r}")
    for name in (target, *ignore):
        if name not in names:
            raise DatasetError(f"{what}: {no_column(name, names)}")
    if target in ignore:
        raise DatasetError(f"{what}: the target {target!r} is among the ignored columns")
    left_out = {target, *ignore}
    features = [j for j, name in enumerate(names) if name not in left_out]
    texts = [names[j] for j in features if table.columns[j].kind == "string"]
    if texts:
        raise DatasetError(
            f"{what}: text cannot be a feature: {listed(texts)}. Leave these columns out with "
            f"ignore = {texts[:3]!r} (on the command line: {_ignoring(texts[:3])})."
        )
    if not features:
        raise DatasetError(f"{what}: there is no column beside the target")

    y, target_names = _labels(_column_values(table, names.index(target)), what)
    labelled = np.flatnonzero(y >= 0)
    y = y[labelled]
    # None where every row has a label
    kept = None if len(labelled) == table.n_rows else labelled

    feature_names: list[str] = []
    feature_kinds: list[str] = []
    for j in features:
        column = table.columns[j]
        if column.kind == "numeric":
            feature_names.append(column.name)
        else:
            feature_names += [f"{column.name}={value}" for value in column.categories]
        feature_kinds += [column.kind] * (len(feature_names) - len(feature_kinds))
    shown: dict[str, Any] = {
        key: printable(value) if isinstance(value, str) else value for key, value in facts.items()
    }
    build = _dense if table.sparse is None else _sparse
    X = build(table, features, len(feature_names), kept, what)
    return Dataset(
        X=X,
        y=y,
        feature_names=list(map(printable, feature_names)),
        feature_kinds=feature_kinds,
        target_names=list(map(printable, target_names)),
        row_ids=kept,
        **shown,
    )


def _dense(table: Table, features: list[int], width: int, kept: Any, what: str) -> np.ndarray:
    n = table.n_rows if kept is None else len(kept)
    _check_size(n * width * 8, what, n, width, table)
    X = np.zeros((n, width))
    # some rows at a time: column by column, every value would be another page
    for first in range(0, n, ROWS):
        rows = slice(first, first + ROWS)
        _fill(X[rows], [table.columns[j] for j in features], rows if kept is None else kept[rows])
    return X


def _fill(X: np.ndarray, columns: list[Column], rows: Any) -> None:
    start = 0
    for column in columns:
        values = column.values[rows]
        if column.kind == "numeric":
            X[:, start] = values
            start += 1
            continue
        present = np.flatnonzero(values >= 0)
        X[present, start + values[present]] = 1.0
        stop = start + len(column.categories)
        if len(present) < len(values):
            X[values < 0, start:stop] = np.nan
        start = stop


def _sparse(table: Table, features: list[int], width: int, kept: Any, what: str) -> Any:
    import scipy.sparse

    parts = []
    n_stored = table.sparse.nnz
    for j in features:
        column = table.columns[j]
        if column.kind == "numeric":
            parts.append(table.sparse[:, [j]])
            continue
        codes = _column_values(table, j).values
        k = len(column.categories)
        present, missing = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        n_stored += len(present) + k * len(missing)
        _check_size(n_stored * 12, what, table.n_rows, width, table)
        rows = np.concatenate([present, np.repeat(missing, k)])
        places = np.concatenate([codes[present], np.tile(np.arange(k), len(missing))])
        values = np.repeat([1.0, np.nan], [len(present), k * len(missing)])
        indicators = scipy.sparse.csc_matrix((values, (rows, places)), shape=(table.n_rows, k))
        parts.append(indicators)
    # most sparse tables have numeric columns only: do not cut them up
    if all(table.columns[j].kind == "numeric" for j in features):
        X = table.sparse[:, features].tocsr()
    else:
        X = scipy.sparse.hstack(parts, format="csr")
    X = X if kept is None else X[kept]
    X.eliminate_zeros()
    return X


def _column_values(table: Table, j: int) -> Column:
    """Return a column with its values, taken out of the matrix where there is one."""
    column = table.columns[j]
    if table.sparse is None:
        return column
    values = table.sparse[:, [j]].toarray().ravel()
    if column.kind == "nominal":
        values = np.where(np.isnan(values), -1, values).astype(np.int64)
    return Column(column.name, column.kind, column.categories, values)


def _labels(column: Column, what: str) -> tuple[np.ndarray, list[str]]:
    """Number the classes that occur; -1 where the label is missing."""
    if column.kind == "nominal":
        names, codes = list(column.categories), np.asarray(column.values, dtype=np.int64)
    elif column.kind == "string":
        names = sorted({value for value in column.values if value is not None})
        number = {name: code for code, name in enumerate(names)}
        codes = np.array([number.get(value, -1) for value in column.values], dtype=np.int64)
    else:
        values = column.values
        present = ~np.isnan(values)
        different = np.unique(values[present])
        if np.any(different != np.round(different)) or len(different) > MAX_NUMERIC_LABELS:
            raise DatasetError(
                f"{what}: the target {column.name!r} has {len(different)} different numbers and "
                "is not a class label; kbench compares classifiers. Name another target."
            )
        names = [f"{value:.0f}" for value in different]
        codes = np.where(present, np.searchsorted(different, values), -1)
    occurring = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(names)))
    renumbered = np.full(len(names) + 1, -1, dtype=np.int64)  # the last one is for -1
    renumbered[occurring] = np.arange(len(occurring))
    if len(occurring) < 2:
        raise DatasetError(
            f"{what}: the target {column.name!r} has {len(occurring)} "
            f"{'class' if len(occurring) == 1 else 'classes'}; classification needs at least 2"
        )
    n_labelled = int(np.count_nonzero(codes >= 0))
    if len(occurring) > max(MANY_CLASSES, n_labelled // 2):
        raise DatasetError(
            f"{what}: the target {column.name!r} has {len(occurring):,} different labels in "
            f"{n_labelled:,} rows and is not a class label; kbench compares classifiers. "
            "Name another target."
        )
    return renumbered[codes], [names[k] for k in occurring]


def _check_size(n_bytes: int, what: str, n: int, width: int, table: Table) -> None:
    if n_bytes > max_bytes():
        widest = max(table.columns, key=lambda column: len(column.categories))
        n_values = len(widest.categories)
        whose = f" ({widest.name!r} alone has {n_values:,} categories)" if n_values > 1 else ""
        raise DatasetError(
            f"{what}: {n:,} rows with {width:,} columns{whose} need {n_bytes / 2**20:,.0f} MB, "
            f"more than the {max_bytes() / 2**20:,.0f} MB allowed. Leave columns out with "
            "ignore = [...], or raise KBENCH_MAX_DATASET_MB."
        )


def no_column(name: str, names: Sequence[str]) -> str:
    """Describe a missing column: a close name, and all names."""
    by_case = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(str(name).casefold(), by_case, n=1)
    hint = f"; did you mean {by_case[close[0]]!r}?" if close else "."
    return f"there is no column {name!r}{hint} Columns: {listed(names)}."


def _ignoring(names: Sequence[str]) -> str:
    return " ".join(f"--ignore {shlex.quote(name)}" for name in names)

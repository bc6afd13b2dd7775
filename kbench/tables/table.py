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
from kbench.tables.targets import target_of, weights_of

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
    task: str | None = None,
    weight: str | None = None,
    **facts: Any,
) -> Dataset:
    """Bring a table to kbench's canonical form.

    Numeric columns become float64; nominal ones become one indicator column
    per declared value, in that order, all of them NaN where the value is
    missing. The target becomes labels or numbers, as `target_of` says. Rows
    without a label are left out; `row_ids` then has the remaining ones.

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
    task : {"classification", "regression"}, optional
        By default regression if the target has a number that is not whole.
    weight : str, optional
        Name of the column with the weights of the rows.
    **facts
        Further fields of `Dataset`.

    Returns
    -------
    Dataset
        `X` is a CSR matrix where the table is sparse.

    Raises
    ------
    DatasetError
        A column is missing, is text, or has other values than targets or weights may
        have; or the result would be larger than ``KBENCH_MAX_DATASET_MB``.
    """
    names = [column.name for column in table.columns]
    if len(set(names)) != len(names):
        twice = min(name for name in names if names.count(name) > 1)
        raise DatasetError(f"{what}: several columns are named {twice!r}")
    weights = () if weight is None else (weight,)
    for name in (target, *weights, *ignore):
        if name not in names:
            raise DatasetError(f"{what}: {no_column(name, names)}")
    if target in ignore:
        raise DatasetError(f"{what}: the target {target!r} is among the ignored columns")
    if weight is not None and weight in (target, *ignore):
        other = "the target too" if weight == target else "among the ignored columns"
        raise DatasetError(f"{what}: the column of weights {weight!r} is {other}")
    left_out = {target, *weights, *ignore}
    features = [j for j, name in enumerate(names) if name not in left_out]
    texts = [names[j] for j in features if table.columns[j].kind == "string"]
    if texts:
        raise DatasetError(
            f"{what}: text cannot be a feature: {listed(texts)}. Leave these columns out with "
            f"ignore = {texts[:3]!r} (on the command line: {_ignoring(texts[:3])})."
        )
    if not features:
        raise DatasetError(f"{what}: there is no column beside the target")

    found = target_of(_column_values(table, names.index(target)), what, task)
    y, kept, sample_weight = found.values, None, None
    if found.task == "classification" and np.any(y < 0):
        kept = np.flatnonzero(y >= 0)
        y = y[kept]
    if weight is not None:
        sample_weight = weights_of(_column_values(table, names.index(weight)), what)
        sample_weight = sample_weight if kept is None else sample_weight[kept]

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
        target_names=list(map(printable, found.names)),
        row_ids=kept,
        task=found.task,
        sample_weight=sample_weight,
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

"""Typed columns, names that occur twice, free text, and the canonical form of datasets."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kbench.errors import DatasetError, DatasetParameterError
from kbench.messages import list_some, option, plural, printable
from kbench.records import Dataset, Split
from kbench.tables.limits import GrowingArray, GrowingRows, max_bytes
from kbench.tables.target_columns import Target, read_target, read_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ROWS = 4096
"""Rows of the canonical form that are filled together, at most."""

VALUES = 1 << 22
"""Values of the canonical form that are filled together, at most."""


TEXT_ABOVE = 50
"""A column with more different strings than this, and more than half as many as
rows, is taken for text."""


def find_repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in alphabetical order.

    >>> find_repeated(["b", "a", "b"])
    ['b']
    """
    return sorted(name for name, n in Counter(names).items() if n > 1)


@dataclass
class Column:
    """One attribute."""

    name: str
    kind: Literal["numeric", "nominal", "string", "date"]
    """A "string" is free text (or a date in an ARFF file), a "date" a date or time; neither is a
    feature."""
    categories: Sequence[str] = ()
    """Values of a nominal column, in the order in which they are declared."""
    values: Any = None
    """float64 with NaN for missing, of a numeric column; integers that point into
    `categories` with -1 for missing, of a nominal one; both of shape (n_rows,). A list of str
    or None, of a string column. None in a sparse table, and for columns that are read block by
    block."""
    dtype: Any = np.float64
    """Type of the numbers of a numeric column, as the file has them."""
    note: str = ""
    """What messages add to the name."""
    target_encoded: bool = False
    """The categories become one column of their numbers, which each fit replaces by means of the
    target."""

    @property
    def is_one(self) -> bool:
        """Whether this is one column of the canonical form."""
        return self.kind == "numeric" or self.target_encoded


@dataclass
class Table:
    """Columns of equal length."""

    columns: list[Column]
    n_rows: int
    sparse: Any = field(default=None, repr=False)
    """The values of a sparse table, shape (n_rows, n_columns). Values that are not stored are 0,
    or the first category."""
    read: Callable[[Sequence[str]], Iterator[list[np.ndarray]]] | None = None
    """``read(names)`` yields lists with the values of these columns, for consecutive rows; of a
    table that is not in memory."""

    def blocks(self, columns: Sequence[Column]) -> Iterator[list[np.ndarray]]:
        """Yield the values of columns of a dense table, for consecutive rows."""
        if self.read is not None:
            yield from self.read([column.name for column in columns])
            return
        for start in range(0, self.n_rows, ROWS):
            yield [column.values[start : start + ROWS] for column in columns]


def to_dataset(
    table: Table,
    origin: str,
    target: str,
    ignore: Sequence[str] = (),
    task: str | None = None,
    weight: str | None = None,
    **facts: Any,
) -> Dataset:
    """Bring a table to kbench's canonical form, with a CSR matrix where the table is sparse.

    `X` is float32 where numpy promotes the types of all numeric columns to float32 or float16, so
    that it holds each value exactly, and float64 otherwise. Nominal columns become one indicator
    column per declared value, in that order, all of them NaN if the value is missing; or one column
    of kind "target_encoded" with the numbers of the values. The target becomes labels or numbers,
    as `read_target` says. Rows without a label are left out; `row_ids` then has the remaining ones.

    Raises DatasetError if a column is missing, is not numeric, or has other values than targets or
    weights may have; or the result would be larger than ``KBENCH_MAX_DATASET_MIB``.

    `origin` is the dataset, for messages; columns to `ignore` are neither target nor feature, such
    as row numbers and names; `facts` are further fields of `Dataset`.
    """
    names = [column.name for column in table.columns]
    check_columns(names, origin, target, ignore, weight)
    left_out = {target, weight, *ignore}
    features = [j for j, name in enumerate(names) if name not in left_out]
    texts = [names[j] for j in features if table.columns[j].kind == "string"]
    if texts:
        notes = "".join(table.columns[j].note for j in features if names[j] in texts[:1])
        raise DatasetError(
            f"{origin}: text cannot be a feature: {list_some(texts)}{notes}. Leave these columns "
            f"out with {option('drop', texts[:3])}."
        )
    if dates := [names[j] for j in features if table.columns[j].kind == "date"]:
        specs = [f"{name}=ISO8601" for name in dates]
        raise DatasetError(
            f"{origin}: dates cannot be features as they are: {list_some(dates)}. Read them as "
            f"days since 1970 with {option('date', specs[:3])}, or leave them out with "
            f"{option('drop', dates[:3])}."
        )
    if not features:
        raise DatasetError(f"{origin}: there is no column other than the target")

    labels = read_target(column_values(table, names.index(target)), origin, task)
    rows = _labelled_rows(labels)
    sample_weight = None
    if weight is not None:
        sample_weight = read_weights(column_values(table, names.index(weight)), origin)
        sample_weight = sample_weight if rows is None else sample_weight[rows]

    feature_names: list[str] = []
    feature_kinds: list[str] = []
    for j in features:
        column = table.columns[j]
        if column.is_one:
            feature_names.append(column.name)
            feature_kinds.append("target_encoded" if column.target_encoded else "numeric")
        else:
            feature_names += [f"{column.name}={value}" for value in column.categories]
            feature_kinds += ["onehot"] * len(column.categories)
    build = _dense if table.sparse is None else _sparse
    X = build(table, features, len(feature_names), rows, origin)
    made = _dataset(X, labels, rows, feature_names, facts)
    return replace(made, feature_kinds=feature_kinds, sample_weight=sample_weight, checksum="")


GROUP_FOLDS = 5
"""Folds that keep groups together."""


def split_by_group(dataset: Dataset, groups: np.ndarray, what: str) -> Dataset:
    """Return a dataset with splits that keep the rows of one group together.

    `groups` has one number per row. Raises DatasetError if there are fewer groups than folds.
    """
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    n_groups = len(np.unique(groups))
    if n_groups < GROUP_FOLDS:
        raise DatasetError(
            f"{what} has {plural(n_groups, 'value')}; {GROUP_FOLDS} folds need at least as many"
        )
    folds = (
        StratifiedGroupKFold(GROUP_FOLDS, shuffle=True, random_state=0)
        if dataset.task == "classification"
        else GroupKFold(GROUP_FOLDS)
    ).split(np.zeros(len(groups)), dataset.y, groups)
    splits = [Split(index, train, test) for index, (train, test) in enumerate(folds)]
    return replace(dataset, splits=splits, checksum="")


def check_columns(
    names: Sequence[str], origin: str, target: str, ignore: Sequence[str], weight: str | None
) -> None:
    """Reject names that occur twice, missing columns, and roles that exclude each other.

    The parameters are those of `to_dataset`.
    """
    if twice := find_repeated(names):
        raise DatasetError(f"{origin}: several columns are named {twice[0]!r}")
    weights = () if weight is None else (weight,)
    for name in (target, *weights, *ignore):
        if name not in names:
            raise DatasetParameterError(f"{origin}: {no_column(name, names)}")
    if target in ignore:
        raise DatasetParameterError(f"{origin}: the target {target!r} is among the ignored columns")
    if weight is not None and weight in (target, *ignore):
        other = "the target too" if weight == target else "among the ignored columns"
        raise DatasetParameterError(f"{origin}: the column of weights {weight!r} is {other}")


def label_rows(X: Any, y: Column, origin: str, task: str | None = None, **facts: Any) -> Dataset:
    """Return the dataset of a matrix whose columns have no names; it has the labelled rows."""
    labels = read_target(y, origin, task)
    return _dataset(X, labels, _labelled_rows(labels), (), facts)


def _labelled_rows(labels: Target) -> np.ndarray | None:
    if labels.task == "classification" and np.any(labels.values < 0):
        return np.flatnonzero(labels.values >= 0)
    return None


def _dataset(
    X: Any,
    labels: Target,
    rows: np.ndarray | None,
    feature_names: Sequence[str],
    facts: Mapping[str, Any],
) -> Dataset:
    shown: dict[str, Any] = {
        key: printable(value) if isinstance(value, str) else value for key, value in facts.items()
    }
    return Dataset(
        X=X,
        y=labels.values if rows is None else labels.values[rows],
        feature_names=list(map(printable, feature_names)),
        target_names=list(map(printable, labels.names)),
        row_ids=rows,
        task=labels.task,
        **shown,
    )


def _dense(table: Table, features: list[int], width: int, labelled: Any, origin: str) -> np.ndarray:
    columns = [table.columns[j] for j in features]
    types = [column.dtype for column in columns if column.kind == "numeric"]
    common = np.result_type(*types) if types else np.dtype(np.float64)
    dtype = np.dtype(np.float32 if common in (np.float16, np.float32) else np.float64)
    n = table.n_rows if labelled is None else len(labelled)
    _check_size(n * width * dtype.itemsize, origin, n, width, table)
    X = GrowingArray(dtype, width)
    step = max(1, min(ROWS, VALUES // width))
    start = 0
    for values in table.blocks(columns):
        n_rows = len(values[0])
        # few rows at a time: column by column, every value would be another page
        for first in range(0, n_rows, step):
            parts = [part[first : first + step] for part in values]
            block = np.zeros((len(parts[0]), width), dtype, order="F")
            _fill(block, columns, parts)
            if labelled is not None:
                at = start + first
                span = slice(*np.searchsorted(labelled, (at, at + len(block))))
                block = block[labelled[span] - at]
            X.append(block)
        start += n_rows
    return X.array()


def _fill(X: np.ndarray, columns: Sequence[Column], blocks: Sequence[np.ndarray]) -> None:
    start = 0
    for column, values in zip(columns, blocks, strict=True):
        if column.is_one:
            X[:, start] = (
                values if column.kind == "numeric" else np.where(values < 0, np.nan, values)
            )
            start += 1
            continue
        present = np.flatnonzero(values >= 0)
        X[present, start + values[present]] = 1.0
        stop = start + len(column.categories)
        if len(present) < len(values):
            X[values < 0, start:stop] = np.nan
        start = stop


def _sparse(table: Table, features: list[int], width: int, labelled: Any, origin: str) -> Any:
    made = GrowingRows()
    rows = np.arange(table.n_rows) if labelled is None else labelled
    for some in np.array_split(rows, 16 * table.sparse.nnz // VALUES + 1):
        part = replace(table, n_rows=len(some), sparse=table.sparse[some].tocsc())

        def check(n_stored: int) -> None:
            _check_size((made.n_stored + n_stored) * 12, origin, len(rows), width, table)

        made.append(_sparse_block(part, features, check))
    return made.matrix(width)


def _sparse_block(table: Table, features: list[int], check: Callable[[int], None]) -> "csr_matrix":
    import scipy.sparse

    parts = []
    n_stored = table.sparse.nnz
    for j in features:
        column = table.columns[j]
        if column.kind == "numeric":
            parts.append(table.sparse[:, [j]])
            continue
        codes = column_values(table, j).values
        k = len(column.categories)
        present, missing = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        n_stored += len(present) + k * len(missing)
        check(n_stored)
        rows = np.concatenate([present, np.repeat(missing, k)])
        places = np.concatenate([codes[present], np.tile(np.arange(k), len(missing))])
        values = np.repeat([1.0, np.nan], [len(present), k * len(missing)])
        parts.append(scipy.sparse.csc_matrix((values, (rows, places)), shape=(table.n_rows, k)))
    # most sparse tables have numeric columns only: do not cut them up
    if all(table.columns[j].kind == "numeric" for j in features):
        X = table.sparse[:, features].tocsr()
    else:
        X = scipy.sparse.hstack(parts, format="csr")
    X.eliminate_zeros()
    return X


def column_values(table: Table, j: int) -> Column:
    """Return a column with its values, taken out of the matrix or the records of the table."""
    column = table.columns[j]
    if table.sparse is None:
        if isinstance(column.values, np.ndarray):  # a copy, or records would be kept for it
            return replace(column, values=np.ascontiguousarray(column.values))
        return column
    values = table.sparse[:, [j]].toarray().ravel()
    if column.kind == "nominal":
        values = np.where(np.isnan(values), -1, values).astype(np.int64)
    return Column(column.name, column.kind, column.categories, values)


def _check_size(n_bytes: int, origin: str, n: int, width: int, table: Table) -> None:
    if n_bytes > max_bytes():
        widest = max(table.columns, key=lambda column: len(column.categories))
        n_values = len(widest.categories)
        whose = ""
        if n_values > 1:
            whose = f" ({widest.name!r} alone has {n_values:,} categories{widest.note})"
        raise DatasetError(
            f"{origin}: {n:,} rows with {width:,} columns{whose} need {n_bytes / 2**20:,.0f} MiB, "
            f"more than the {max_bytes() / 2**20:,.0f} MiB allowed. Leave columns out with "
            f"{option('drop', ['COLUMN'])}, or raise KBENCH_MAX_DATASET_MIB."
        )


def no_column(name: str, names: Sequence[str]) -> str:
    """Describe a missing column: a close name, and all names."""
    by_case = {column.casefold(): column for column in names}
    close = difflib.get_close_matches(str(name).casefold(), by_case, n=1)
    hint = f"; did you mean {by_case[close[0]]!r}?" if close else "."
    return f"there is no column {name!r}{hint} Columns: {list_some(names)}."

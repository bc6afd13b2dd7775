"""`kbench.find_leakage`: the check for Python."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbench.errors import DatasetError
from kbench_leakage.check import run_split
from kbench_leakage.findings import Leakage

TEST_SHARE = 0.2
"""Fraction of the rows in the test set if no split is given."""


def find_leakage(
    X: Any,
    y: Any,
    train: Any = None,
    test: Any = None,
    *,
    task: str | None = None,
    names: Sequence[str] = (),
    along: Sequence[str] = (),
    seed: int = 0,
) -> Leakage:
    """Find columns and rows that predict the target of test rows without a model.

    The test rows of a split are predicted by each column alone; by sums and differences of two
    columns, and a column within equal values of another one; by the adjacent training rows in the
    file; and by training rows with the same inputs, or inputs that differ in one column. Only
    training rows are used for fitting. A finding may be legitimate if the columns or rows are
    available at prediction time.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame, shape (n_rows, n_columns)
        Missing values are NaN. Columns of a DataFrame that are not numbers or dates are categories.
    y : array-like, shape (n_rows,)
        Classes or numbers.
    train, test : array-like of int, optional
        Row indices of the training set and the test set; by default a random 80/20 split.
    task : {"classification", "regression"}, optional
        By default regression if `y` has a value that is not an integer.
    names : sequence of str, optional
        A name for each column.
    along : sequence of str, optional
        Columns to sort the rows by before adjacent rows are compared, such as date and hour of a
        shuffled file.
    seed : int, default 0
        Seed for samples of rows, and for the default split.

    Returns
    -------
    Leakage
        `signs` are the suspicious findings, `measured` the best finding of each kind.

    Raises
    ------
    DatasetError
        The shapes do not match, or an argument is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> print(find_leakage(X, X[:, 0] + X[:, 1]))
    x0 + x1 alone predicts the target of test rows: R2 1.000
    >>> print(find_leakage(X, rng.normal(size=500)))
    no evidence of leakage was found
    """
    names, kinds, X = _matrix(X, names)
    if task not in (None, "classification", "regression"):
        raise DatasetError(f"task must be classification or regression, got {task!r}")
    y, is_numeric = _target(y, task)
    n = X.shape[0]
    if len(y) != n:
        raise DatasetError(f"X has {n:,} rows, but y has {len(y):,}")
    if (train is None) != (test is None):
        raise DatasetError("give both train and test, or neither")
    if train is None:
        shuffled = np.random.default_rng(seed).permutation(n)
        train, test = np.split(shuffled, [n - int(TEST_SHARE * n)])
    train, test = _rows(train, n, "train"), _rows(test, n, "test")
    if len(np.intersect1d(train, test)):
        raise DatasetError("train and test have rows in common")
    if along:
        order = _order(X, names, [along] if isinstance(along, str) else along)
        X, y = X[order], y[order]
        place = np.empty(n, dtype=np.intp)
        place[order] = np.arange(n)
        train, test = place[train], place[test]
    return run_split(X, y, train, test, is_numeric, names, kinds, seed)


def _matrix(X: Any, names: Sequence[str]) -> tuple[list[str], list[str], Any]:
    """Return names, kinds and a matrix of numbers."""
    if hasattr(X, "dtypes") and hasattr(X, "iloc"):
        columns = [_column(X.iloc[:, j]) for j in range(X.shape[1])]
        matrix = np.column_stack([each for each, _ in columns]) if columns else np.empty(X.shape)
        return [str(name) for name in X.columns], [kind for _, kind in columns], matrix
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    else:
        try:
            X = np.asarray(X, dtype=None if hasattr(X, "dtype") else float)
            if X.dtype.kind == "c":
                raise ValueError("they are complex")
            X = X if X.dtype.kind == "f" else X.astype(float)
        except (TypeError, ValueError) as error:
            raise DatasetError(
                f"X: all values must be numbers ({error}); a DataFrame may have strings and dates"
            ) from None
    if len(X.shape) != 2:
        raise DatasetError(f"X must have two dimensions, got the shape {X.shape}")
    if names and len(names) != X.shape[1]:
        raise DatasetError(f"X has {X.shape[1]:,} columns, but there are {len(names):,} names")
    found = [str(name) for name in names] or [f"x{j}" for j in range(X.shape[1])]
    return found, ["numeric"] * X.shape[1], X


def _column(column: Any) -> tuple[np.ndarray, str]:
    """Return a column of a DataFrame as numbers, and its kind."""
    import pandas

    kind = getattr(column.dtype, "kind", "O")
    if kind in "fiub":
        return column.to_numpy(dtype=float, na_value=np.nan), "numeric"
    if kind in "mM":  # dates and durations, in nanoseconds
        numbers = column.astype("int64").to_numpy().astype(float)
        return np.where(column.isna(), np.nan, numbers), "numeric"
    codes = pandas.factorize(column.astype(str))[0].astype(float)
    return np.where(column.isna(), np.nan, codes), "target_encoded"


def _target(y: object, task: str | None) -> tuple[np.ndarray, bool]:
    """Return targets, and whether they are numbers; classes are numbered."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise DatasetError(f"y must have one dimension, got the shape {y.shape}")
    if y.dtype.kind in "mMc":
        raise DatasetError(f"y must be numbers or classes, got values of the type {y.dtype}")
    is_number = y.dtype.kind in "fiub"
    if task == "regression" and not is_number:
        try:
            return y.astype(float), True
        except (TypeError, ValueError):
            raise DatasetError("y: regression needs numbers") from None
    if task is None:
        finite = y[np.isfinite(y)] if y.dtype.kind == "f" else np.empty(0)
        task = "regression" if (finite != np.floor(finite)).any() else "classification"
    if task == "regression":
        return y.astype(float), True
    return np.unique(y if is_number else y.astype(str), return_inverse=True)[1].reshape(-1), False


def _rows(rows: object, n: int, kind: str) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.size == 0:
        return np.empty(0, dtype=np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        raise DatasetError(f"{kind} must be numbers of rows, from 0 to {n - 1:,}")
    if len(np.unique(rows)) < len(rows):
        raise DatasetError(f"{kind} has duplicate rows")
    return np.asarray(rows, dtype=np.intp)


def _order(X: Any, names: Sequence[str], columns: Sequence[str]) -> np.ndarray:
    """Return the rows in the order of some columns, the first of which counts most."""
    if unknown := [name for name in columns if name not in names]:
        raise DatasetError(f"along: there is no column {unknown[0]!r}")
    values = X[:, [list(names).index(name) for name in columns]]
    values = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(np.lexsort(values.T[::-1]))

"""Columns of a user's table that tell the target in other words."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import numpy as np

from kbench.features import DataCache
from kbench.records import DatasetFacts

LOOKED_AT = 1000
"""Rows by which columns are chosen that are looked at in all rows."""

ALIKE = 1e-9
"""Share of the deviations of a column that is not explained by the target, at most."""


def leaks(facts: DatasetFacts, columns: Sequence[str]) -> list[str]:
    """Name columns of a dense table in the cache that repeat the target, in a notice.

    A column repeats classes where it has one value for each of them, whatever the row, and
    numbers where it is a multiple of them, perhaps shifted. `columns` are those of the file.
    """
    if facts.sparse or not facts.feature_names:
        return []
    data = DataCache().load_for(facts)
    found = _repeating(data.X, np.asarray(data.y), facts.task == "regression")
    named = {_column_of(facts.feature_names[j], columns): None for j in found}
    if not named:
        return []
    names = list(named)
    shown = ", ".join(map(repr, names[:3])) + f" and {len(names) - 3:,} more" * (len(names) > 3)
    options = " ".join(f"--ignore {quote(name)}" for name in names[:3])
    column, tells, it, leaves = "column", "tells", "it is", "leaves it"
    if len(names) > 1:
        column, tells, it, leaves = "columns", "tell", "they are", "leave them"
    return [
        f"{column} {shown} {tells} the target of every row: where {it} not known before the "
        f"target is, {options} {leaves} out"
    ]


def _repeating(X: np.ndarray, y: np.ndarray, is_numeric: bool) -> np.ndarray:
    """Return the columns that repeat the target."""
    test = _is_multiple if is_numeric else _is_constant_by_class
    # rows from the whole table: the first ones may be of one class
    rows = np.linspace(0, len(y) - 1, min(LOOKED_AT, len(y))).astype(int)
    chosen = np.flatnonzero(test(np.asarray(X[np.unique(rows)], dtype=float), y[np.unique(rows)]))
    is_all = [bool(test(np.asarray(X[:, [j]], dtype=float), y)[0]) for j in chosen]
    return np.asarray(chosen[np.array(is_all, dtype=bool)])


def _is_constant_by_class(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Tell which columns have one value in each class, and not the same in all."""
    is_constant = np.ones(X.shape[1], dtype=bool)
    for label in np.unique(y):
        part = X[y == label]
        is_constant &= (part == part[0]).all(axis=0)
    return np.asarray(is_constant & (X[0] != X).any(axis=0))


def _is_multiple(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Tell which columns are multiples of a target, perhaps shifted."""
    centred, target = X - X.mean(axis=0), y - y.mean()
    size = (centred**2).sum(axis=0) * (target**2).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        unexplained = 1.0 - (centred * target[:, None]).sum(axis=0) ** 2 / size
    return np.asarray(unexplained <= ALIKE)  # false of NaN


def _column_of(feature: str, columns: Sequence[str]) -> str:
    """Return the column of the file that an encoded column comes from."""
    fitting = [name for name in columns if feature == name or feature.startswith(f"{name}=")]
    return max(fitting, key=len, default=feature)

"""The columns of a user's table become numbers: in training, and in exported models.

This module leaves with an exported model: it needs neither kbench nor pandas there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from kbench.tables.cell_values import TableColumns


class TableEncoder(TransformerMixin, TableColumns, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, as its dataset was.

    Numbers pass; a nominal column becomes one indicator column per category, in order, all of them
    NaN if the value is missing and 0 if the value is not among the categories.

    Parameters
    ----------
    columns : sequence of (str, sequence of str or None)
        Name and categories of each column; None for a column of numbers or dates.
    coded : sequence of str, optional
        Columns whose categories become one column of their numbers.
    dates : sequence of str, optional
        Columns of dates, as `kbench.tables.texts.DateColumn` reads them.
    decimal, thousands : str
        Decimal and thousands separators of numbers that are strings.
    na_values : sequence of str, optional
        Strings that mean a missing value, in addition to the usual ones.
    units : sequence of str, optional
        Columns of numbers with a unit, as `kbench.tables.texts.UnitColumn` reads them.

    Examples
    --------
    >>> encoder = TableEncoder([("age", None), ("city", ["Oslo", "Rome"])])
    >>> encoder.fit_transform([{"city": "Rome", "age": 40}, {"city": None, "age": "31.5"}])
    array([[40. ,  0. ,  1. ],
           [31.5,  nan,  nan]])
    """

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Do nothing: the categories are parameters."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> np.ndarray:
        """Return the encoded table, shape (n_samples, n_features).

        X is a data frame with the columns, in any order, a mapping of columns, or a list of
        mappings, one for each row; other columns are ignored. Where all columns are numbers, it
        may be an array of shape (n_samples, n_columns). A `ValueError` says which columns
        are missing, or hold text where numbers belong.
        """
        table = split_columns(X)
        return self._convert_array(X) if table is None else self.encode(table)

    def read_as(self, decimal: str, thousands: str, na_values: Sequence[str] = ()) -> None:
        """Change how strings are read; a decimal mark is also that of numbers with a unit."""
        if decimal != self.decimal:
            swapped = {".": ",", ",": "."}
            self.set_params(
                units=[
                    replace(
                        unit,
                        decimal=swapped[unit.decimal],
                        thousands=swapped.get(unit.thousands, unit.thousands),
                    ).spec
                    for unit in self._units()
                ]
            )
        self.set_params(decimal=decimal, thousands=thousands, na_values=list(na_values))

    def _convert_array(self, X: Any) -> np.ndarray:
        names = [name for name, _ in self.columns]
        if self.dates or any(categories is not None for _, categories in self.columns):
            raise ValueError(f"X must be a data frame with the columns {', '.join(names[:8])}")
        array: np.ndarray = np.asarray(X, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(names):
            raise ValueError(f"X must have shape (n_samples, {len(names)}), got {array.shape}")
        return array


def split_columns(table: Any) -> dict[Any, Any] | None:
    """Return the columns of a table by their names; None for an array or a matrix.

    A table is a data frame, a mapping of columns, a list of mappings (one for each row), or
    one such mapping.
    """
    if isinstance(table, Mapping):
        cells = [isinstance(v, str) or not hasattr(v, "__len__") for v in table.values()]
        return {name: [v] for name, v in table.items()} if all(cells) else dict(table)
    if isinstance(table, list | tuple) and table and isinstance(table[0], Mapping):
        names = dict.fromkeys(name for row in table for name in row)
        return {name: [row.get(name) for row in table] for name in names}
    header_names = getattr(table, "column_names", None)
    header_names = getattr(table, "columns", None) if header_names is None else header_names
    if header_names is None or hasattr(table, "indptr"):
        return None
    header = list(header_names)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise ValueError(f"several columns of the table are named {twice!r}")
    return {name: _values(table[name]) for name in header}


def _values(series: object) -> Any:
    if hasattr(series, "to_pylist"):  # pyarrow
        return series.to_pylist()
    return series.to_numpy() if hasattr(series, "to_numpy") else np.asarray(series)

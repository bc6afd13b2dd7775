"""The table that a dataset was made of: as the user's file has it, or decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbench.records import Cell, Dataset
from kbench.registry.registry import Registry
from kbench.tables.reading import read_table


def raw_table(cell: Cell, dataset: Dataset, registry: Registry) -> Any:
    """Return the rows and columns of a user's own table; None for other datasets."""
    frame, params = read_table(cell.dataset, registry), cell.dataset.params
    if frame is None:
        return None
    left_out = {params["target"], *params.get("ignore", ())}
    if params.get("weight"):
        left_out.add(params["weight"])
    return frame.iloc[row_ids_of(dataset)].drop(columns=list(left_out)).reset_index(drop=True)


def row_ids_of(dataset: Dataset) -> np.ndarray:
    """Return the numbers of a dataset's rows in its table."""
    return np.arange(len(dataset.y)) if dataset.row_ids is None else dataset.row_ids


def columns_of(
    dataset: Dataset, header: Sequence[str] | None = None
) -> list[tuple[str, list[str] | None]]:
    """Return the columns of a dataset's table as `TableEncoder` takes them.

    Nominal features are called ``column=category``. Where the `header` is not
    known, the column's name ends at the first ``=``.
    """
    names, kinds = list(dataset.feature_names), list(dataset.feature_kinds)
    known = iter(header) if header is not None else None
    columns: list[tuple[str, list[str] | None]] = []
    at = 0
    while at < len(names):
        column = next(known, names[at]) if known is not None else names[at]
        if kinds[at] == "numeric":
            columns.append((column, None))
            at += 1
            continue
        if known is None:
            column = names[at].partition("=")[0]
        start = f"{column}="
        categories = []
        while at < len(names) and kinds[at] == "nominal" and names[at].startswith(start):
            categories.append(names[at].removeprefix(start))
            at += 1
        if categories:
            columns.append((column, categories))
        else:  # an indicator that is a column itself
            columns.append((names[at], None))
            at += 1
    return columns


def decoded(dataset: Dataset, columns: Sequence[tuple[str, Sequence[str] | None]]) -> Any:
    """Return a dataset as the table that it was made of."""
    import pandas

    X = np.asarray(dataset.X)
    table: dict[str, Any] = {}
    at = 0
    for name, categories in columns:
        if categories is None:
            table[name] = X[:, at]
            at += 1
            continue
        block = X[:, at : at + len(categories)]
        at += len(categories)
        named = np.array([*categories, None], dtype=object)
        codes = np.where(
            np.isnan(block).any(axis=1), len(categories), np.nan_to_num(block).argmax(1)
        )
        table[name] = named[codes]
    return pandas.DataFrame(table)

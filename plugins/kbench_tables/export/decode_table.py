"""Reconstruct the table of a dataset from its encoder."""

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import numpy as np

from kbench.errors import ExportError
from kbench.features import Registry, resolve
from kbench.records import Cell, Dataset
from kbench.tables.texts import ISO, DateColumn
from kbench_tables.export.encoder import TableEncoder


def example_rows(cell: Cell, encoder: TableEncoder, registry: Registry, n_rows: int) -> Any:
    """Return the first rows of a user's file, with the columns that an encoder takes."""
    import pandas

    rows = resolve(registry.get("dataset", cell.dataset.name).rows)(**cell.dataset.params).rows
    rows.scan({})
    return pandas.DataFrame(encoder.select(next(iter(rows.blocks(rows.names))))).head(n_rows)


def fit_encoder(cell: Cell, dataset: Dataset, registry: Registry) -> tuple[TableEncoder, bool]:
    """Return the encoder of a dataset's table, and whether that table is a user's file.

    The data cache has encoded tables only: the user's file is read again.
    """
    encoder, source = dataset.encoder, registry.all("dataset").get(cell.dataset.name)
    if encoder is None and source is not None and source.rows:
        again = resolve(source.load)(**cell.dataset.params)
        encoder = again.encoder
        if encoder is not None and not np.array_equal(again.X, dataset.X, equal_nan=True):
            raise ExportError("the file no longer has the inputs of the evaluation")
    if encoder is not None:
        return TableEncoder(**vars(encoder)), True
    return TableEncoder(_list_columns(dataset)), False


def _list_columns(dataset: Dataset) -> list[tuple[str, list[str] | None]]:
    """Return the columns of another dataset, of which indicators are called ``column=category``."""
    columns: list[tuple[str, list[str] | None]] = []
    parts = [
        (*name.partition("="), kind)
        for name, kind in zip(dataset.feature_names, dataset.feature_kinds, strict=True)
    ]
    for (column, equals, kind), group in groupby(parts, lambda part: (*part[:2], part[3])):
        categories = [part[2] for part in group]
        if kind == "onehot" and equals:
            columns.append((column, categories))
        else:
            columns += [(f"{column}{equals}{category}", None) for category in categories]
    return columns


def decode_table(X: np.ndarray, encoder: TableEncoder) -> Any:
    """Return the table that an encoder encodes as these rows; dates are strings."""
    import pandas

    formats = {date.name: date.format for date in (DateColumn.parse(d, "") for d in encoder.dates)}
    categories_by_name = dict(encoder.columns)
    table: dict[str, object] = {}
    for name, place in encoder.places().items():
        block, categories = np.asarray(X[:, place]), categories_by_name[name]
        first = block[:, 0]
        if name in formats:
            table[name] = [_format_date(day, formats[name]) for day in first.tolist()]
        elif categories is None:
            table[name] = first
        else:
            codes = first if name in encoder.coded else np.nan_to_num(block).argmax(axis=1)
            is_missing = np.isnan(block).any(axis=1)
            named = np.array([*categories, None], dtype=object)
            table[name] = named[np.where(is_missing, len(categories), codes).astype(int)]
    return pandas.DataFrame(table)


def _format_date(day: float, format_: str) -> str | None:
    if np.isnan(day):
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
    return moment.isoformat() if format_ == ISO else moment.strftime(format_)


def plain_rows(table: Any, n_rows: int) -> list[dict[str, object]]:
    """Return the first rows of a decoded table as mappings to strings, numbers and None."""
    first = table.iloc[:n_rows].astype(object)
    rows: list[dict[str, object]] = first.where(first.notna(), None).to_dict("records")
    return rows

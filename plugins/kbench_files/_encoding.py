"""From blocks of a table to a dataset: one pass finds the columns, another encodes them."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kbench import Dataset, DatasetError
from kbench.messages import list_some, option
from kbench.tables.cell_values import TableColumns, Texts, drop_marks
from kbench.tables.table import Column, Table, check_columns, no_column, to_dataset
from kbench.tables.table_rows import TableRows
from kbench.tables.texts import DateColumn, UnitColumn
from kbench_files._columns import ColumnScan, numbers

VALUES = 1 << 21
"""Values of a block of a table."""


def block_rows(n_columns: int) -> int:
    """Return the rows of a block; each column of a block takes the time of many rows."""
    return max(2048, VALUES // max(n_columns, 1))


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are for; parameters of the readers of files."""

    target: str
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    date_formats: Sequence[str] = ()
    target_encode: Sequence[str] = ()
    strip_units: Sequence[str] = ()
    task: str | None = None
    weight: str | None = None
    texts: Texts = field(default_factory=Texts)
    """The notation of the cells of a text file."""


def encode(rows: TableRows, roles: Roles, facts: Mapping[str, str]) -> tuple[Dataset, int]:
    """Return the dataset of a table, and the number of the table's rows.

    DatasetError is raised if the table has no rows, or a column does not exist, has no
    value or is not numeric.
    """
    label, target, weight, drop = rows.what, roles.target, roles.weight, tuple(roles.drop)
    check_columns(list(rows.names), label, target, drop, weight)
    dates = {c.name: c for c in (DateColumn.parse(d, label) for d in roles.date_formats)}
    units = {c.name: c for c in (UnitColumn.parse(s, label) for s in roles.strip_units)}
    for key, names in (
        ("categorical", roles.categorical),
        ("date_formats", dates),
        ("target_encode", roles.target_encode),
        ("strip_units", units),
    ):
        unknown = [name for name in names if name not in rows.names]
        if unknown:
            raise DatasetError(f"{label}, {key}: {no_column(unknown[0], rows.names)}")
    left_out = {target, weight, *drop}
    nominal = {*roles.categorical, *roles.target_encode}
    dates = {n: c for n, c in dates.items() if n not in left_out | nominal}
    units = {n: c for n, c in units.items() if n not in (*drop, *roles.categorical, *dates)}
    features = {name: None for name in rows.names if name not in left_out}
    scans: dict[str, ColumnScan] = {}
    for name in rows.names:
        if name in (target, weight):
            texts = Texts(unit=units[name]) if name in units else None
            scans[name] = ColumnScan(name, label, name in nominal, True, texts)
        elif name in features and name not in dates and name not in units:
            scans[name] = ColumnScan(name, label, name in nominal, False)
    n_rows = rows.scan(scans)
    if not n_rows:
        raise DatasetError(f"{label}: it has no rows")
    numeric = {name: dtype for name, dtype in rows.numeric().items() if name not in nominal}
    typed = {name for name in features if name in numeric and name in scans}
    _refuse_empty(
        label, [n for n in features if n in scans and n not in typed and not scans[n].has_values]
    )
    by_name: dict[str, list[Column]] = {}
    for name in rows.names:
        if name in dates:
            by_name[name] = [Column(each, "numeric") for each in dates[name].feature_names]
        elif name in typed:
            by_name[name] = [Column(name, "numeric", dtype=numeric[name])]
        elif name in scans:
            column = scans[name].column(n_rows, any_text=name not in features)
            column.target_encoded = name in roles.target_encode
            by_name[name] = [column]
        else:  # left out, or with a unit
            by_name[name] = [Column(name, "numeric")]
    pairs = [(name, by_name[name][0]) for name in features]
    encoder = TableColumns(
        [(name, None if c.kind == "numeric" else list(c.categories)) for name, c in pairs],
        coded=list(roles.target_encode),
        dates=[column.spec for column in dates.values()],
        decimal=roles.texts.decimal,
        thousands=roles.texts.thousands,
        na_values=list(roles.texts.na_values),
        units=[column.spec for name, column in units.items() if name in features],
    )
    table = Table(
        [column for columns in by_name.values() for column in columns],
        n_rows,
        read=partial(_encoded_blocks, rows, encoder, typed),
    )
    facts = {**facts, "encoder": encoder}
    return to_dataset(table, label, target, drop, roles.task, weight, **facts), n_rows


def _refuse_empty(label: str, empty: Sequence[str]) -> None:
    if empty:
        raise DatasetError(
            f"{label}: all values are missing in {list_some(empty)}. Drop empty columns: "
            f"{option('drop', empty[:3])}."
        )


def _encoded_blocks(
    rows: TableRows, encoder: TableColumns, typed: Set[str], _: Sequence[str]
) -> Iterator[list[np.ndarray]]:
    converters, categories_by_name = encoder.converters(), dict(encoder.columns)
    is_empty = dict.fromkeys(categories_by_name, True)
    first_row = 1
    for block in rows.blocks(list(categories_by_name)):
        values: list[np.ndarray] = []
        for name, categories in categories_by_name.items():
            series = block[name]
            if name in typed:
                values.append(drop_marks(numbers(series), encoder.texts))
            else:
                try:
                    made = converters[name](series, first_row=first_row)
                except ValueError as error:
                    raise DatasetError(f"{rows.what}: {error}") from None
                if categories is not None:
                    if (made < 0).any():
                        raise DatasetError(f"{rows.what}: {name!r} has other values than before")
                    made = np.nan_to_num(made, nan=-1).astype(np.int32)
                values.extend(made.reshape(len(made), -1).T)
            if is_empty[name]:
                is_empty[name] = categories is None and bool(np.isnan(values[-1]).all())
        first_row += len(values[0])
        yield values
    _refuse_empty(rows.what, [name for name, empty in is_empty.items() if empty])

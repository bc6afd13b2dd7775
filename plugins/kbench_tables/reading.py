"""Reading a user's own table by the source of its dataset."""

from __future__ import annotations

from typing import Any

from kbench.features import Registry, resolve
from kbench.records import Make, Ref


def read_table(ref: Ref, registry: Registry) -> Any:
    """Read a user's own table before it is encoded; None for other datasets."""
    source = registry.all("dataset").get(ref.name)
    if source is None or source.table is None or "target" not in ref.params:
        return None
    return table_of(source.table, ref)


def table_of(table: Make, ref: Ref) -> Any:
    """Read the table of a dataset by the `table` of its source; None if it has sparse rows."""
    frame = resolve(table)(**ref.params)
    if frame is None:  # sparse rows
        return None
    frame.columns = [str(name) for name in frame.columns]
    return frame

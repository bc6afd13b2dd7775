"""Reading a user's own table by the source of its dataset."""

from __future__ import annotations

from typing import Any

from kbench.records import Ref
from kbench.registry.registry import Registry, resolve


def read_table(ref: Ref, registry: Registry) -> Any:
    """Read a user's own table before it is encoded; None for other datasets."""
    source = registry.all("dataset").get(ref.name)
    if source is None or source.table is None or "target" not in ref.params:
        return None
    frame = resolve(source.table)(**ref.params)
    frame.columns = [str(name) for name in frame.columns]
    return frame

"""Hooks for recommendations on a user's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Cell, Ref, Registry, Run, Strategy


@hookimpl
def kbench_strategy(run: Run) -> Strategy | None:
    """Schedule the tasks of a recommendation within a time limit."""
    schedule = run.options.given.get("schedule")
    return schedule and schedule.start_run(run)


@hookimpl
def kbench_sized_cells(text: str, name: str, registry: Registry) -> Sequence[Cell]:
    """Return the cells of a suite with rules on the size of data."""
    from kbench_tables.size_rules import list_cells

    return list_cells(text, name, registry)


@hookimpl
def kbench_file_preview(ref: Ref, registry: Registry) -> tuple[Ref, Sequence[str]]:
    """Detect how a user's file is written, and how its columns are encoded."""
    from kbench_tables.recommend.table_preview import add_preview, preview

    found = preview(ref, registry)
    return add_preview(ref, found), found.notices() if found else []

"""Hooks for recommendations on a user's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Cell, Registry, Run, Strategy


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

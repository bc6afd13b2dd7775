"""The hooks of a user's own table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Registry, Run, Strategy
    from kbench.records import Cell


@hookimpl
def kbench_strategy(run: Run) -> Strategy | None:
    """Spend a limited time by the schedule of a recommendation."""
    schedule = run.options.given.get("schedule")
    return schedule and schedule.of_run(run)


@hookimpl
def kbench_sized_cells(text: str, name: str, registry: Registry) -> Sequence[Cell]:
    """Read a suite like those that recommendations compare."""
    from kbench_tables.size_rules import every_cell

    return every_cell(text, name, registry)

"""The hooks of a user's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Run, Strategy


@hookimpl
def kbench_strategy(run: Run) -> Strategy | None:
    """Spend a limited time by the schedule of a recommendation."""
    schedule = run.options.given.get("schedule")
    if schedule is None:
        return None
    from kbench_tables.time_budget.timed_run import TimedRun

    return TimedRun(schedule, run)

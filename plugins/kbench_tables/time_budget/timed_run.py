"""A schedule as the strategy of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbench.features import PlannedCell, Run, n_missing
from kbench.records import Result
from kbench_tables.time_budget.schedule import Schedule


class TimedRun:
    """Spends the time of a run by a schedule, which looks at the results in the cells."""

    cuts_off = True

    def __init__(self, schedule: Schedule, run: Run) -> None:
        self._schedule, self._run = schedule, run
        self.n_tasks = n_missing(run.cells)

    def steps(self) -> Iterator[tuple[PlannedCell, int]]:
        """Yield what to compute next, until the time is over."""
        run = self._run
        return self._schedule.steps(run.cells, run.suite.compared, run.until, run.add)

    def tell(self, cell: PlannedCell, result: Result) -> None:
        """Do nothing: the result is in the cell."""

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return the cells that were begun."""
        return self._schedule.kept(cells)

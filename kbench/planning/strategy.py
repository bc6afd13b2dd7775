"""The order in which the tasks of a run are computed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

from kbench.planning.planned import PlannedCell
from kbench.records import Result

Step = tuple[PlannedCell, int]
"""A cell and the number of a split."""


class Strategy(Protocol):
    """Chooses the next task; results come in between, in the cells and by `tell`."""

    n_tasks: int
    """Tasks to compute at most; where there are none, nothing is prepared for them."""

    cuts_off: bool
    """Whether tasks that run at the end of the time are cut off, and leave no result."""

    def steps(self) -> Iterator[Step]:
        """Yield what to compute next; asked whenever a slot is free, by several threads in turn."""

    def tell(self, cell: PlannedCell, result: Result) -> None:
        """Take notice of the result of a step."""

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return the cells that the report of the run has."""


def n_missing(cells: Sequence[PlannedCell]) -> int:
    """Return the number of tasks that cells lack; cells of one key share theirs."""
    return len({(cell.key, index) for cell in cells for index in cell.missing})


class InOrder:
    """All tasks in the order of the cells, as long as `until` (`time.monotonic`) allows."""

    cuts_off = False

    def __init__(self, cells: Sequence[PlannedCell], until: float) -> None:
        self._cells, self._until = cells, until
        self.n_tasks = n_missing(cells)

    def steps(self) -> Iterator[Step]:
        """Yield the missing splits of the cells."""
        begun: set[tuple[str, int]] = set()  # cells of one key share their splits
        for cell in self._cells:
            for index in cell.missing:
                # results have come in since: one may have stopped the cell
                if (cell.key, index) in begun or index not in cell.missing:
                    continue
                # the first begins however late it is: each run brings at least one split
                if begun and not self._has_time_for(cell):
                    continue
                begun.add((cell.key, index))
                yield cell, index

    def tell(self, cell: PlannedCell, result: Result) -> None:
        """Do nothing: results are in the cells."""

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return all cells."""
        return list(cells)

    def _has_time_for(self, cell: PlannedCell) -> bool:
        """Tell whether a split that takes as long as the longest so far would end in time."""
        longest = max((result.seconds for result in list(cell.results.values())), default=0.0)
        return time.monotonic() + longest < self._until

"""The order in which the tasks of a run are computed, and the work of a task."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from kbench.planning.planned import PlannedCell
from kbench.records import Cell, Ref, Result, Search, alternatives
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry

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


def longest_first(planned: Iterable[PlannedCell], registry: Registry) -> list[PlannedCell]:
    """Return cells by the work of one of their tasks, the most first.

    A long task that starts last leaves the other slots idle. Cells of equal work keep
    their order.
    """
    return sorted(planned, key=lambda cell: -_work(cell, registry))


def _work(planned: PlannedCell, registry: Registry) -> float:
    """Estimate the work of a task: numbers in the data, classes, and candidates of the search."""
    facts, cell = planned.dataset, planned.cell
    if facts is None:
        return 0.0
    size = facts.n_samples * max(1, facts.n_features) * max(1, facts.n_classes)
    return float(size * n_candidates(cell, registry))


def n_candidates(cell: Cell, registry: Registry) -> int:
    """Return the number of candidates that the search of a cell compares."""
    maps = _n_values(cell.feature_map, "feature map", registry)
    n = len(cell.protocol.preprocess) * maps * _n_values(cell.learner, "learner", registry)
    return min(n, cell.protocol.n_candidates) if cell.protocol.search == "random" else n


def _n_values(ref: Ref, kind: Kind, registry: Registry) -> int:
    """Return the number of settings of a component that are searched."""
    grid = registry.get(kind, ref.name).grid
    searched = [Search(tuple(values)) for name, values in grid.items() if name not in ref.params]
    return math.prod(len(alternatives(value)) for value in (*searched, *ref.params.values()))

"""The order of cells in which several slots are all busy until the end."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kbench.planning.planned import PlannedCell
from kbench.records import Cell, Ref, Search, alternatives
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry


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

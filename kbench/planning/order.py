"""The order of cells in which several slots are all busy until the end."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kbench.planning.planner import PlannedCell
from kbench.records import Ref, Search
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
    n_candidates = _n_values(cell.feature_map, "feature map", registry) * _n_values(
        cell.learner, "learner", registry
    )
    if cell.protocol.search == "random":
        n_candidates = min(n_candidates, cell.protocol.n_candidates)
    return float(size * n_candidates)


def _n_values(ref: Ref, kind: Kind, registry: Registry) -> int:
    """Return the number of settings of a component that are searched."""
    grid = registry.get(kind, ref.name).grid
    searched = [len(values) for name, values in grid.items() if name not in ref.params]
    searched += [len(value.values) for value in ref.params.values() if isinstance(value, Search)]
    return math.prod(searched)

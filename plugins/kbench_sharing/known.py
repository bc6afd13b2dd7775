"""Known results of a suite, planned and recalled without fetching or computing anything."""

from __future__ import annotations

from dataclasses import dataclass

from kbench.errors import BundleError
from kbench.features import (
    DataCache,
    Journal,
    PlannedCell,
    Planner,
    Registry,
    opened,
    recall,
    recall_added,
    with_expanded,
    with_measure,
)
from kbench.records import DatasetFacts, Suite


@dataclass(frozen=True)
class Known:
    """Cells of a suite that have results here, the planner of their keys, and who has none."""

    suite: Suite
    cells: list[PlannedCell]
    planner: Planner
    n_without: int


def known_results(suite: Suite, registry: Registry, journal: Journal) -> Known:
    """Return the cells of a suite whose results hold for today's code, data and protocol.

    Raises
    ------
    BundleError
        There are none.
    """
    planner = Planner(registry, DataCache())
    with opened(registry) as fetching:
        suite = with_expanded(suite, {ref.label: fetching.expanded(ref) for ref in suite.datasets})
    found = {ref.label: planner.dataset(ref) for ref in suite.datasets}
    datasets: dict[str, DatasetFacts] = {
        label: facts for label, facts in found.items() if facts is not None
    }
    suite = with_measure(suite, datasets, registry)
    planned = planner.plan(suite, datasets)
    recall(planned, journal, suite.limits)
    recall_added(planned, journal, planner.measure_codes())
    cells = [cell for cell in planned if cell.results and cell.dataset is not None]
    if not cells:
        raise BundleError(
            f"no results of {suite.name!r} are known here: `kbench suite` computes them; an edit "
            "of the code makes earlier ones out of date"
        )
    return Known(suite, cells, planner, len(planned) - len(cells))

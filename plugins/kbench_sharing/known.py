"""Known results of a suite, planned and recalled without fetching or computing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kbench.errors import BundleError
from kbench.features import (
    DataCache,
    Journal,
    Manifest,
    PlannedCell,
    Planner,
    Registry,
    Validity,
    opened,
    recall,
    recall_added,
    with_expanded,
    with_measure,
)
from kbench.records import DatasetFacts, Result, Suite


@dataclass(frozen=True)
class Known:
    """Cells of a suite that have results here, the planner of their keys, and who has none.

    `manifests` are by the digests that results name.
    """

    suite: Suite
    cells: list[PlannedCell]
    planner: Planner
    n_without: int
    manifests: Mapping[str, Manifest]

    @property
    def used(self) -> list[Manifest]:
        """What the results were made from, each once."""
        results = (result for cell in self.cells for result in cell.in_order)
        return list({result.manifest: self.manifest_of(result) for result in results}.values())

    def manifest_of(self, result: Result) -> Manifest:
        """Return what a result was made from; BundleError where that is not known."""
        manifest = self.manifests.get(result.manifest)
        if manifest is None:
            raise BundleError("it is not known what a result was made from: compute it again")
        return manifest


def known_results(suite: Suite, registry: Registry, journal: Journal) -> Known:
    """Return the cells of a suite whose results hold: all they were made from is as it was.

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
    validity = Validity(journal, planner.present)
    recall(planned, validity, suite.limits)
    recall_added(planned, validity, planner.measure_codes())
    planner.present.save()
    cells = [cell for cell in planned if cell.results and cell.dataset is not None]
    if not cells:
        raise BundleError(
            f"no results of {suite.name!r} are known here: `kbench suite` computes them; an edit "
            "of the code makes earlier ones out of date"
        )
    return Known(suite, cells, planner, len(planned) - len(cells), journal.manifests())

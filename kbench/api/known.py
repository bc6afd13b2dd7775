"""Results of a suite that are known here, beside those of a run of some of its methods."""

from __future__ import annotations

from kbench.planning.planner import Planner
from kbench.planning.recall import recall, recall_added
from kbench.planning.tasks import with_measure
from kbench.records import Cell, DatasetFacts, Suite
from kbench.registry.registry import Registry
from kbench.results.rows import Row, known_measure
from kbench.results.sources import of_cell_in_full
from kbench.runner import Report
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder


def known_beside(
    whole: Suite, report: Report, registry: Registry, place: str
) -> tuple[list[Row], list[Row], int]:
    """Return rows of a run, of the suite's other methods, and how many of these are not known.

    The others are cells of the datasets of a run whose results hold for today's code, data and
    protocol. Nothing is fetched or computed. `place` is that of the run's journal: this
    machine, or its clusters.
    """
    planner = Planner(registry, DataCache())
    journal = Journal(state_folder(place) / "journal.jsonl")
    datasets: dict[str, DatasetFacts] = {
        cell.cell.dataset.label: cell.dataset for cell in report.cells if cell.dataset is not None
    }
    ours = {_labels(cell.cell) for cell in report.cells}
    planned = [
        cell
        for cell in planner.plan(with_measure(whole, datasets, registry), datasets)
        if cell.cell.dataset.label in datasets and _labels(cell.cell) not in ours
    ]
    recall(planned, journal, whole.limits)
    recall_added(planned, journal, planner.measure_codes())
    measure = known_measure(report.suite.compared)
    known = [cell for cell in planned if cell.is_finished and cell.done]
    own, others = (
        [of_cell_in_full(cell, place, measure) for cell in cells] for cells in (report.cells, known)
    )
    return own, others, len(planned) - len(known)


def _labels(cell: Cell) -> tuple[str, str, str]:
    return cell.dataset.label, cell.feature_map.label, cell.learner.label

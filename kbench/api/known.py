"""Results of a suite that are known here, beside those of a run of some of its methods."""

from __future__ import annotations

from collections.abc import Mapping

from kbench.planning.planned import PlannedCell
from kbench.planning.planner import Planner
from kbench.planning.recall import recall, recall_added, set_aside
from kbench.planning.tasks import with_measure
from kbench.records import Cell, DatasetFacts, Result, Suite
from kbench.registry.registry import Registry
from kbench.results.rows import Row, known_measure
from kbench.results.sources import of_cell_in_full
from kbench.runner import Report
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal, state_folder


def known_beside(
    whole: Suite,
    report: Report,
    registry: Registry,
    place: str,
    foreign: Mapping[str, Mapping[int, Result]] | None = None,
) -> tuple[list[Row], list[Row], int]:
    """Return rows of a run, of the suite's other methods, and how many of these are not known.

    The others are cells of the datasets of a run whose results hold for today's code, data and
    protocol. Nothing is fetched or computed. `place` is that of the run's journal: this
    machine, or its clusters. `foreign` has results of others by key of the cell; the machine
    of their rows names the author.
    """
    planner = Planner(registry, DataCache())
    journal = Journal(state_folder(place) / "journal.jsonl")
    datasets: dict[str, DatasetFacts] = {
        cell.cell.dataset.label: cell.dataset
        for cell in (*report.cells, *report.foreign)
        if cell.dataset is not None
    }
    ours = {_labels(cell.cell) for cell in (*report.cells, *report.foreign)}
    planned = [
        cell
        for cell in planner.plan(with_measure(whole, datasets, registry), datasets)
        if cell.cell.dataset.label in datasets and _labels(cell.cell) not in ours
    ]
    recall(planned, journal, whole.limits)
    recall_added(planned, journal, planner.measure_codes())
    measure = known_measure(report.suite.compared)
    of_here, of_others = set_aside(planned, foreign or {})
    known = [cell for cell in of_here if cell.is_finished and cell.done] + of_others
    by_others = {id(cell) for cell in (*report.foreign, *of_others)}

    def row(cell: PlannedCell) -> Row:
        machine = cell.done[0].machine if id(cell) in by_others else place
        return of_cell_in_full(cell, machine, measure)

    own = [row(cell) for cell in (*report.cells, *report.foreign)]
    return own, [row(cell) for cell in known], len(planned) - len(known)


def _labels(cell: Cell) -> tuple[str, str, str]:
    return cell.dataset.label, cell.feature_map.label, cell.learner.label

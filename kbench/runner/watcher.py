"""What a run tells while it runs."""

from __future__ import annotations

from kbench.planning.planned import PlannedCell
from kbench.records import Cost, Measure, Result


class Watcher:
    """Callbacks for progress; the command line draws them. Called from several threads."""

    def notice(self, text: str) -> None:
        """Show a notice to the user."""

    def loading(self, dataset: str) -> None:
        """Show that a dataset is being fetched."""

    def predicted(self, cell: PlannedCell, cost: Cost | None, n_done: int, n_cells: int) -> None:
        """Show the predicted cost of a cell, if any, which is one of those to be predicted."""

    def planned(self, cells: list[PlannedCell], n_tasks: int, measure: Measure) -> None:
        """Show the plan: the cells, the number of tasks to compute, and what is compared."""

    def started(self, cell: PlannedCell, split_index: int, slot: int) -> None:
        """Show that a slot has begun a task."""

    def finished(self, cell: PlannedCell, result: Result) -> None:
        """Show the result of a task, which is in the journal."""

    def delivering(self) -> None:
        """Show that all is computed, and that the store is brought up to date."""

"""What a run tells while it runs, and returns."""

from __future__ import annotations

from dataclasses import dataclass

from kbench.planning.planned import PlannedCell
from kbench.records import Added, Cost, Delivered, Measure, Result, Suite


@dataclass(frozen=True)
class Report:
    """The result of a run, or of a plan, which has no `deliveries`.

    In its suite, lines that mean many datasets are replaced by these datasets; its
    cells have the journal's results. `seconds` is the wall clock of the whole, and
    `interrupted` says that the user ended it. `added` are measures of plugins that were
    computed from kept predictions. `foreign` are cells whose accuracy is that of others: they
    were neither computed nor delivered, and have no times. `deliveries` are answers of
    trackers, `left_out` names features that failed while they were told of the run, and `place` is
    that whose journal has the results.
    """

    suite: Suite
    cells: list[PlannedCell]
    seconds: float
    place: str
    deliveries: tuple[Delivered, ...] = ()
    interrupted: bool = False
    added: tuple[Added, ...] = ()
    foreign: tuple[PlannedCell, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a cell or a measure failed; unavailable data is not a failure."""
        return any(cell.status not in ("ok", "unavailable") for cell in self.cells) or any(
            added.failed for added in self.added
        )

    @property
    def undelivered(self) -> bool:
        """Whether a tracker does not have all results."""
        return bool(self.left_out) or any(each.problem for each in self.deliveries)


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

"""A run that computes no task: what it shows is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbench.errors import SuiteError
from kbench.features import PlannedCell, Run
from kbench.records import Result


class KnownOnly:
    """Yields no tasks; SuiteError is raised where no results are known."""

    n_tasks = 0
    cuts_off = False

    def __init__(self, run: Run) -> None:
        if not any(cell.done for cell in run.cells):
            raise SuiteError(
                f"no results of {run.suite.name!r} are known here: `kbench suite` computes them; "
                "an edit of the code makes earlier ones out of date"
            )

    def steps(self) -> Iterator[tuple[PlannedCell, int]]:
        """Yield nothing."""
        return iter(())

    def tell(self, cell: PlannedCell, result: Result) -> None:
        """Do nothing: there are no results."""

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return all cells."""
        return list(cells)

"""The hooks of the search for leakage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import PlannedCell, ReportData, Run, Section


@hookimpl
def kbench_cells_planned(run: Run, cells: Sequence[PlannedCell]) -> None:
    """Check each dataset once, and show the evidence of leakage."""
    from kbench_leakage.notices import show

    show(run, cells)


@hookimpl
def kbench_report_sections(data: ReportData) -> Sequence[Section]:
    """Say which datasets have signs of leakage, and which were not checked."""
    from kbench_leakage.sections import sections

    return sections(data)

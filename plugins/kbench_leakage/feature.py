"""The hooks of the search for leakage."""

from collections.abc import Sequence

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_cells_planned(run: features.Run, cells: Sequence[features.PlannedCell]) -> None:
    """Check each dataset once, and show the evidence of leakage."""
    from kbench_leakage.sections import show

    show(run, cells)


@hookimpl
def kbench_report_sections(data: features.ReportData) -> Sequence[features.Section]:
    """Say which datasets have signs of leakage, and which were not checked."""
    from kbench_leakage.sections import sections

    return sections(data)

"""The hooks of predicted costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Cost, PlannedCell, ReportData, Run, Section, Trial


@hookimpl
def kbench_cells_planned(run: Run, cells: Sequence[PlannedCell]) -> None:
    """Predict the costs of large cells; those that cannot fit into memory are skipped."""
    from kbench_costs.costs import predict_costs

    predict_costs(run, cells)


@hookimpl
def kbench_predicted_cost(trials: Sequence[Trial], n_rows: int) -> Cost | None:
    """Extrapolate from trials to a number of rows."""
    from kbench_costs.prediction import predict

    return predict(trials, n_rows)


@hookimpl
def kbench_report_sections(data: ReportData) -> Sequence[Section]:
    """Say how good the predictions were."""
    from kbench_costs.errors import sections

    return sections(data)

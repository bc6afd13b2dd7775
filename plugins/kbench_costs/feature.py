"""The hooks of predicted costs."""

import math
from collections.abc import Sequence

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_cells_planned(run: features.Run, cells: Sequence[features.PlannedCell]) -> None:
    """Predict the costs of large cells; those that cannot stay within a limit are skipped.

    A run with a limited time does not spend it on that.
    """
    if run.options.total_s == math.inf:
        from kbench_costs import costs, trials

        trials.remember(run, cells)
        costs.predict_costs(run, cells)


@hookimpl
def kbench_task_cost(run: features.Run, cell: features.PlannedCell) -> features.Cost | None:
    """Predict the cost of a task from results, or take that of the cell."""
    from kbench_costs.trials import task_cost

    return task_cost(run, cell)


@hookimpl
def kbench_predicted_cost(trials: Sequence[features.Trial], n_rows: int) -> features.Cost | None:
    """Extrapolate from trials to a number of rows."""
    from kbench_costs.prediction import predict

    return predict(trials, n_rows)


@hookimpl
def kbench_report_sections(data: features.ReportData) -> Sequence[features.Section]:
    """Say how good the predictions were."""
    from kbench_costs.errors import sections

    return sections(data)

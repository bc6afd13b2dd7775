"""Hooks: what a plugin offers (nouns), and when a feature is called (verbs).

A plugin is a module with functions of the first eight names, without arguments, marked with
``kbench.hookimpl``, and one entry-point line in its distribution::

    [project.entry-points.kbench]
    my-plugin = "my_plugin"

A feature implements hooks of the second part; see `kbench.features`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

from kbench.records import DatasetSource, FeatureMap, Figure, KernelSpec, Learner, Metric

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from kbench import features

hookspec = pluggy.HookspecMarker("kbench")
hookimpl = pluggy.HookimplMarker("kbench")


@hookspec
def kbench_datasets() -> Sequence[DatasetSource]:  # type: ignore[empty-body]
    """List sources of datasets."""


@hookspec
def kbench_kernels() -> Sequence[KernelSpec]:  # type: ignore[empty-body]
    """List kernels that suite files can name."""


@hookspec
def kbench_feature_maps() -> Sequence[FeatureMap]:  # type: ignore[empty-body]
    """List explicit feature maps."""


@hookspec
def kbench_learners() -> Sequence[Learner]:  # type: ignore[empty-body]
    """List classifiers and regressors."""


@hookspec
def kbench_metrics() -> Sequence[Metric]:  # type: ignore[empty-body]
    """List metrics of predictions."""


@hookspec
def kbench_figures() -> Sequence[Figure]:  # type: ignore[empty-body]
    """List figures for reports."""


@hookspec
def kbench_suites() -> Sequence[Traversable]:  # type: ignore[empty-body]
    """List suite files (``.toml``), as ``importlib.resources`` gives them."""


@hookspec
def kbench_dashboards() -> Sequence[Traversable]:  # type: ignore[empty-body]
    """List files of report sections, charts and MLflow views."""


# ---------------------------------------------------------------------------
# Verbs: hooks of features (entry points in the group ``kbench.features``)
#
# All are called in the process of the command, never in tasks or on workers, by keyword, and
# one implementation after the other in the order of the features' names, kbench's own first.
# An implementation names the arguments that it wants. What happens if one fails: the feature
# is named and left out of the rest of the run; no result is lost, because the journal is
# written first. An error of kbench raised before the first task is the user's, and ends the
# command. An engine or a strategy that hangs cannot be survived.
# ---------------------------------------------------------------------------


@hookspec
def kbench_location(options: features.Options) -> str | None:
    """Name the place where a feature keeps the results of a run; without credentials.

    One answer at most. It is part of the name of the run's lock and of the plan in the journal.
    Called before anything else; raise a `KbenchError` for an option that is wrong.
    """


@hookspec
def kbench_engine(options: features.Options) -> features.EngineOffer | None:
    """Offer an engine that computes the tasks elsewhere, if the options ask for it.

    One answer at most; by default tasks are computed on this machine. Called before planning.
    """


@hookspec
def kbench_known_results(
    run: features.Run, cells: Sequence[features.PlannedCell]
) -> Mapping[str, Mapping[int, features.Result]] | None:
    """Return results from elsewhere, by key of the cell and number of the split.

    A cell without local results, for which all splits are given, is not computed. Called
    once the cells are planned; must not change them.
    """


@hookspec
def kbench_cells_planned(run: features.Run, cells: Sequence[features.PlannedCell]) -> None:
    """Look at cells before they are computed, and at cells that a strategy adds.

    May set their `cost`, and a `problem` that says why one is not to be computed.
    """


@hookspec
def kbench_strategy(run: features.Run) -> features.Strategy | None:
    """Return the order of the tasks.

    One answer at most; by default the longest come first. Called after `kbench_cells_planned`.
    """


@hookspec
def kbench_results_complete(run: features.Run) -> Sequence[features.Added] | None:
    """Add what is computed from kept predictions, after the last task.

    May write lines of the journal and metrics of the cells' results. Trackers are given the
    results afterwards.
    """


@hookspec
def kbench_run_started(run: features.Run) -> None:
    """Learn that tasks are to be computed, or data fetched, to prepare for results.

    Not called in a run whose results are all cached. A notification: it is queued, and called
    in the thread of the feature, as are the three hooks below; must not change anything.
    """


@hookspec
def kbench_result(run: features.Run, cell: features.PlannedCell, result: features.Result) -> None:
    """Receive the result of a task, which is in the journal. A notification."""


@hookspec
def kbench_cell_finished(run: features.Run, cell: features.PlannedCell) -> None:
    """Receive a cell whose last task has ended. A notification."""


@hookspec
def kbench_run_finished(run: features.Run, report: features.Report) -> features.Delivered | None:
    """Deliver what is not delivered yet: the report has all cells with their results.

    Called once, last, also in a run that was interrupted. A notification, and the only one with
    an answer: a `problem` in it makes the exit code 1. Call `kbench.features.still_working` in
    between: a feature without a sign of life is left behind.
    """


@hookspec
def kbench_run_notices(options: features.Options) -> Sequence[str] | None:
    """Return notices to show before a run."""


@hookspec
def kbench_stored_results(query: features.Query) -> features.StoredResults | None:
    """Read the results of a suite back from a location.

    One answer at most; by default they are read from the journal of this machine.
    """


@hookspec
def kbench_imported_rows(
    suite: str, metric: Metric | None, notice: Callable[[str], None]
) -> Sequence[features.ImportedRow] | None:
    """Return rows of a suite that others computed; they enter no mean, rank or test."""


@hookspec
def kbench_report_sections(data: features.ReportData) -> Sequence[features.Section] | None:
    """Return sections of the report: text, tables and charts, which the core renders."""


@hookspec
def kbench_report_written(
    data: features.ReportData, page: str, options: Mapping[str, Any]
) -> str | None:
    """Keep a page that was written, and say so in a line. `options` has the feature's options."""


@hookspec
def kbench_report_page(
    data: features.ReportData, registry: features.Registry, lead: features.Lead | None
) -> str | None:
    """Write a report as one self-contained HTML page, with `lead` at the top. One answer at most.

    Called for features that show an answer of their own on such a page.
    """


@hookspec
def kbench_report_picture(
    kind: str, data: features.ReportData, registry: features.Registry, form: str
) -> bytes | None:
    """Draw a figure of a report as a file: "pdf", "png" or "svg". One answer at most.

    Called by `Results.plot`.
    """


@hookspec
def kbench_compared_results(
    a: Sequence[features.Row],
    b: Sequence[features.Row],
    metric: Metric,
    thresholds: Mapping[str, float],
) -> tuple[Sequence[Mapping[str, Any]], Sequence[features.Labels]] | None:
    """Compare older results with newer ones; return a line per cell, and cells that are worse.

    One answer at most. Called by `Results.compare`, whose parameters are in `thresholds`.
    """


@hookspec
def kbench_task_cost(run: features.Run, cell: features.PlannedCell) -> features.Cost | None:
    """Predict the cost of the next task of a cell, just before it begins. One answer at most."""


@hookspec
def kbench_predicted_cost(trials: Sequence[features.Trial], n_rows: int) -> features.Cost | None:
    """Predict the cost of a task on a number of rows from trials on fewer. One answer at most."""


@hookspec
def kbench_sized_cells(
    text: str, name: str, registry: features.Registry
) -> Sequence[features.Cell] | None:
    """Return all cells of a suite file with rules on the size of data. One answer at most."""


@hookspec
def kbench_file_preview(
    ref: features.Ref, registry: features.Registry
) -> tuple[features.Ref, Sequence[str]] | None:
    """Return the parameters that read a user's file, and notices on them. One answer at most."""


@hookspec
def kbench_save_model(
    form: str, pipeline: Any, folder: Path, example: Any, requirements: Sequence[str]
) -> bool | None:
    """Save a fitted scikit-learn pipeline in a form such as "mlflow"; True if it was saved.

    One answer at most. `example` are a few rows as the pipeline takes them, and `requirements`
    packages for pip. Called while a model is exported; a `KbenchError` ends the export.
    """

"""The hooks of MLflow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from kbench import features
from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench_mlflow.delivery import Delivery

_deliveries: "WeakKeyDictionary[features.Run, Delivery]" = WeakKeyDictionary()
"""The deliveries of runs that are computing."""


@hookimpl
def kbench_location(options: features.Options) -> str:
    """Return the name of the store."""
    from kbench_mlflow.reading import check_uri
    from kbench_mlflow.tracking.store import Store

    return Store(check_uri(options.given.get("store"), options.folder)).name


@hookimpl
def kbench_run_started(run: features.Run) -> None:
    """Import MLflow, and make a new store, while tasks are computed."""
    _delivery(run).prepare()


@hookimpl
def kbench_cell_finished(run: features.Run, cell: features.PlannedCell) -> None:
    """Write the run of a cell."""
    _delivery(run).offer(cell)


@hookimpl
def kbench_run_finished(run: features.Run, report: features.Report) -> features.Delivered:
    """Write the runs that the store lacks, those of earlier commands included."""
    from kbench_mlflow.delivery import deliver_leftovers

    delivery = _delivery(run)
    delivered = delivery.finish(report.cells)
    if not delivered.problem:
        features.Plans(run.journal).settle(run.suite.name, run.location)
        if not report.interrupted:
            uri, views = delivery.uri, delivery.views
            for leftover in deliver_leftovers(run.journal, run.place, uri, views):
                run.notice(f"pending from an earlier command: {leftover.sentence}")
    return delivered


@hookimpl
def kbench_stored_results(query: features.Query) -> features.StoredResults | None:
    """Read the runs of a suite back, those included that a killed command did not deliver."""
    if query.file:
        return None
    from kbench_mlflow.delivery import read_all_results

    return read_all_results(query)


@hookimpl
def kbench_report_written(
    data: features.ReportData, page: str, options: Mapping[str, Any]
) -> str | None:
    """Keep the report and its tables in the experiment of the suite."""
    if not options.get("log", True):
        return None
    from kbench_mlflow.delivery import keep_report

    return keep_report(data, page, options.get("store"))


@hookimpl
def kbench_save_model(
    form: str, pipeline: Any, folder: Path, example: Any, requirements: Sequence[str]
) -> bool | None:
    """Save a pipeline as an MLflow model."""
    if form != "mlflow":
        return None
    from kbench_mlflow.tracking.connection import save_model

    save_model(pipeline, folder, example, requirements)
    return True


def _delivery(run: features.Run) -> "Delivery":
    """Return the delivery of a run, with what is known of its suite by now."""
    if run not in _deliveries:
        from kbench_mlflow.delivery import Delivery, views_of
        from kbench_mlflow.reading import check_uri

        store = run.options.given.get("store")
        views = views_of(run.registry, run.notice)
        made = Delivery(
            check_uri(store, run.options.folder), run.suite.name, run.journal, run.place, views
        )
        made.options = ("--store", run.location) if store else ()
        _deliveries[run] = made
    delivery = _deliveries[run]
    delivery.metric, delivery.budget = run.suite.compared, run.suite.equal_budget
    return delivery

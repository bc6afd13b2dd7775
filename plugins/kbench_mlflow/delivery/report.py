"""The report of a suite as a separate run of its experiment."""

from __future__ import annotations

from kbench.errors import StoreError
from kbench.features import ReportData, tables_of, write
from kbench_mlflow.reading import uri_of
from kbench_mlflow.tracking import Store


def keep_report(data: ReportData, page: str, store: str | None) -> str:
    """Write the page and its tables to a run; return a line that says so, or why not."""
    files = {"report.html": page}
    for table in tables_of(data).values():
        if table.rows:
            files[f"tables/{table.name}.csv"] = write(table, "csv") + "\n"
            files[f"tables/{table.name}.tex"] = write(table, "latex") + "\n"
    handle = Store(uri_of(store))
    try:
        experiment = handle.experiment(data.suite)
        handle.log_report(experiment, data.rows[0].machine, files)
    except StoreError as error:
        # not an error: the file was written
        return f"not kept in MLflow: {error}"
    return f"also in MLflow: experiment {data.suite}, run report, {len(files)} files"

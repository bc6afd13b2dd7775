"""Cells as MLflow runs: each written once, after any failure, and read back as plain records.

::

    run         the run that a cell should have, in the form in which MLflow accepts it; stored runs
    address     addresses of stores, and how they are shown; the default store
    database    a local store: created safely, checked, read in milliseconds without MLflow
    connection  opening a store, which may be away; errors of MLflow in one line
    upsert      writing a run so that it can be repeated at any time; who writes it
    summaries   the report as a separate run, and a run for each method
    views       saved views of MLflow's pages, and what they know of an experiment
    store       `Store`: all of this behind one class
    model       a fitted pipeline as an MLflow model in a folder

The only package that imports MLflow, and only when a store is opened. It knows
nothing of suites or journals: it is given `CellRun` records, and makes the store
hold exactly these.
"""

from kbench_mlflow.tracking.address import (
    Address,
    check_store,
    default_uri,
    old_store_notice,
    sqlite_path,
    sqlite_uri,
    ui_environment,
)
from kbench_mlflow.tracking.database import delivered_without_mlflow, suites_without_mlflow
from kbench_mlflow.tracking.run import CHOSEN, CellRun, DatasetInput, Experiment, StoredRun
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.summaries import MethodRun, on_dataset
from kbench_mlflow.tracking.views import View, ui_address

__all__ = [
    "CHOSEN",
    "Address",
    "CellRun",
    "DatasetInput",
    "Experiment",
    "MethodRun",
    "Store",
    "StoredRun",
    "View",
    "check_store",
    "default_uri",
    "delivered_without_mlflow",
    "old_store_notice",
    "on_dataset",
    "sqlite_path",
    "sqlite_uri",
    "suites_without_mlflow",
    "ui_address",
    "ui_environment",
]

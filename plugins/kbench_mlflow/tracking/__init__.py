"""Cells as MLflow runs: each written once, after any failure, and read back as plain records.

::

    run             the run that a cell should have, and the form in which MLflow accepts it
    text            names and values of any kind, put into MLflow's alphabet and lengths
    address         addresses of stores, and how they are shown
    location        the default store, and the pages of a server
    database        a local store: created safely, checked, with a short wait for its lock
    without_mlflow  the runs of a local store, read in milliseconds
    server          a store that may be away
    connection      opening a store; errors of MLflow in one line
    stored          runs as the store has them
    upsert          writing a run so that it can be repeated at any time
    owner           the process that writes a run, and whether it still exists
    views           saved views of MLflow's pages
    view_facts      what they know of an experiment: its datasets and searched parameters
    report_run      the report, as a separate run
    method_runs     a run for each method, with its means over datasets
    store           `Store`: all of this behind one class
    model           a fitted pipeline as an MLflow model in a folder

The only package that imports MLflow, and only when a store is opened. It knows
nothing of suites or journals: it is given `CellRun` records, and makes the store
hold exactly these.
"""

from kbench_mlflow.tracking.address import Address, sqlite_path, sqlite_uri
from kbench_mlflow.tracking.location import (
    check_store,
    default_uri,
    old_store_notice,
    ui_address,
    ui_environment,
)
from kbench_mlflow.tracking.method_runs import MethodRun, on_dataset
from kbench_mlflow.tracking.run import CellRun, DatasetInput, Experiment, StoredRun
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.stored import CHOSEN
from kbench_mlflow.tracking.views import View
from kbench_mlflow.tracking.without_mlflow import delivered_without_mlflow, suites_without_mlflow

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

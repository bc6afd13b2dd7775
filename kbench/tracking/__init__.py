"""Cells as MLflow runs: each written once, whatever happens, and read back as plain records.

::

    run             what a run should look like, and the form in which MLflow accepts it
    text            names and values of any kind, put into MLflow's alphabet and lengths
    location        which store it is
    database        a local store: made safely, checked, its lock never waited for long
    without_mlflow  what a local store holds, told in milliseconds
    server          a store that may be away
    connection      opening a store; whatever MLflow raises, in one line
    stored          runs as the store has them
    upsert          a run written so that it can be written again at any time
    owner           which process writes a run, and whether it lives
    views           what MLflow's pages open as
    report_run      the report, as a run of its own
    store           `Store`: all of it behind one class
    model           a fitted pipeline as an MLflow model in a folder

The only package that imports MLflow, and only when a store is opened. It knows
nothing of suites or journals: it is given `CellRun` records, and makes the store
hold exactly them.
"""

from kbench.tracking.location import default_uri, old_store_notice, ui_address
from kbench.tracking.run import CellRun, DatasetInput, Experiment, StoredRun
from kbench.tracking.store import Store
from kbench.tracking.views import View
from kbench.tracking.without_mlflow import delivered_without_mlflow

__all__ = [
    "CellRun",
    "DatasetInput",
    "Experiment",
    "Store",
    "StoredRun",
    "View",
    "default_uri",
    "delivered_without_mlflow",
    "old_store_notice",
    "ui_address",
]

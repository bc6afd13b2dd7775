"""Address of the store, and the addresses that follow from it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from urllib.parse import urlencode

from kbench.errors import StoreError
from kbench_mlflow.tracking.address import Address, engine_uri, sqlite_uri
from kbench_mlflow.tracking.run import Experiment
from kbench_mlflow.tracking.views import View


def default_uri(folder: Path | None = None) -> str:
    """Return the store that MLflow would use, and kbench uses.

    ``MLFLOW_TRACKING_URI`` if set, else the SQLite database ``mlflow.db`` in
    `folder` (by default the current one), with its absolute path.
    """
    return os.environ.get("MLFLOW_TRACKING_URI") or sqlite_uri(_folder(folder) / "mlflow.db")


def check_store(text: str) -> None:
    """Refuse a store that is not an address, before anything is computed for it.

    >>> check_store("mlflow.db")
    Traceback (most recent call last):
    kbench.errors.StoreError: the store must be an address, got 'mlflow.db'; did you mean
    'sqlite:///mlflow.db'?
    """
    if Path(text).suffix in (".db", ".sqlite", ".sqlite3") and "://" not in text:
        raise StoreError(
            f"the store must be an address, got {text!r}; did you mean 'sqlite:///{text}'?"
        )


def old_store_notice(folder: Path | None = None) -> str | None:
    """Return a line about an old ``mlruns`` folder in `folder`; None where there is none.

    Runs of an earlier MLflow in ``./mlruns`` make MLflow choose that folder as
    its store, which it then refuses to use.
    """
    folder = _folder(folder)
    if os.environ.get("MLFLOW_TRACKING_URI"):
        return None
    if not any(meta.parent.name.isdigit() for meta in folder.glob("mlruns/*/meta.yaml")):
        return None
    return (
        f"{folder / 'mlruns'} holds runs of an earlier MLflow, which the installed one refuses to "
        f"use: kbench writes to {default_uri(folder)} instead; show it with "
        f"`mlflow ui --backend-store-uri {shlex.quote(default_uri(folder))}`"
    )


def ui_address(server: str, experiment: Experiment, view: View | None = None) -> str:
    """Return the page of an experiment in MLflow's user interface, opened in a view.

    `server` is the address of the MLflow server.

    >>> experiment = Experiment("3", "uci", 0)
    >>> ui_address("http://127.0.0.1:5000", experiment)
    'http://127.0.0.1:5000/#/experiments/3/runs'
    >>> ui_address("http://127.0.0.1:5000", experiment, View("kbench-times", "Times", "chart", {}))
    'http://127.0.0.1:5000/#/experiments/3/runs?viewStateShareKey=kbench-times&compareRunsMode=CHART'
    """
    address = f"{server.rstrip('/')}/#/experiments/{experiment.id}/runs"
    if view is None:
        return address
    query = {"viewStateShareKey": view.key, "compareRunsMode": view.mode.upper()}
    return f"{address}?{urlencode(query)}"


def ui_environment(uri: str) -> dict[str, str]:
    """Return the environment in which ``mlflow server`` serves the store at a URI."""
    address = Address.parse(uri)
    return {
        "MLFLOW_BACKEND_STORE_URI": address.uri
        if address.path is None
        else engine_uri(address.path),
        # off: half the time to start and a quarter of the memory
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }


def _folder(folder: Path | None) -> Path:
    return (Path.cwd() if folder is None else folder).absolute()

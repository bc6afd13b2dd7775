"""Which store it is: its address, and the addresses that follow from it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlencode

from kbench.tracking.run import Experiment
from kbench.tracking.views import View


def default_uri(folder: Path | None = None) -> str:
    """Say which store MLflow would use, and kbench uses.

    Parameters
    ----------
    folder : Path, optional
        The folder of the database; the current one by default.

    Returns
    -------
    str
        ``MLFLOW_TRACKING_URI`` if set, else the SQLite database ``mlflow.db``
        in `folder`, with its absolute path.
    """
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{_folder(folder) / 'mlflow.db'}"


def old_store_notice(folder: Path | None = None) -> str | None:
    """Say what to do about an old ``mlruns`` folder, where there is one.

    Runs of an earlier MLflow in ``./mlruns`` make MLflow choose that folder as
    its store, which it then refuses to use.

    Parameters
    ----------
    folder : Path, optional
        The folder to look in; the current one by default.

    Returns
    -------
    str or None
        One line, or None where MLflow and kbench choose the same store.
    """
    folder = _folder(folder)
    if os.environ.get("MLFLOW_TRACKING_URI"):
        return None
    if not any(meta.parent.name.isdigit() for meta in folder.glob("mlruns/*/meta.yaml")):
        return None
    return (
        f"{folder / 'mlruns'} holds runs of an earlier MLflow, which the installed one refuses to "
        f"use: kbench writes to {default_uri(folder)} instead; show it with "
        f"`mlflow ui --backend-store-uri {default_uri(folder)}`"
    )


def ui_address(server: str, experiment: Experiment, view: View | None = None) -> str:
    """Return the page of an experiment in MLflow's user interface.

    Parameters
    ----------
    server : str
        Address of the MLflow server, such as ``"http://127.0.0.1:5000"``.
    experiment : Experiment
        The experiment.
    view : View, optional
        What it opens as.

    Examples
    --------
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


def sqlite_path(uri: str) -> Path | None:
    """Return the file of a local SQLite store; None for every other store."""
    found = re.match(r"sqlite(?:\+pysqlite)?:///([^?]+)", uri)
    if found is None or found[1] == ":memory:":
        return None
    return Path(found[1]).absolute()


def _folder(folder: Path | None) -> Path:
    return (Path.cwd() if folder is None else folder).absolute()

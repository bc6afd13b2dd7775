"""A suite's report as a run of its own, which no reader takes for a cell."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kbench.tracking.owner import user
from kbench.tracking.text import inside

KIND = "report"


def log_report(
    client: Any, experiment_id: str, suite: str, machine: str, files: Mapping[str, str]
) -> str:
    """Keep one report run per machine: what it had is replaced.

    Parameters
    ----------
    client : MlflowClient
    experiment_id, suite : str
        The experiment, and the suite that is reported on.
    machine : str
        Whose results it tells.
    files : mapping of str to str
        Relative path to text.

    Returns
    -------
    str
        MLflow's id of the run.
    """
    where = f"tags.`kbench.kind` = '{KIND}'"
    found = [
        run
        for run in client.search_runs([experiment_id], where, order_by=["start_time DESC"])
        if run.data.tags.get("kbench.machine") == machine
    ]
    for older in found[1:]:
        client.delete_run(older.info.run_id)
    if found:
        run_id = str(found[0].info.run_id)
    else:
        tags = {
            "kbench.kind": KIND,
            "kbench.suite": suite,
            "kbench.machine": machine,
            "mlflow.source.name": "kbench",
            "mlflow.user": user(),
        }
        run_id = str(client.create_run(experiment_id, tags=tags, run_name=KIND).info.run_id)
    for path, text in files.items():
        client.log_text(run_id, text, inside(path))
    client.set_terminated(run_id, "FINISHED", time.time_ns() // 1_000_000)
    return run_id

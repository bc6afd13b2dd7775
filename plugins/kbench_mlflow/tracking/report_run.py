"""A suite's report as a separate run, which readers do not take for a cell."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from kbench_mlflow.tracking.owner import owner, owner_is_gone, user
from kbench_mlflow.tracking.text import inside

KIND = "report"


def log_report(
    client: Any, experiment_id: str, suite: str, machine: str, files: Mapping[str, str]
) -> str:
    """Write a report run, then delete the machine's earlier one; return MLflow's id of the run.

    `files` are texts by relative path.
    """
    tags = {
        **owner(),
        "kbench.kind": KIND,
        "kbench.suite": suite,
        "kbench.machine": machine,
        "mlflow.source.name": "kbench",
        "mlflow.user": user(),
    }
    # a new run: MLflow deletes no file, and a table that has no rows now would stay
    run_id = str(client.create_run(experiment_id, tags=tags, run_name=KIND).info.run_id)
    try:
        for path, text in files.items():
            client.log_text(run_id, text, inside(path))
        client.set_terminated(run_id, "FINISHED", time.time_ns() // 1_000_000)
    except BaseException:
        with contextlib.suppress(Exception):  # the store may be away: `abandoned` returns it later
            client.delete_run(run_id)
        raise
    for older in _reports(client, experiment_id):
        if older.info.run_id != run_id and older.data.tags.get("kbench.machine") == machine:
            client.delete_run(older.info.run_id)
    return run_id


def abandoned(client: Any, experiment_id: str) -> list[str]:
    """Return the ids of unfinished reports whose writer is gone."""
    unfinished = _reports(client, experiment_id, "attributes.status = 'RUNNING'")
    return [run.info.run_id for run in unfinished if owner_is_gone(run.data.tags)]


def _reports(client: Any, experiment_id: str, where: str = "") -> list[Any]:
    conditions = [f"tags.`kbench.kind` = '{KIND}'", *([where] if where else [])]
    return list(client.search_runs([experiment_id], " AND ".join(conditions)))

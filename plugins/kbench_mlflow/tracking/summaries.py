"""A run for each method with its means over datasets, and the report as a separate run.

Readers do not take them for cells.
"""

import contextlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kbench_mlflow.tracking.connection import Connection
from kbench_mlflow.tracking.run import (
    KEY_CHARS,
    PARAM_CHARS,
    TAG_CHARS,
    CellRun,
    Client,
    Entity,
    Experiment,
    cut,
    cut_all,
    escape_name,
    find_runs,
    inside,
    sha,
)
from kbench_mlflow.tracking.upsert import owner, write_new

METHOD, REPORT = "method", "report"


@dataclass(frozen=True)
class MethodRun:
    """The MLflow run that a method should have."""

    name: str
    """The method, by labels: ``map + learner``."""
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    """Values that are not finite are left out."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """``kbench.`` is put before their names."""
    start_ms: int = 0
    end_ms: int = 0
    """`start_ms` and `end_ms` say when its first cell began, and its last one ended."""

    @cached_property
    def digest(self) -> str:
        """Hash of all of it, 32 hex digits."""
        content = {name: value for name, value in vars(self).items() if name != "digest"}
        return sha(json.dumps(content, sort_keys=True, default=dict))[:32]


def on_dataset(metric: str, dataset: str) -> str:
    """Return the name of a method's metric on one dataset, among the metrics of its run.

    It does not depend on the other names, so that a view of these metrics can name it.

    >>> on_dataset("accuracy", "iris")
    'iris: accuracy'
    >>> on_dataset("accuracy", "ä") == on_dataset("accuracy", "ö")
    False
    """
    name = f"{dataset}: {metric}"
    clean = escape_name([name])[name]
    return clean if clean == name else f"{clean[: KEY_CHARS - 7]}_{sha(name)[:6]}"


def log_methods(
    connection: Connection, experiment: Experiment, machine: str, runs: Sequence[MethodRun]
) -> int:
    """Make an experiment hold a machine's runs of methods, and no others; return how many are new.

    A run whose content has changed is written again: MLflow changes no param. One whose
    writer was interrupted is deleted.
    """
    client, wanted = connection.client, {run.digest: run for run in runs}
    for stored in _of_kind(client, experiment, METHOD, machine):
        digest = stored.data.tags.get("kbench.digest", "")
        if stored.info.status == "FINISHED" and digest in wanted:
            del wanted[digest]
        else:
            client.delete_run(stored.info.run_id)
    new = [_content(experiment, machine, run) for run in wanted.values()]
    return len(write_new(connection, experiment.id, new))


def _content(experiment: Experiment, machine: str, run: MethodRun) -> CellRun:
    tags = {f"kbench.{name}": text for name, text in run.tags.items()}
    tags |= _identifying(METHOD, experiment, machine) | {"kbench.digest": run.digest}
    names, now_ms = escape_name(run.metrics), time.time_ns() // 1_000_000
    name = cut(run.name, KEY_CHARS) or "-"
    return CellRun(
        *("", machine, name, "FINISHED", run.start_ms or now_ms, run.end_ms or now_ms),
        params=cut_all(run.params, PARAM_CHARS),
        tags=cut_all(tags, TAG_CHARS) | owner() | {"mlflow.runName": name},
        metrics={names[n]: float(v) for n, v in run.metrics.items() if math.isfinite(v)},
    )


def log_report(
    client: Client, experiment: Experiment, machine: str, files: Mapping[str, str]
) -> str:
    """Write a report run, then delete the machine's earlier ones; return MLflow's id of the run.

    `files` are contents by relative path.
    """
    tags = owner() | _identifying(REPORT, experiment, machine)
    # a new run: MLflow deletes no file, and a table that has no rows now would stay
    run_id = str(client.create_run(experiment.id, tags=tags, run_name=REPORT).info.run_id)
    try:
        for path, text in files.items():
            client.log_text(run_id, text, inside(path))
        client.set_terminated(run_id, "FINISHED", time.time_ns() // 1_000_000)
    except BaseException:
        with contextlib.suppress(Exception):  # the store may be away: `Store.sweep` finds it
            client.delete_run(run_id)
        raise
    for older in _of_kind(client, experiment, REPORT, machine):
        if older.info.run_id != run_id:
            client.delete_run(older.info.run_id)
    return run_id


def _identifying(kind: str, experiment: Experiment, machine: str) -> dict[str, str]:
    return {"kbench.kind": kind, "kbench.suite": experiment.name, "kbench.machine": machine}


def _of_kind(client: Client, experiment: Experiment, kind: str, machine: str) -> list[Entity]:
    found = find_runs(client, experiment.id, f"tags.`kbench.kind` = '{kind}'")
    return [run for run in found if run.data.tags.get("kbench.machine") == machine]

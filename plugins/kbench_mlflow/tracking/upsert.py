"""Writing a run so that the write can be repeated at any time, after any interruption.

The tag ``kbench.digest`` goes with the last piece of content, and the status
after it: a run that lacks one of them is found and completed, or written again.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from kbench_mlflow.tracking.connection import Connection, away
from kbench_mlflow.tracking.run import (
    BOOKKEEPING,
    CONTEXT,
    CellRun,
    Client,
    DatasetInput,
    Entity,
    Point,
    StoredRun,
)

_ITEMS_A_BATCH, _POINTS_A_BATCH = 100, 800


def owner() -> dict[str, str]:
    """Return the tags that identify the writing process, and who runs it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return {
        "kbench.host": socket.gethostname(),
        "kbench.pid": str(os.getpid()),
        "kbench.pid_start": process_start(os.getpid()),
        "mlflow.source.name": "kbench",
        "mlflow.user": user,
    }


def owner_is_gone(tags: Mapping[str, str]) -> bool:
    """Return whether the writer of a run has certainly ended."""
    pid = tags.get("kbench.pid", "")
    if tags.get("kbench.host") != socket.gethostname() or not pid.isdigit():
        return False
    return process_start(int(pid)) != tags.get("kbench.pid_start")


def process_start(pid: int) -> str:
    """Return when a process began, which a later one of that number did not; empty for none.

    On Linux it is counted from the boot: an hour of the clock changes whenever that is set, and
    a run that is being written would be treated as one whose writer is gone.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        try:
            return "" if psutil.LINUX else str(psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:
            return ""
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"  # the name may hold blanks


def upsert(
    connection: Connection, experiment_id: str, run: CellRun, stored: StoredRun | None
) -> StoredRun:
    """Make the store hold `run`, where it holds `stored` of the same identity.

    A run that needs additions only is completed; one that would have to change
    a param or a point of a metric is deleted and written again.
    """
    client = connection.client
    if stored is not None and not stored.can_become(run):
        client.delete_run(stored.run_id)
        stored = None
    if stored is None:
        if (inserted := _insert(connection, experiment_id, run)) is not None:
            return inserted
        stored = begin(client, experiment_id, run)
    _Writing(connection, stored, run).complete()
    return stored


def _insert(connection: Connection, experiment_id: str, run: CellRun) -> StoredRun | None:
    """Write a new run at once, where the store is a local one; None if nothing was written."""
    content = replace(run.content, tags={**_first_tags(run), "kbench.digest": run.digest})
    data = content.dataset
    if not (ids := connection.insert(experiment_id, [content])):
        return None
    return StoredRun(
        *(ids[0], experiment_id, content.status, run.start_ms, content.end_ms),
        params=dict(content.params),
        tags=dict(content.tags),
        latest={name: value for name, value, _ in content.points},
        dataset=(data.name, data.digest) if data is not None else None,
    )


def begin(client: Client, experiment_id: str, run: CellRun) -> StoredRun:
    """Create a run with its tags; RUNNING, with its owner, until it is complete."""
    tags = _first_tags(run)
    created = client.create_run(
        experiment_id, start_time=run.start_ms, tags=tags, run_name=run.content.name
    )
    return StoredRun(created.info.run_id, experiment_id, "RUNNING", run.start_ms, 0, {}, tags, {})


def _first_tags(run: CellRun) -> dict[str, str]:
    ours = {"mlflow.runName": run.content.name, "kbench.writing": run.digest}
    return {**run.content.tags, **owner(), **ours}


class _Writing:
    """Additions that make a stored run hold the content of `run`."""

    def __init__(self, connection: Connection, stored: StoredRun, run: CellRun) -> None:
        self._connection, self._client = connection, connection.client
        self._stored, self._content, self._digest = stored, run.content, run.digest

    def complete(self) -> None:
        """Add what the run lacks; the last step makes it complete.

        For a run that is RUNNING this is the status, so that a kill before it
        is visible; for any other run the digest, which is removed first of all.
        """
        stored, content = self._stored, self._content
        if stored.digest != self._digest:
            params = {n: text for n, text in content.params.items() if n not in stored.params}
            points = self._missing_points()
            self._set_tags()
            if content.dataset is not None and stored.dataset is None:
                self._log_dataset(content.dataset)
            not_stored = self._log_artifacts()
            if stored.state != "RUNNING":
                self._terminate()
            self._log_numbers(params, points, not_stored)
        elif stored.superseded:
            self._send(tags={"kbench.kind": content.tags["kbench.kind"]})
            stored.tags["kbench.kind"] = content.tags["kbench.kind"]
            self._delete_tag("kbench.superseded")
        self._terminate()

    def _missing_points(self) -> list[Point]:
        stored, content = self._stored, self._content
        if not stored.digest:
            return content.points
        # `can_become` has checked that values under the same step are equal
        known = stored.split_hashes
        are_new = stored.n_splits_done != content.n_splits_done
        return [
            (name, value, step)
            for name, value, step in content.points
            if (
                str(step) not in known and "all" not in known
                if name in content.by_split
                else are_new or name not in stored.latest
            )
        ]

    def _terminate(self) -> None:
        stored, content = self._stored, self._content
        if (stored.state, stored.end_ms) != (content.status, content.end_ms):
            self._client.set_terminated(stored.run_id, content.status, content.end_ms)
            stored.state, stored.end_ms = content.status, content.end_ms

    def _set_tags(self) -> None:
        """Set tags again; for a complete run this removes its digest first of all."""
        stored, content = self._stored, self._content
        tags = {**content.tags, "mlflow.runName": content.name}
        if stored.digest:
            # not the digest of any content: after an interruption the run is written again
            tags |= {"kbench.digest": "", "kbench.writing": "additions"}
        changed = {name: text for name, text in tags.items() if stored.tags.get(name) != text}
        self._send(tags=changed)
        stored.tags.update(changed)
        for name in list(stored.tags):
            if name.startswith("kbench.") and name not in content.tags and name not in BOOKKEEPING:
                self._delete_tag(name)

    def _delete_tag(self, name: str) -> None:
        self._client.delete_tag(self._stored.run_id, name)
        del self._stored.tags[name]

    def _log_numbers(
        self, params: dict[str, str], points: Sequence[Point], not_stored: str
    ) -> None:
        """Log params and points that are not there yet; the digest comes last."""
        stored = self._stored
        tags = {"kbench.digest": self._digest}
        if not_stored:
            tags["kbench.artifacts"] = not_stored
        self._send(params, points, tags)
        stored.params.update(params)
        stored.tags.update(tags)
        stored.latest.update({name: value for name, value, _ in points})

    def _send(
        self,
        params: Mapping[str, str] | None = None,
        points: Sequence[Point] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log in batches that MLflow accepts, tags in the last ones."""
        from mlflow.entities import Metric, Param, RunTag

        batches: list[dict[str, list[Entity]]] = []

        def fill(kind: str, entities: list[Entity], size: int) -> None:
            for i in range(0, len(entities), size):
                batch = entities[i : i + size]
                if batches and kind not in batches[-1]:
                    batches[-1][kind] = batch
                else:
                    batches.append({kind: batch})

        stamp = self._content.end_ms
        metrics = [Metric(name, value, stamp, step) for name, value, step in points]
        fill("params", [Param(*item) for item in (params or {}).items()], _ITEMS_A_BATCH)
        fill("metrics", metrics, _POINTS_A_BATCH)
        fill("tags", [RunTag(*item) for item in (tags or {}).items()], _ITEMS_A_BATCH)
        for batch in batches:
            self._client.log_batch(self._stored.run_id, **batch)

    def _log_dataset(self, data: DatasetInput) -> None:
        from mlflow.entities import Dataset, InputTag
        from mlflow.entities import DatasetInput as Input

        dataset = Dataset(name=data.name, digest=data.digest, **data.columns)
        inputs = [Input(dataset, [InputTag(*CONTEXT)])]
        for attempt in range(4):
            try:
                self._client.log_inputs(self._stored.run_id, inputs)
                break
            except Exception as error:
                # Of two writers with the same new dataset one violates a unique key, and
                # finds the other's row on its next attempt.
                if attempt == 3 or not re.search(r"unique|duplicate", str(error), re.IGNORECASE):
                    raise
                time.sleep(0.02 * 3**attempt)
        self._stored.dataset = data.name, data.digest

    def _log_artifacts(self) -> str:
        """Log texts; where a store refuses files, only they are lost, and a tag says so."""
        for path, text in self._content.artifacts.items():
            try:
                self._client.log_text(self._stored.run_id, text, path)
            except Exception as error:
                if away(error):
                    raise
                return f"not uploaded: {path}: {self._connection.reason(error)}"
        return ""

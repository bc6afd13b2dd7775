"""Writing a run so that the write can be repeated at any time, after any interruption.

The tag ``kbench.digest`` goes with the last piece of content, and the status
after it: a run that lacks one of them is found and completed, or written again.
"""

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
    Point,
    StoredRun,
)

_PARAMS_A_BATCH, _POINTS_A_BATCH = 100, 800

_DIGEST = "kbench.digest"


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
    own = {"mlflow.runName": run.content.name}
    own |= dict.fromkeys(("kbench.writing", "kbench.digest"), run.digest)
    content = replace(run.content, tags={**run.content.tags, **owner(), **own})
    if stored is not None and stored.can_become(run):
        return _complete(connection, stored, content)
    if stored is not None:
        connection.client.delete_run(stored.run_id)
    return write_new(connection, experiment_id, [content])[0]


def write_new(
    connection: Connection, experiment_id: str, contents: Sequence[CellRun]
) -> list[StoredRun]:
    """Write new runs in the form in which MLflow accepts them, with their digests among the tags.

    All are written at once where the store is a local one.
    """
    if ids := connection.insert(experiment_id, contents):
        return [
            _as_stored(run_id, experiment_id, content.start_ms, content)
            for run_id, content in zip(ids, contents, strict=True)
        ]
    client = connection.client
    return [
        _complete(connection, begin(client, experiment_id, content), content)
        for content in contents
    ]


def _as_stored(run_id: str, experiment_id: str, start_ms: int, content: CellRun) -> StoredRun:
    data = content.dataset
    return StoredRun(
        *(run_id, experiment_id, content.status, start_ms, content.end_ms),
        params=dict(content.params),
        tags=dict(content.tags),
        latest={name: value for name, value, _ in content.points},
        dataset=(data.name, data.digest) if data is not None else None,
    )


def begin(client: Client, experiment_id: str, content: CellRun) -> StoredRun:
    """Create a run with its tags; RUNNING, with its owner, until it is complete."""
    tags = _without_digest(content)
    created = client.create_run(
        experiment_id, start_time=content.start_ms, tags=tags, run_name=content.name
    )
    info, start_ms = created.info, content.start_ms
    return StoredRun(info.run_id, experiment_id, "RUNNING", start_ms, 0, {}, tags, {})


def _without_digest(content: CellRun) -> dict[str, str]:
    return {name: text for name, text in content.tags.items() if name != "kbench.digest"}


def _complete(connection: Connection, stored: StoredRun, content: CellRun) -> StoredRun:
    """Add what a stored run lacks; the last step makes it complete.

    For a run that is RUNNING this is the status, so that a kill before it
    is visible; for any other run the digest, which is removed first of all.
    """
    client, run_id, not_stored = connection.client, stored.run_id, {}
    is_running, is_lacking = stored.state == "RUNNING", stored.digest != content.tags[_DIGEST]
    if is_lacking:
        _set_tags(client, stored, content)
        if content.dataset is not None and stored.dataset is None:
            _log_dataset(client, run_id, content.dataset)
        not_stored = _log_artifacts(connection, run_id, content.artifacts)
    elif stored.superseded:
        client.set_tag(run_id, "kbench.kind", content.tags["kbench.kind"])
        client.delete_tag(run_id, "kbench.superseded")
    if not is_running:
        client.set_terminated(run_id, content.status, content.end_ms)
    if is_lacking:
        _log_numbers(client, stored, content, not_stored)
    if is_running:
        client.set_terminated(run_id, content.status, content.end_ms)
    content = replace(content, tags={**content.tags, **not_stored})
    return _as_stored(run_id, stored.experiment_id, stored.start_ms, content)


def _set_tags(client: Client, stored: StoredRun, content: CellRun) -> None:
    """Set tags again; for a complete run this removes its digest first of all."""
    from mlflow.entities import RunTag

    tags = _without_digest(content)
    if stored.digest:
        # not the digest of any content: after an interruption the run is written again
        tags |= {_DIGEST: "", "kbench.writing": "additions"}
    changed = [RunTag(*item) for item in tags.items() if stored.tags.get(item[0]) != item[1]]
    client.log_batch(stored.run_id, tags=changed)
    for name in stored.tags.keys() - content.tags.keys() - BOOKKEEPING:
        if name.startswith("kbench."):
            client.delete_tag(stored.run_id, name)


def _log_numbers(
    client: Client, stored: StoredRun, content: CellRun, not_stored: Mapping[str, str]
) -> None:
    """Log params and points that are not there yet; the digest comes last."""
    from mlflow.entities import Metric, Param, RunTag

    params = [Param(*item) for item in content.params.items() if item[0] not in stored.params]
    points = [
        Metric(name, value, content.end_ms, step)
        for name, value, step in _missing_points(stored, content)
    ]
    tags = [RunTag(_DIGEST, content.tags[_DIGEST]), *(RunTag(*item) for item in not_stored.items())]
    if len(params) > _PARAMS_A_BATCH or len(points) > _POINTS_A_BATCH:
        # MLflow sends tags with the first of several batches
        client.log_batch(stored.run_id, points, params)
        params, points = [], []
    client.log_batch(stored.run_id, points, params, tags)


def _missing_points(stored: StoredRun, content: CellRun) -> list[Point]:
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


def _log_dataset(client: Client, run_id: str, data: DatasetInput) -> None:
    from mlflow.entities import Dataset, InputTag
    from mlflow.entities import DatasetInput as Input

    dataset = Dataset(name=data.name, digest=data.digest, **data.columns)
    inputs = [Input(dataset, [InputTag(*CONTEXT)])]
    for attempt in range(4):
        try:
            client.log_inputs(run_id, inputs)
            return
        except Exception as error:
            # Of two writers with the same new dataset one violates a unique key, and
            # finds the other's row on its next attempt.
            if attempt == 3 or not re.search(r"unique|duplicate", str(error), re.IGNORECASE):
                raise
            time.sleep(0.02 * 3**attempt)


def _log_artifacts(
    connection: Connection, run_id: str, artifacts: Mapping[str, str]
) -> dict[str, str]:
    """Log texts; where a store refuses files, only they are lost, and a tag says so."""
    for path, text in artifacts.items():
        try:
            connection.client.log_text(run_id, text, path)
        except Exception as error:
            if away(error):
                raise
            return {"kbench.artifacts": f"not uploaded: {path}: {connection.reason(error)}"}
    return {}

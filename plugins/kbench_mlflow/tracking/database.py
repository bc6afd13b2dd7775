"""A local store, an SQLite file: created safely, checked, with a short wait for its lock.

Its runs are read in milliseconds: by SQLite, without importing MLflow.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import socket
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from kbench.errors import StoreError
from kbench.features import Journal
from kbench.messages import option
from kbench_mlflow.tracking.address import engine_uri, sqlite_path, sqlite_uri
from kbench_mlflow.tracking.run import CONTEXT, DatasetInput, WholeRun

LOCK_S = 5.0
"""Seconds to wait for a lock of the database."""

CREATE_S = 120.0
"""Seconds to wait for another process that creates the same store."""

# A write-ahead log needs shared memory, which network file systems lack.
_LOCAL_FILE_SYSTEMS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay"}


def read_only(path: Path, timeout: float) -> sqlite3.Connection:
    """Open the database for reading."""
    return sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, timeout=timeout)


def prepare(path: Path) -> None:
    """Create a new store; StoreError for an existing one, or a folder, that MLflow cannot use."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise StoreError(
            f"the MLflow store {sqlite_uri(path)} is in a folder whose name is not UTF-8, which "
            "MLflow does not support: rename the folder, or choose another store "
            f"({option('store')})"
        ) from None
    if not path.exists() or not path.stat().st_size:
        create(path)
        return
    name = sqlite_uri(path)
    try:
        with contextlib.closing(read_only(path, LOCK_S)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            versions = (
                [row[0] for row in database.execute("SELECT version_num FROM alembic_version")]
                if "alembic_version" in tables
                else []
            )
    except sqlite3.DatabaseError as error:
        raise StoreError(f"the MLflow store {name} cannot be read: {error}") from error
    # MLflow would migrate in place, and an interrupted migration cannot be resumed.
    from mlflow.store.db import utils

    needed = str(vars(utils)["_get_latest_schema_revision"]())
    if versions != [needed]:
        raise StoreError(
            f"the MLflow store {name} has schema {', '.join(versions) or 'none'} where the "
            f"installed MLflow needs {needed}: if another version of MLflow made it, back it up "
            f"and run `mlflow db upgrade {shlex.quote(name)}`; if its creation was interrupted, "
            "move the file away; kbench creates a new store and uploads all results again"
        )


def check_lock(path: Path) -> None:
    """Fail after seconds where another process holds the database; MLflow waits 20 s a call."""
    if not path.exists():
        raise StoreError(f"the MLflow store {sqlite_uri(path)} has been removed")
    with contextlib.closing(to_write(path)) as database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("ROLLBACK")


def to_write(path: Path) -> sqlite3.Connection:
    """Open the database for writing, with explicit transactions.

    A write-ahead log is flushed at checkpoints: a power failure may lose the last runs, which the
    next command writes again. Without such a log it could damage the file.
    """
    database = sqlite3.connect(path, timeout=LOCK_S, isolation_level=None)
    if database.execute("PRAGMA journal_mode").fetchone() == ("wal",):
        database.execute("PRAGMA synchronous = NORMAL")
    return database


def insert_runs(path: Path, experiment_id: str, runs: Sequence[WholeRun]) -> list[str]:
    """Insert whole runs in one transaction; return their ids, none if MLflow has to write them.

    MLflow reads each run back several times while it is written, which takes ten times as long.
    """
    from mlflow.utils.file_utils import local_file_uri_to_path

    ids = [uuid.uuid4().hex for _ in runs]
    query = (
        "SELECT artifact_location FROM experiments "
        "WHERE experiment_id = ? AND lifecycle_stage = 'active'"
    )
    with contextlib.closing(to_write(path)) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            [(folder,)] = database.execute(query, [int(experiment_id)])
            if urlsplit(folder)[:2] != ("file", "") or "?" in folder:
                raise ValueError(folder)
            for run_id, run in zip(ids, runs, strict=True):
                artifacts = f"{folder.rstrip('/')}/{run_id}/artifacts"
                _write_files(Path(local_file_uri_to_path(artifacts)), run.artifacts)
                _insert(database, "runs", [_run_row(run_id, run, int(experiment_id), artifacts)])
                for table, rows in _rows_of_run(run_id, run).items():
                    _insert(database, table, rows)
                if run.dataset is not None:
                    _insert_input(database, run_id, run.dataset, int(experiment_id))
            database.execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError):
            # another schema, no such experiment, or files are elsewhere or cannot be written
            database.execute("ROLLBACK")
            return []
    return ids


def _write_files(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


_Row = Mapping[str, object]


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[_Row]) -> None:
    for row in rows[:1]:
        values = ", ".join(f":{column}" for column in row)
        database.executemany(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})", rows)


def _run_row(run_id: str, run: WholeRun, experiment_id: int, artifacts: str) -> _Row:
    texts = dict.fromkeys(("source_name", "entry_point_name", "source_version"), "")
    return {
        **texts,
        "run_uuid": run_id,
        "name": run.name,
        "source_type": "UNKNOWN",
        "user_id": run.tags["mlflow.user"],
        "status": run.status,
        "start_time": run.start_ms,
        "end_time": run.end_ms,
        "lifecycle_stage": "active",
        "artifact_uri": artifacts,
        "experiment_id": experiment_id,
    }


def _rows_of_run(run_id: str, run: WholeRun) -> dict[str, list[_Row]]:
    named = {
        "params": run.params,
        "tags": run.tags | {"mlflow.runName": run.name},
    }
    of_run = {"run_uuid": run_id}
    points = [
        {"key": name, "value": value, "step": step, "timestamp": run.end_ms, "is_nan": 0} | of_run
        for name, value, step in run.points
    ]
    return {
        **{
            table: [{"key": name, "value": text} | of_run for name, text in texts.items()]
            for table, texts in named.items()
        },
        "metrics": points,
        "latest_metrics": list({point["key"]: point for point in points}.values()),
    }


def _insert_input(
    database: sqlite3.Connection, run_id: str, data: DatasetInput, experiment_id: int
) -> None:
    row = {"name": data.name, "digest": data.digest, "experiment_id": experiment_id}
    query = "SELECT dataset_uuid FROM datasets WHERE " + " AND ".join(f"{c} = :{c}" for c in row)
    if (known := database.execute(query, row).fetchone()) is None:
        known = (uuid.uuid4().hex,)
        columns = {f"dataset_{name}": text for name, text in data.columns.items()}
        _insert(database, "datasets", [{**row, **columns, "dataset_uuid": known[0]}])
    input_id = uuid.uuid4().hex
    source, destination = {"source_type": "DATASET"}, {"destination_type": "RUN"}
    ends = {**source, "source_id": known[0], **destination, "destination_id": run_id}
    _insert(database, "inputs", [{"input_uuid": input_id, **ends}])
    tag = dict(zip(("name", "value"), CONTEXT, strict=True))
    _insert(database, "input_tags", [{"input_uuid": input_id, **tag}])


def create(path: Path) -> None:
    """Create an SQLite store: migrate it under another name, then rename it.

    A kill during MLflow's first migration leaves a database that never opens
    again, and two first migrations at once break each other.
    """
    deadline = time.monotonic() + CREATE_S

    def check_deadline() -> None:
        if time.monotonic() > deadline:
            raise StoreError(f"another process is creating a store in {path.parent}")

    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}.{re.sub(r'[^A-Za-z0-9-]', '_', socket.gethostname())}."
    new = path.parent / f"{prefix}{os.getpid()}"
    with Journal().lock(f"store {path}", poll=check_deadline):
        if path.exists() and path.stat().st_size:
            return
        _remove(path.parent, prefix)
        try:
            _migrate(new, artifacts=path.parent / "mlartifacts")
            if path.exists() and not path.stat().st_size:
                path.unlink()
            try:
                os.link(new, path)
            except FileExistsError:
                return  # of another host
            except OSError:  # a file system without links
                new.rename(path)
        finally:
            _remove(path.parent, prefix)


def _migrate(path: Path, artifacts: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store: Any = SqlAlchemyStore
    store(engine_uri(path), artifacts.as_uri()).engine.dispose()
    if file_system(path) in _LOCAL_FILE_SYSTEMS:
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = WAL")


def _remove(folder: Path, prefix: str) -> None:
    """Remove unfinished stores of this process and of those that are gone, with SQLite's files.

    Another user, whose journal is another one, may be creating the same store.
    """
    import psutil

    for path in folder.iterdir():
        pid = path.name.removeprefix(prefix).partition("-")[0]
        is_of_other = pid.isdecimal() and int(pid) != os.getpid() and psutil.pid_exists(int(pid))
        if path.name.startswith(prefix) and not is_of_other:
            path.unlink(missing_ok=True)


def file_system(path: Path) -> str:
    """Return the type of the file system of `path`; "" where the platform does not say."""
    import psutil

    types = {each.mountpoint: each.fstype for each in psutil.disk_partitions(all=True)}
    target = path.resolve()
    return next((types[str(f)] for f in (target, *target.parents) if str(f) in types), "")


def read_delivered_runs(uri: str, experiment_id: str) -> set[tuple[str, str]] | None:
    """Return (key, digest) of the live runs that are complete and not superseded.

    Names and values of tags about cells without a run are among them. Empty if the store or the
    experiment is gone; None if only MLflow can read the runs: not a local SQLite store, another
    schema, locked.
    """
    query = """
        SELECT cell_key.value, digest.value
        FROM runs JOIN experiments USING (experiment_id)
        JOIN tags cell_key ON cell_key.run_uuid = runs.run_uuid AND cell_key.key = 'kbench.cell_key'
        JOIN tags digest ON digest.run_uuid = runs.run_uuid AND digest.key = 'kbench.digest'
        LEFT JOIN tags gone ON gone.run_uuid = runs.run_uuid AND gone.key = 'kbench.superseded'
        WHERE runs.experiment_id = CAST(? AS INTEGER) AND experiments.lifecycle_stage = 'active'
        AND runs.lifecycle_stage = 'active' AND runs.status IN ('FINISHED', 'FAILED')
        AND digest.value != '' AND gone.value IS NULL
        UNION SELECT key, value FROM experiment_tags JOIN experiments USING (experiment_id)
        WHERE experiment_id = CAST(? AS INTEGER) AND lifecycle_stage = 'active'
        AND key LIKE '%kbench.without_run.%'
    """
    found = _selected(uri, query, experiment_id, experiment_id)
    return None if found is None else {(key, digest) for key, digest in found}


def suites_without_mlflow(uri: str) -> list[str] | None:
    """Return the names of the experiments that have live runs of cells, in alphabetical order.

    Empty if the store is gone; None if only MLflow can read them.
    """
    query = """
        SELECT name FROM experiments WHERE lifecycle_stage = 'active' AND EXISTS (
            SELECT 1 FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid
            WHERE runs.experiment_id = experiments.experiment_id
            AND runs.lifecycle_stage = 'active' AND tags.key = 'kbench.cell_key'
        ) ORDER BY name
    """
    found = _selected(uri, query)
    return None if found is None else [name for (name,) in found]


def _selected(uri: str, query: str, *given: str) -> list[tuple[str, ...]] | None:
    """Return the rows of a query; none where the store is gone, None where it cannot be asked."""
    if (path := sqlite_path(uri)) is None:
        return None
    if not path.exists() or not path.stat().st_size:
        return []
    try:
        with contextlib.closing(read_only(path, timeout=1.0)) as database:
            return database.execute(query, given).fetchall()
    except sqlite3.Error:
        return None

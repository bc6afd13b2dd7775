"""A local store, an SQLite file: created safely, checked, with a short wait for its lock.

Its runs are read in milliseconds: by SQLite, without importing MLflow.
"""

import contextlib
import os
import re
import shlex
import shutil
import socket
import sqlite3
import time
import uuid
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from platformdirs.unix import Unix  # the same folder on macOS

from kbench.errors import StoreError
from kbench.features import Journal
from kbench.messages import option
from kbench_mlflow.tracking.address import engine_uri, sqlite_path, sqlite_uri
from kbench_mlflow.tracking.run import CONTEXT, CellRun

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
    needed = _schema()
    if versions != [needed]:
        raise StoreError(
            f"the MLflow store {name} has schema {', '.join(versions) or 'none'} where the "
            f"installed MLflow needs {needed}: if another version of MLflow made it, back it up "
            f"and run `mlflow db upgrade {shlex.quote(name)}`; if its creation was interrupted, "
            "move the file away; kbench creates a new store and uploads all results again"
        )


def _schema() -> str:
    from mlflow.store.db import utils

    return str(vars(utils)["_get_latest_schema_revision"]())


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


def insert_runs(path: Path, experiment_id: str, runs: Sequence[CellRun]) -> list[str]:
    """Insert whole runs in one transaction; return their ids, none if MLflow has to write them.

    MLflow reads each run back several times while it is written, which takes ten times as long.
    """
    ids = [uuid.uuid4().hex for _ in runs]
    with contextlib.closing(to_write(path)) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            [(folder,)] = database.execute(_FOLDER, [int(experiment_id)])
            if urlsplit(folder)[:2] != ("file", "") or {*"?#"} & {*folder}:
                raise ValueError(folder)
            for run_id, run in zip(ids, runs, strict=True):
                artifacts = f"{folder.rstrip('/')}/{run_id}/artifacts"
                for name, text in run.artifacts.items():
                    file = Path(unquote(urlsplit(artifacts).path), name)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8")
                _insert(database, run_id, run, int(experiment_id), artifacts)
            database.execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError):
            # another schema, no such experiment, or files are elsewhere or cannot be written
            database.rollback()  # a full disk has ended the transaction
            return []
    return ids


def _insert(
    database: sqlite3.Connection, run_id: str, run: CellRun, experiment: int, artifacts: str
) -> None:
    user, times = run.tags["mlflow.user"], (run.start_ms, run.end_ms)
    database.execute(_RUN, (run_id, run.name, user, run.status, *times, artifacts, experiment))
    for table, texts in (("params", run.params), ("tags", run.tags)):
        database.executemany(_TEXT.format(table), [(run_id, *item) for item in texts.items()])
    points = [(run_id, run.end_ms, *point) for point in run.points]
    latest = [*{point[2]: point for point in points}.values()]
    for table, chosen in (("metrics", points), ("latest_metrics", latest)):
        database.executemany(_POINT.format(table), chosen)
    if (data := run.dataset) is not None:
        which, input_id = (experiment, data.name, data.digest), uuid.uuid4().hex
        database.execute(_DATASET, (uuid.uuid4().hex, *which, *data.columns.values()))
        database.execute(_INPUT, (input_id, run_id, *which))
        database.execute("INSERT INTO input_tags VALUES (?, ?, ?)", (input_id, *CONTEXT))


# a schema with other columns may mean something else by those that are written
_FOLDER = """
    SELECT artifact_location FROM experiments WHERE experiment_id = ? AND lifecycle_stage = 'active'
    AND 49 = (SELECT count(*) FROM sqlite_master each, pragma_table_info(each.name)
        WHERE each.name IN ('runs', 'params', 'tags', 'metrics', 'latest_metrics', 'datasets',
            'inputs', 'input_tags'))
"""
_RUN = """
    INSERT INTO runs (run_uuid, name, user_id, status, start_time, end_time, artifact_uri,
        experiment_id, source_type, source_name, entry_point_name, source_version, lifecycle_stage)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'UNKNOWN', '', '', '', 'active')
"""
_TEXT = "INSERT INTO {} (run_uuid, key, value) VALUES (?, ?, ?)"
_POINT = """
    INSERT INTO {} (run_uuid, timestamp, key, value, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)
"""
_DATASET = """
    INSERT INTO datasets (dataset_uuid, experiment_id, name, digest, dataset_source_type,
        dataset_source, dataset_profile) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_INPUT = """
    INSERT INTO inputs (input_uuid, source_type, source_id, destination_type, destination_id)
    SELECT ?, 'DATASET', dataset_uuid, 'RUN', ? FROM datasets
    WHERE experiment_id = ? AND name = ? AND digest = ?
"""

_MOVED = """UPDATE experiments SET artifact_location = ?, creation_time = ?, last_update_time = ?
    WHERE ? = (SELECT version_num FROM alembic_version)"""


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
    """Create the tables; a copy of the last new store saves seconds of migrations."""
    kept = Unix("kbench").user_cache_path / f"mlflow-{version('mlflow')}.db"
    try:
        shutil.copyfile(kept, path)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            moved = f"{artifacts.as_uri()}/0", *[int(1000 * time.time())] * 2, _schema()
            if not database.execute(_MOVED, moved).rowcount:
                raise sqlite3.DatabaseError("of another schema")
    except (OSError, sqlite3.Error):
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        path.unlink(missing_ok=True)
        store: Any = SqlAlchemyStore
        store(engine_uri(path), artifacts.as_uri()).engine.dispose()
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, part := kept.with_suffix(f".{uuid.uuid4().hex}"))
            part.replace(kept)
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

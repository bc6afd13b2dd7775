"""The runs of a local store, read in milliseconds: by SQLite, without importing MLflow."""

from __future__ import annotations

import contextlib
import sqlite3

from kbench_mlflow.tracking.address import sqlite_path
from kbench_mlflow.tracking.database import read_only


def delivered_without_mlflow(uri: str, experiment_id: str) -> set[tuple[str, str]] | None:
    """Return (key, digest) of the live runs that are complete and not superseded.

    Empty where the store or the experiment is gone; None where the runs are not
    known without MLflow: not a local SQLite store, another schema, locked.
    """
    path = sqlite_path(uri)
    if path is None:
        return None
    if not path.exists() or not path.stat().st_size:
        return set()
    query = """
        SELECT cell_key.value, digest.value
        FROM runs JOIN experiments USING (experiment_id)
        JOIN tags cell_key ON cell_key.run_uuid = runs.run_uuid AND cell_key.key = 'kbench.cell_key'
        JOIN tags digest ON digest.run_uuid = runs.run_uuid AND digest.key = 'kbench.digest'
        LEFT JOIN tags gone ON gone.run_uuid = runs.run_uuid AND gone.key = 'kbench.superseded'
        WHERE runs.experiment_id = ? AND experiments.lifecycle_stage = 'active'
        AND runs.lifecycle_stage = 'active' AND runs.status IN ('FINISHED', 'FAILED')
        AND digest.value != '' AND gone.value IS NULL
    """
    try:
        with contextlib.closing(read_only(path, timeout=1.0)) as database:
            return {(key, digest) for key, digest in database.execute(query, (int(experiment_id),))}
    except (sqlite3.Error, ValueError):
        return None


def suites_without_mlflow(uri: str) -> list[str] | None:
    """Return the names of the experiments that have live runs of cells, in alphabetical order.

    Empty where the store is gone; None where they are not known without MLflow.
    """
    path = sqlite_path(uri)
    if path is None:
        return None
    if not path.exists() or not path.stat().st_size:
        return []
    query = """
        SELECT name FROM experiments WHERE lifecycle_stage = 'active' AND EXISTS (
            SELECT 1 FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid
            WHERE runs.experiment_id = experiments.experiment_id
            AND runs.lifecycle_stage = 'active' AND tags.key = 'kbench.cell_key'
        ) ORDER BY name
    """
    try:
        with contextlib.closing(read_only(path, timeout=1.0)) as database:
            return [name for (name,) in database.execute(query)]
    except sqlite3.Error:
        return None

"""Cells as MLflow runs: each written once, whatever happens, and read back as plain records.

The only module that imports MLflow, and only when a store is opened. It knows
nothing of suites or journals: it is given `Run` records, and makes the store
hold exactly them. Writing is an upsert identified by (experiment, key,
machine), so that everything may be sent again at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import json
import logging
import math
import os
import posixpath
import re
import socket
import sqlite3
import subprocess
import time
import urllib.request
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from kbench.errors import StoreError

# MLflow cuts longer values at their end, silently. (Keys: 250, digests: 36.)
_PARAM_CHARS, _TAG_CHARS, _NAME_CHARS, _KEY_CHARS, _DIGEST_CHARS = 6000, 8000, 500, 250, 36
_ITEMS_A_BATCH, _POINTS_A_BATCH, _RUNS_A_PAGE = 100, 800, 500

# Tags that are not content: who writes or wrote, and how far that went.
_BOOKKEEPING = {f"kbench.{name}" for name in ("host", "pid", "pid_start", "writing", "digest")}

# Seconds: to connect; to wait for a lock; within which a failed write is tried once more;
# to wait for another process that creates the same store.
_CONNECT_S, _LOCK_S, _RETRY_S, _CREATE_S = 5.0, 5.0, 2.0, 120.0

# MLflow's own defaults wait about four minutes for a server that is away, and send a request
# to create a run again when its reply is lost. No retries here: `Store.log` looks before it
# creates, and the journal delivers later.
_HTTP_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}
_QUIET_DEFAULTS = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}

# Where a write-ahead log works: it needs shared memory, which network file systems lack.
_LOCAL_FILE_SYSTEMS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay"}


# ---------------------------------------------------------------------------
# What a run should look like
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class DatasetInput:
    """The data of a run, as MLflow's dataset input shows them.

    Parameters
    ----------
    name : str
        The label of the dataset.
    digest : str
        Checksum of the data; the first 36 characters are stored.
    source : str
        Where they come from: a URL or a description.
    n_rows, n_features : int
        Their shape.
    """

    name: str
    digest: str
    source: str
    n_rows: int
    n_features: int


@dataclass(frozen=True)
class Run:
    """What one MLflow run should look like; one per cell.

    Parameters
    ----------
    key : str
        The cell's key (the suite line's for cells without data): with
        `machine`, the identity of the run within its experiment.
    machine : str
        The machine that computed it.
    name : str
        What people read: ``map + learner on dataset``.
    status : str
        ok, error, timeout, memory, crash, unavailable or skipped; FINISHED in
        MLflow for "ok", else FAILED.
    start_ms, end_ms : int
        Milliseconds since 1970, fixed per cell. MLflow never changes the
        start of a run, so that a retried cell keeps the start of its first
        try.
    params : mapping of str to str
        Longer values than 6,000 characters are cut in the middle, visibly.
    tags : mapping of str to str
        Further tags; ``kbench.`` is put before their names. Longer values
        than 8,000 characters are cut so that the end is kept.
    metrics : mapping of str to float
        Means over splits, logged at step `n_splits_done`. Values that are not
        finite are left out: MLflow stores infinity as 1.8e308.
    n_splits_done : int
        Number of splits behind the means.
    by_split : mapping of str to mapping of int to float
        Values of each split, logged as ``{name}_by_split`` with the index of
        the split as step.
    dataset : DatasetInput, optional
        The data.
    artifacts : mapping of str to str
        Relative path to text.

    Examples
    --------
    >>> run = Run("k1", "m1", "rff + ridge on iris", "ok", 0, 1, metrics={"accuracy": 0.5})
    >>> run.digest == Run("k1", "m1", "rff + ridge on iris", "ok", 0, 1).digest
    False
    """

    key: str
    machine: str
    name: str
    status: str
    start_ms: int
    end_ms: int
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    n_splits_done: int = 0
    by_split: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    dataset: DatasetInput | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Hash of all that is written, 32 hex digits (the tag ``kbench.digest``)."""
        return self._content.digest

    @cached_property
    def _content(self) -> _Content:
        return _Content.of(self)


@dataclass(frozen=True)
class Experiment:
    """An experiment of a store.

    Parameters
    ----------
    id, name : str
        MLflow's number of it, and its name.
    created : int
        When, in milliseconds since 1970: tells a store that was made anew
        from the one it replaced.
    """

    id: str
    name: str
    created: int


@dataclass(frozen=True)
class _Content:
    """A `Run` in the form in which MLflow accepts it."""

    name: str
    status: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]
    by_split: dict[str, dict[int, float]]
    splits: dict[str, str]
    dataset: tuple[str, str] | None
    artifacts: dict[str, str]
    digest: str

    @classmethod
    def of(cls, run: Run) -> _Content:
        plain = {name: float(value) for name, value in run.metrics.items()}
        names = _allowed([*plain, *(f"{name}_by_split" for name in run.by_split)])
        metrics = {
            name: value
            for name, value in zip(names, plain.values(), strict=False)
            if _finite(value)
        }
        by_split = {
            name: {int(step): float(value) for step, value in values.items() if _finite(value)}
            for name, values in zip(names[len(plain) :], run.by_split.values(), strict=True)
        }
        splits = _split_hashes(by_split)
        tags = {
            **{key if "." in key else f"kbench.{key}": value for key, value in run.tags.items()},
            "kbench.cell_key": run.key,
            "kbench.machine": run.machine,
            "kbench.status": run.status,
            "kbench.n_splits_done": str(run.n_splits_done),
            "kbench.splits": " ".join(f"{index}:{sha}" for index, sha in splits.items()),
        }
        dataset = None
        if run.dataset is not None:
            dataset = _text(run.dataset.name, _NAME_CHARS), run.dataset.digest[:_DIGEST_CHARS]
        content = cls(
            name=_text(run.name, _KEY_CHARS) or "-",
            status="FINISHED" if run.status == "ok" else "FAILED",
            params=_texts(run.params, _PARAM_CHARS),
            tags=_texts(tags, _TAG_CHARS),
            metrics=metrics,
            by_split=by_split,
            splits=splits,
            dataset=dataset,
            artifacts={_relative(path): _printable(text) for path, text in run.artifacts.items()},
            digest="",
        )
        # The start is left out: it cannot be changed, so that it is no reason to write.
        written = [vars(content), run.n_splits_done, run.end_ms, run.dataset and vars(run.dataset)]
        canonical = json.dumps(written, sort_keys=True, default=str)
        object.__setattr__(content, "digest", _sha(canonical)[:32])
        return content


def _finite(value: float) -> bool:
    return math.isfinite(value)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _printable(value: object) -> str:
    """Return text that every database and JSON can hold."""
    text = str(value).replace("\x00", "\ufffd")
    return text.encode("utf-8", "replace").decode("utf-8")


def _text(value: object, limit: int) -> str:
    """Return text of at most `limit` characters; the end matters more than the beginning."""
    text = _printable(value)
    if len(text) <= limit:
        return text
    mark = f" [... {len(text) - limit} or more characters cut ...] "
    head = (limit - len(mark)) // 8
    return text[:head] + mark + text[len(text) - (limit - len(mark) - head) :]


def _texts(values: Mapping[str, str], limit: int) -> dict[str, str]:
    names = _allowed(list(values))
    return {name: _text(value, limit) for name, value in zip(names, values.values(), strict=True)}


def _allowed(names: Sequence[str]) -> list[str]:
    """Put names into MLflow's alphabet, distinct ones staying distinct.

    >>> _allowed(["a b", "ä", "../x"])
    ['a b', '_', '_/x']
    >>> len(set(_allowed(["ä", "ö", "_"])))
    3
    """
    clean = []
    for name in names:
        parts = re.sub(r"[^A-Za-z0-9_.\-/ :]", "_", name).split("/")
        kept = "/".join("_" if part in (".", "..") else part for part in parts if part)
        clean.append(kept[:_KEY_CHARS] or "_")
    counts = Counter(clean)
    return [
        new if counts[new] == 1 or new == old else f"{new[: _KEY_CHARS - 7]}_{_sha(old)[:6]}"
        for old, new in zip(names, clean, strict=True)
    ]


def _relative(path: str) -> str:
    """Return an artifact's path, kept inside its run."""
    parts = [part for part in posixpath.normpath(_printable(path)).split("/") if part]
    return "/".join(part for part in parts if part not in (".", "..")) or "artifact"


def _n_splits(tags: Mapping[str, str]) -> int:
    """Read the number of splits done; 0 where somebody has edited the tag."""
    text = tags.get("kbench.n_splits_done", "")
    return int(text) if text.isdecimal() else 0


def _hashes_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Read `_split_hashes` back from their tag."""
    pairs = (each.partition(":") for each in tags.get("kbench.splits", "").split())
    return {index: sha for index, _, sha in pairs}


def _split_hashes(by_split: Mapping[str, Mapping[int, float]]) -> dict[str, str]:
    """Hash the values of each split, so that a later write sees which are already there."""
    rows: dict[int, list[str]] = {}
    for name in sorted(by_split):
        for index, value in by_split[name].items():
            rows.setdefault(index, []).append(f"{name}={value!r}")
    hashes = {str(index): _sha("\n".join(rows[index]))[:8] for index in sorted(rows)}
    if len(hashes) > 500:  # would not fit into a tag; then the whole or nothing is known
        return {"all": _sha(json.dumps(hashes))[:8]}
    return hashes


# ---------------------------------------------------------------------------
# Where the store is
# ---------------------------------------------------------------------------


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


def ui_address(server: str, experiment: Experiment) -> str:
    """Return the page of an experiment in MLflow's user interface.

    Parameters
    ----------
    server : str
        Address of the MLflow server, such as ``"http://127.0.0.1:5000"``.
    experiment : Experiment
        The experiment.

    Examples
    --------
    >>> ui_address("http://127.0.0.1:5000", Experiment("3", "uci", 0))
    'http://127.0.0.1:5000/#/experiments/3'
    """
    return f"{server.rstrip('/')}/#/experiments/{experiment.id}"


def _folder(folder: Path | None) -> Path:
    return (Path.cwd() if folder is None else folder).absolute()


def _sqlite_path(uri: str) -> Path | None:
    """Return the file of a local SQLite store; None for every other store."""
    found = re.match(r"sqlite(?:\+pysqlite)?:///([^?]+)", uri)
    if found is None or found[1] == ":memory:":
        return None
    return Path(found[1]).absolute()


def _read_only(path: Path, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=timeout)


def delivered_without_mlflow(uri: str, experiment_id: str) -> set[tuple[str, str]] | None:
    """Say which runs a local store holds, without importing MLflow.

    Parameters
    ----------
    uri : str
        The store.
    experiment_id : str
        The experiment.

    Returns
    -------
    set of (key, digest) or None
        The live runs that are complete and not superseded; empty where the
        store or the experiment is gone; None where it cannot be told: not a
        local SQLite store, another schema, locked.
    """
    path = _sqlite_path(uri)
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
        with contextlib.closing(_read_only(path, timeout=1.0)) as database:
            return {(key, digest) for key, digest in database.execute(query, (int(experiment_id),))}
    except (sqlite3.Error, ValueError):
        return None


# ---------------------------------------------------------------------------
# The store
# ---------------------------------------------------------------------------


@dataclass
class _Stored:
    """A run as the store has it."""

    run_id: str
    status: str
    start_ms: int
    end_ms: int
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]
    dataset: tuple[str, str] | None

    @classmethod
    def of(cls, run: Any) -> _Stored:
        datasets = [each.dataset for each in run.inputs.dataset_inputs] if run.inputs else []
        return cls(
            run_id=run.info.run_id,
            status=run.info.status,
            start_ms=run.info.start_time or 0,
            end_ms=run.info.end_time or 0,
            params=dict(run.data.params),
            tags=dict(run.data.tags),
            metrics=dict(run.data.metrics),
            dataset=(datasets[0].name, datasets[0].digest) if datasets else None,
        )

    @property
    def identity(self) -> tuple[str, str]:
        return self.tags["kbench.cell_key"], self.tags.get("kbench.machine", "")

    @property
    def complete(self) -> bool:
        return bool(self.tags.get("kbench.digest")) and self.status in ("FINISHED", "FAILED")

    @property
    def superseded(self) -> bool:
        return "kbench.superseded" in self.tags

    @property
    def preference(self) -> tuple[Any, ...]:
        """Which of several runs of one identity is kept: the greatest."""
        return self.complete, not self.superseded, self.end_ms, self.start_ms, self.run_id

    def is_written_as(self, content: _Content) -> bool:
        return self.tags.get("kbench.digest") == content.digest and self.status == content.status

    def can_become(self, content: _Content) -> bool:
        """Say whether additions turn it into `content`: MLflow changes no param and no point."""
        if not self.tags.get("kbench.digest"):
            # Begun and not finished: every step of the same can be repeated.
            return self.tags.get("kbench.writing") == content.digest
        splits = _hashes_of(self.tags)
        before, after = _n_splits(self.tags), _n_splits(content.tags)
        means = {
            name: value for name, value in self.metrics.items() if name not in content.by_split
        }
        return (
            self.params.items() <= content.params.items()
            and splits.items() <= content.splits.items()
            and self.metrics.keys() <= content.metrics.keys() | content.by_split.keys()
            and (before < after or means.items() <= content.metrics.items())
            and (before <= after or not means)
            and self.dataset in (None, content.dataset)
        )


class Store:
    """An MLflow store that holds one run per cell.

    Creating the object costs nothing and imports nothing; every method opens
    the store when it needs it. One object serves one thread.

    Parameters
    ----------
    uri : str
        MLflow's tracking URI.

    Notes
    -----
    A run counts as delivered when its tag ``kbench.digest`` is there and its
    status is FINISHED or FAILED: the tag goes with the last piece of content
    and the status after it, so that a write cut short is found and redone.
    The number of attempts is the caller's business: a method fails within
    seconds, with `StoreError`, and may be called again at any time.

    Examples
    --------
    >>> store = Store("sqlite:////home/me/mlflow.db")  # nothing is opened yet
    >>> store.name
    'sqlite:////home/me/mlflow.db'
    """

    def __init__(self, uri: str) -> None:
        path = _sqlite_path(uri)
        self.uri = uri if path is None else f"sqlite:///{path}"
        self._path = path
        self._client: Any = None
        self._indexes: dict[str, dict[tuple[str, str], _Stored]] = {}

    @property
    def name(self) -> str:
        """The URI without its password, as messages show it."""
        return self._hidden(self.uri)

    def open(self) -> None:
        """Import MLflow and open the store; create it where it is a local one.

        Raises
        ------
        StoreError
            One line: the server does not answer, the database is locked,
            damaged, half-migrated or of another MLflow version.
        """
        if self._client is not None:
            return
        if self._path is None:
            self._connect()
        for name, value in (_QUIET_DEFAULTS | _HTTP_DEFAULTS).items():
            os.environ.setdefault(name, value)
        with self._calls("cannot import MLflow"), _no_warnings():
            import mlflow
        with self._calls("cannot open"), _no_warnings():
            if self._path is not None:
                self._prepare(self._path)
            with _few_attempts(self.uri), _alone_on_server(self.uri):
                client = mlflow.MlflowClient(tracking_uri=self.uri)
                client.search_experiments(max_results=1)
        self._client = client

    def experiment(self, name: str) -> Experiment:
        """Return the experiment of that name; create or restore it.

        Parameters
        ----------
        name : str
            Its name, at most 500 characters.

        Raises
        ------
        StoreError
            The store cannot be opened, read or written.
        """
        self.open()
        with self._calls(f"cannot get experiment {name!r}"):
            found = self._client.get_experiment_by_name(name)
            if found is None:
                self._check_lock()
                try:
                    self._client.create_experiment(name, self._artifact_location(name))
                except Exception:  # another process was faster, or the reply was lost
                    if self._client.get_experiment_by_name(name) is None:
                        raise
                found = self._client.get_experiment_by_name(name)
            elif found.lifecycle_stage == "deleted":
                self._client.restore_experiment(found.experiment_id)
                self._indexes.pop(found.experiment_id, None)
            return Experiment(found.experiment_id, found.name, found.creation_time or 0)

    def log(self, experiment: Experiment, run: Run) -> str:
        """Make the store hold `run`, once.

        Nothing is written where the store has it already. A run that needs
        additions only (more splits, a retry that succeeded) is completed; one
        that would have to change a param or a point of a metric is deleted
        and written anew.

        Parameters
        ----------
        experiment : Experiment
            Where it belongs.
        run : Run
            What it should look like.

        Returns
        -------
        str
            MLflow's id of the run.

        Raises
        ------
        StoreError
            It may be written in part; calling again repairs that.
        """
        self.open()
        content = run._content
        started = time.monotonic()
        for last in (False, True):
            try:
                with self._calls(f"cannot write run {content.name!r}"):
                    return self._log(experiment, run, content)
            except StoreError:
                # What was stored before the failure is unknown: look again before writing.
                self._indexes.pop(experiment.id, None)
                if last or time.monotonic() - started > _RETRY_S:
                    raise
                time.sleep(0.2)
        raise AssertionError("unreachable")

    def supersede(
        self, experiment: Experiment, machine: str, planned: Mapping[str, Collection[str]]
    ) -> int:
        """Tag runs whose cell is planned under another key now.

        Parameters
        ----------
        experiment : Experiment
            Where they are.
        machine : str
            Whose runs.
        planned : mapping of str to collection of str
            Name of a run (`Run.name`, the labels of its cell) to all keys
            planned under it. Runs of other names are left alone.

        Returns
        -------
        int
            Number of runs tagged ``kbench.superseded = <new key>``.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        self.open()
        count = 0
        with self._calls("cannot mark superseded runs"):
            for (key, owner), stored in self._index(experiment).items():
                keys = planned.get(stored.tags.get("mlflow.runName", ""), ())
                if owner != machine or not keys or key in keys:
                    continue
                new = next(iter(keys))
                if stored.tags.get("kbench.superseded") != new:
                    self._client.set_tag(stored.run_id, "kbench.superseded", new)
                    stored.tags["kbench.superseded"] = new
                    count += 1
        return count

    def withdraw(self, experiment: Experiment, machine: str, keys: Collection[str]) -> int:
        """Delete runs without data of suite lines that have a real result now.

        Parameters
        ----------
        experiment : Experiment
            Where they are.
        machine : str
            Whose runs.
        keys : collection of str
            Keys of the suite lines; only runs of status "unavailable" go.

        Returns
        -------
        int
            Number of runs deleted.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        self.open()
        with self._calls("cannot delete runs without data"):
            index = self._index(experiment)
            gone = [
                identity
                for key in keys
                if (identity := (key, machine)) in index
                and index[identity].tags.get("kbench.status") == "unavailable"
            ]
            for identity in gone:
                self._client.delete_run(index[identity].run_id)
                del index[identity]
        return len(gone)

    def sweep(self, experiment: Experiment) -> int:
        """Give up runs that are RUNNING although their writer is gone.

        Runs of other hosts are left alone: whether their writer lives cannot
        be told from here.

        Parameters
        ----------
        experiment : Experiment
            Where they are.

        Returns
        -------
        int
            Number of runs whose status is KILLED now.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        self.open()
        count = 0
        with self._calls("cannot look for abandoned runs"):
            for run in self._runs(experiment.id, "attributes.status = 'RUNNING'"):
                if "kbench.cell_key" in run.tags and _owner_is_gone(run.tags):
                    self._client.set_terminated(run.run_id, "KILLED")
                    count += 1
        if count:
            self._indexes.pop(experiment.id, None)
        return count

    def read(self, experiment_name: str) -> list[dict[str, Any]]:
        """Return the complete, live runs of kbench, the newest per key and machine.

        Parameters
        ----------
        experiment_name : str
            Name of the experiment.

        Returns
        -------
        list of dict
            ``key, machine, name, status, n_splits_done, params, tags, metrics,
            run_id, experiment_id, start_ms, end_ms``, in the order of the start.
            Superseded runs and runs being written are left out; `metrics` are
            the means; tags have their full names. Empty where there is no such
            experiment.

        Raises
        ------
        StoreError
            The store cannot be read.
        """
        self.open()
        newest: dict[tuple[str, str], _Stored] = {}
        with self._calls(f"cannot read experiment {experiment_name!r}"):
            experiment = self._client.get_experiment_by_name(experiment_name)
            if experiment is None:
                return []
            for run in self._runs(experiment.experiment_id):
                if "kbench.cell_key" in run.tags and run.complete and not run.superseded:
                    other = newest.setdefault(run.identity, run)
                    newest[run.identity] = max(run, other, key=lambda each: each.preference)
        return [
            {
                "key": run.identity[0],
                "machine": run.identity[1],
                "name": run.tags.get("mlflow.runName", ""),
                "status": run.tags.get("kbench.status", ""),
                "n_splits_done": _n_splits(run.tags),
                "params": run.params,
                "tags": run.tags,
                "metrics": {
                    name: value
                    for name, value in run.metrics.items()
                    if not name.endswith("_by_split")
                },
                "run_id": run.run_id,
                "experiment_id": experiment.experiment_id,
                "start_ms": run.start_ms,
                "end_ms": run.end_ms,
            }
            for run in sorted(newest.values(), key=lambda each: (each.start_ms, each.run_id))
        ]

    # -- writing -----------------------------------------------------------

    def _log(self, experiment: Experiment, run: Run, content: _Content) -> str:
        index = self._index(experiment)
        stored = index.get((run.key, run.machine))
        if stored is not None and stored.is_written_as(content) and not stored.superseded:
            return stored.run_id
        self._check_lock()
        # Until the write is complete the index says nothing: a failure leaves no lie behind.
        index.pop((run.key, run.machine), None)
        if stored is not None and not stored.can_become(content):
            self._client.delete_run(stored.run_id)
            stored = None
        if stored is None:
            stored = self._begin(experiment, run, content)
        self._complete(stored, run, content)
        index[run.key, run.machine] = stored
        return stored.run_id

    def _begin(self, experiment: Experiment, run: Run, content: _Content) -> _Stored:
        """Create a run with its tags; RUNNING, with its owner, until it is complete."""
        tags = {
            **content.tags,
            **_owner(),
            "mlflow.runName": content.name,
            "mlflow.source.name": "kbench",
            "mlflow.user": _user(),
            "kbench.writing": content.digest,
        }
        created = self._client.create_run(
            experiment.id, start_time=run.start_ms, tags=tags, run_name=content.name
        )
        return _Stored(created.info.run_id, "RUNNING", run.start_ms, 0, {}, tags, {}, None)

    def _complete(self, stored: _Stored, run: Run, content: _Content) -> None:
        """Add what a run lacks; the last step is what makes it complete.

        That is the status of a run that is RUNNING, so that a kill before it
        is seen, and the digest, taken away first of all, of every other.
        """
        before = dict(stored.tags)
        if before.get("kbench.digest") != content.digest:
            self._set_tags(stored, content)
            if run.dataset is not None and stored.dataset is None:
                self._log_dataset(stored.run_id, run.dataset)
                stored.dataset = content.dataset
            missing = self._log_artifacts(stored.run_id, content.artifacts)
            if stored.status != "RUNNING":
                self._terminate(stored, run, content)
            self._log_numbers(stored, run, content, before, missing)
        elif stored.superseded:
            self._delete_tag(stored, "kbench.superseded")
        self._terminate(stored, run, content)

    def _terminate(self, stored: _Stored, run: Run, content: _Content) -> None:
        if (stored.status, stored.end_ms) != (content.status, run.end_ms):
            self._client.set_terminated(stored.run_id, content.status, run.end_ms)
            stored.status, stored.end_ms = content.status, run.end_ms

    def _set_tags(self, stored: _Stored, content: _Content) -> None:
        """Set tags anew; for a complete run this takes its digest away first of all."""
        tags = {**content.tags, "mlflow.runName": content.name}
        if stored.tags.get("kbench.digest"):
            # No content's digest: what is cut short from here on is written anew.
            tags |= {"kbench.digest": "", "kbench.writing": "additions"}
        changed = {name: text for name, text in tags.items() if stored.tags.get(name) != text}
        self._send(stored.run_id, tags=changed)
        stored.tags.update(changed)
        for name in list(stored.tags):
            if name.startswith("kbench.") and name not in content.tags and name not in _BOOKKEEPING:
                self._delete_tag(stored, name)

    def _log_numbers(
        self,
        stored: _Stored,
        run: Run,
        content: _Content,
        before: Mapping[str, str],
        missing_artifacts: str,
    ) -> None:
        """Log params and points that are not there yet; the digest comes last."""
        known: Mapping[str, str] = {}
        metrics = content.metrics
        if before.get("kbench.digest"):
            known = _hashes_of(before)
            if _n_splits(before) == run.n_splits_done:
                # `can_become` has made sure that values under the same step are the same.
                metrics = {k: v for k, v in metrics.items() if k not in stored.metrics}
        points = [(name, value, run.n_splits_done) for name, value in metrics.items()]
        for name, values in content.by_split.items():
            points += [
                (name, value, index)
                for index, value in sorted(values.items())
                if str(index) not in known and "all" not in known
            ]
        params = {k: v for k, v in content.params.items() if k not in stored.params}
        tags = {"kbench.digest": content.digest}
        if missing_artifacts:
            tags["kbench.artifacts"] = missing_artifacts
        self._send(stored.run_id, params, points, run.end_ms, tags)
        stored.params.update(params)
        stored.tags.update(tags)
        stored.metrics.update({name: value for name, value, _ in points})

    def _send(
        self,
        run_id: str,
        params: Mapping[str, str] | None = None,
        points: Sequence[tuple[str, float, int]] = (),
        stamp: int = 0,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log in batches that MLflow accepts, tags in the last ones."""
        from mlflow.entities import Metric, Param, RunTag

        batches: list[dict[str, list[Any]]] = []

        def fill(kind: str, entities: list[Any], size: int) -> None:
            for i in range(0, len(entities), size):
                batch = entities[i : i + size]
                if batches and kind not in batches[-1]:
                    batches[-1][kind] = batch
                else:
                    batches.append({kind: batch})

        fill("params", [Param(*each) for each in (params or {}).items()], _ITEMS_A_BATCH)
        fill(
            "metrics",
            [Metric(name, value, stamp, step) for name, value, step in points],
            _POINTS_A_BATCH,
        )
        fill("tags", [RunTag(*each) for each in (tags or {}).items()], _ITEMS_A_BATCH)
        for batch in batches:
            self._client.log_batch(run_id, **batch)

    def _delete_tag(self, stored: _Stored, name: str) -> None:
        self._client.delete_tag(stored.run_id, name)
        del stored.tags[name]

    def _log_dataset(self, run_id: str, data: DatasetInput) -> None:
        from mlflow.entities import Dataset, InputTag
        from mlflow.entities import DatasetInput as Input

        online = data.source.startswith(("http://", "https://"))
        dataset = Dataset(
            name=_text(data.name, _NAME_CHARS),
            digest=data.digest[:_DIGEST_CHARS],
            source_type="http" if online else "local",
            source=json.dumps({"url" if online else "uri": _text(data.source, _PARAM_CHARS)}),
            profile=json.dumps({"num_rows": data.n_rows, "num_features": data.n_features}),
        )
        for attempt in range(4):
            try:
                self._client.log_inputs(
                    run_id, [Input(dataset, [InputTag("mlflow.data.context", "evaluation")])]
                )
                return
            except Exception as error:
                # Two writers that bring the same new dataset: one breaks a unique key, and
                # finds the other's row when it tries again.
                if attempt == 3 or not re.search(r"unique|duplicate", str(error), re.IGNORECASE):
                    raise
                time.sleep(0.02 * 3**attempt)

    def _log_artifacts(self, run_id: str, artifacts: Mapping[str, str]) -> str:
        """Log texts; where a store takes no files, that costs them only and is told in a tag."""
        for path, text in artifacts.items():
            try:
                self._client.log_text(run_id, text, path)
            except Exception as error:
                reason = self._reason(error)
                if reason in _MEANINGS.values():
                    raise  # the store is away for now
                return f"not stored: {path}: {reason}"
        return ""

    # -- looking -----------------------------------------------------------

    def _index(self, experiment: Experiment) -> dict[tuple[str, str], _Stored]:
        """All runs of ours in an experiment: searched once, then kept up to date.

        A reply that was lost may have left two runs of one identity: all but
        the best are deleted.
        """
        if experiment.id not in self._indexes:
            index: dict[tuple[str, str], _Stored] = {}
            for run in self._runs(experiment.id):
                if "kbench.cell_key" in run.tags:
                    other = index.setdefault(run.identity, run)
                    if other.run_id != run.run_id:
                        worse, better = sorted([run, other], key=lambda each: each.preference)
                        self._client.delete_run(worse.run_id)
                        index[run.identity] = better
            self._indexes[experiment.id] = index
        return self._indexes[experiment.id]

    def _runs(self, experiment_id: str, where: str = "") -> Iterator[_Stored]:
        """Yield the live runs of an experiment, each once."""
        seen: set[str] = set()
        token = None
        while True:
            page = self._client.search_runs(
                [experiment_id], filter_string=where, max_results=_RUNS_A_PAGE, page_token=token
            )
            for run in page:
                if run.info.run_id not in seen:
                    seen.add(run.info.run_id)
                    yield _Stored.of(run)
            token = page.token
            if not token:
                return

    # -- opening -----------------------------------------------------------

    def _connect(self) -> None:
        """Fail at once where nothing listens, before MLflow is imported."""
        parts = urlsplit(self.uri)
        scheme = parts.scheme.split("+")[0]
        if scheme not in _PORTS or not parts.hostname:
            return
        if urllib.request.getproxies().get(scheme) and not urllib.request.proxy_bypass(
            parts.hostname
        ):
            return
        try:
            address = (parts.hostname, parts.port or _PORTS[scheme])
            socket.create_connection(address, timeout=_CONNECT_S).close()
        except (OSError, ValueError) as error:
            raise StoreError(f"the MLflow store {self.name} does not answer: {error}") from error

    def _prepare(self, path: Path) -> None:
        """Create a new SQLite store; refuse an existing one that MLflow could not use."""
        if not path.exists() or not path.stat().st_size:
            _create(path)
            return
        try:
            with contextlib.closing(_read_only(path, _LOCK_S)) as database:
                tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
                versions = (
                    [row[0] for row in database.execute("SELECT version_num FROM alembic_version")]
                    if "alembic_version" in tables
                    else []
                )
        except sqlite3.DatabaseError as error:
            raise StoreError(f"the MLflow store {self.name} cannot be read: {error}") from error
        # MLflow would migrate in place, and a migration cut short cannot be taken up again.
        if versions != [_schema()]:
            found = ", ".join(versions) or "none"
            raise StoreError(
                f"the MLflow store {self.name} has schema {found} where the installed MLflow "
                f"needs {_schema()}: if another version of MLflow made it, back it up and run "
                f"`mlflow db upgrade {self.name}`; if its creation was cut short, move it away, "
                "and a new one is made and filled"
            )

    def _check_lock(self) -> None:
        """Fail after seconds where another process holds the database; MLflow waits 20 s a call."""
        if self._path is None:
            return
        if not self._path.exists():
            raise StoreError(f"the MLflow store {self.name} has been removed")
        with contextlib.closing(
            sqlite3.connect(self._path, timeout=_LOCK_S, isolation_level=None)
        ) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("ROLLBACK")

    def _artifact_location(self, experiment_name: str) -> str | None:
        """Say where files go: beside a local database, not in whatever folder is the current."""
        if self._path is None:
            return None
        folder = re.sub(r"[^A-Za-z0-9_.-]", "_", experiment_name)[:80].lstrip(".") or "_"
        return (self._path.parent / "mlartifacts" / folder).as_uri()

    # -- failing -----------------------------------------------------------

    @contextlib.contextmanager
    def _calls(self, problem: str) -> Iterator[None]:
        """Turn whatever MLflow raises into one line, and keep its own words off the terminal."""
        with _quiet():
            try:
                yield
            except StoreError:
                raise
            except Exception as error:
                raise StoreError(
                    f"the MLflow store {self.name}: {problem}: {self._reason(error)}"
                ) from error

    def _reason(self, error: Exception) -> str:
        text = str(error) or type(error).__name__
        for sign, meaning in _MEANINGS.items():
            if sign in text:
                return meaning
        line = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return self._hidden(line if len(line) <= 300 else f"{line[:300]}...")

    def _hidden(self, text: str) -> str:
        """Return `text` without the password of the URI."""
        password = re.match(r"[^/]*//[^/@]*:([^/@]+)@", self.uri)
        return text.replace(f":{password[1]}@", ":***@") if password else text


_MEANINGS = {
    "Connection refused": "the server does not answer (connection refused)",
    "timed out": "the server did not answer in time",
    "Connection aborted": "the server closed the connection",
    "Connection reset": "the server closed the connection",
    "database is locked": "the database is locked by another process",
}


# ---------------------------------------------------------------------------
# A new local store
# ---------------------------------------------------------------------------


def _create(path: Path) -> None:
    """Create an SQLite store: migrated under another name, then put in place at once.

    A kill during MLflow's first migration leaves a database that never opens
    again, and two first migrations at once break each other.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}.{re.sub(r'[^A-Za-z0-9-]', '_', socket.gethostname())}."
    with _turn(path.parent) as alone:
        if path.exists() and path.stat().st_size:
            return
        if alone:
            _remove(path.parent, prefix)
        new = path.parent / f"{prefix}{os.getpid()}"
        try:
            _migrate(new, artifacts=path.parent / "mlartifacts")
            if path.exists() and not path.stat().st_size:
                path.unlink()
            try:
                os.link(new, path)
            except FileExistsError:
                return
            except OSError:  # a file system without links; others wait for their turn
                new.rename(path)
        finally:
            _remove(path.parent, new.name)


def _migrate(path: Path, artifacts: Path) -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    store: Any = SqlAlchemyStore
    store(f"sqlite:///{path}", str(artifacts)).engine.dispose()
    if _file_system(path) in _LOCAL_FILE_SYSTEMS:
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = WAL")


def _remove(folder: Path, prefix: str) -> None:
    """Remove unfinished stores, with SQLite's files beside them."""
    for path in folder.iterdir():
        if path.name.startswith(prefix):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[bool]:
    """Hold a lock on `folder`, which leaves no file behind; False where it has none to give."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _CREATE_S
        held = False
        while not held:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreError(f"another process is creating a store in {folder}") from None
                time.sleep(0.05)
            except OSError:  # a network file system without locks on folders
                break
        yield held
    finally:
        os.close(handle)


def _schema() -> str:
    """Return the schema of the installed MLflow."""
    from mlflow.store.db import utils

    revision: Any = utils._get_latest_schema_revision
    return str(revision())


def _file_system(path: Path) -> str:
    """Return the type of the file system of `path`; "" where the platform does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return ""
    target = path.resolve()
    found = [
        (len(point.parts), words[words.index("-") + 1])
        for words in mounts
        if target.is_relative_to(point := Path(words[4].encode().decode("unicode_escape")))
    ]
    return max(found, key=lambda each: each[0], default=(0, ""))[1]


@contextlib.contextmanager
def _few_attempts(uri: str) -> Iterator[None]:
    """Let MLflow try a database that is away for half a second, not for 100."""
    if urlsplit(uri).scheme in ("http", "https"):
        yield
        return
    from mlflow.store.db import utils

    attempts = getattr(utils, "MAX_RETRY_COUNT", None)
    try:
        if attempts is not None:
            utils.MAX_RETRY_COUNT = 2
        yield
    finally:
        if attempts is not None:
            utils.MAX_RETRY_COUNT = attempts


@contextlib.contextmanager
def _alone_on_server(uri: str) -> Iterator[None]:
    """Hold a lock of a PostgreSQL server while its store is opened: the first time migrates it.

    Two first migrations at once break each other; here nothing can be renamed.
    """
    if not uri.startswith("postgresql"):
        yield
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SET lock_timeout = '{int(_CREATE_S)}s'")
        connection.exec_driver_sql("SELECT pg_advisory_lock(hashtext('kbench'))")
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence MLflow, alembic and SQLAlchemy: what matters becomes an exception here."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic", "sqlalchemy")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        # The import of MLflow sets its logger's level; that is not undone.
        for logger, level in zip(loggers, levels, strict=True):
            if logger.level == logging.CRITICAL + 1:
                logger.setLevel(level)


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Ignore warnings; for opening only, since this acts on all threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---------------------------------------------------------------------------
# Who writes
# ---------------------------------------------------------------------------


def _owner() -> dict[str, str]:
    """Return the tags that tell the writing process from every other one."""
    return {
        "kbench.host": socket.gethostname(),
        "kbench.pid": str(os.getpid()),
        "kbench.pid_start": _process_start(os.getpid()),
    }


def _owner_is_gone(tags: Mapping[str, str]) -> bool:
    """Say whether the writer of a run is gone for sure."""
    pid = tags.get("kbench.pid", "")
    if tags.get("kbench.host") != socket.gethostname() or not pid.isdigit():
        return False
    return _process_start(int(pid)) != tags.get("kbench.pid_start")


def _process_start(pid: int) -> str:
    """Return when a process started, in words that no later process of that number shares.

    Empty where there is no such process.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
        command = ["ps", "-o", "lstart=", "-p", str(pid)]  # macOS
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"  # the name may hold blanks


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"

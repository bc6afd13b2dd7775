"""Opening a store; errors of MLflow become `StoreError`, in one line."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Iterator
from typing import Any

from kbench.errors import StoreError
from kbench.messages import printable
from kbench_mlflow.tracking import database
from kbench_mlflow.tracking.address import Address, engine_uri
from kbench_mlflow.tracking.faults import (
    Interrupted,
    asked_wait_s,
    is_transient,
    no_warnings,
    note_retry_after,
    one_line,
    quiet,
)
from kbench_mlflow.tracking.server import HTTP_DEFAULTS, alone_on_server, few_attempts, reach

QUIET_DEFAULTS = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


class Connection:
    """MLflow's client of the store at a tracking URI, made when it is first needed."""

    def __init__(self, uri: str) -> None:
        self.address = Address.parse(uri)
        self._path = self.address.path
        self.client: Any = None

    @property
    def name(self) -> str:
        """The address without its credentials."""
        return self.address.name

    def load(self) -> None:
        """Import the modules that `open` needs, which takes seconds; open nothing."""
        for name, value in (QUIET_DEFAULTS | HTTP_DEFAULTS).items():
            os.environ.setdefault(name, value)
        with self.calls("cannot import MLflow"), no_warnings():
            importlib.import_module("mlflow")
            if self._path is not None:
                importlib.import_module("mlflow.store.tracking.sqlalchemy_store")
            note_retry_after()

    def open(self) -> None:
        """Import MLflow and make the client; create the store where it is a local one."""
        if self.client is not None:
            return
        uri = self.address.uri
        if self._path is None:
            try:
                reach(uri)  # before MLflow's import, which takes seconds
            except (OSError, ValueError) as error:
                text = f"does not answer: {self.address.hide(str(error))}"
                raise StoreError(f"the MLflow store {self.name} {text}") from self._cause(error)
        self.load()
        import mlflow

        opening = self.calls("cannot open")
        with opening, no_warnings(), few_attempts(uri), alone_on_server(uri):
            if self._path is not None:
                database.prepare(self._path)
                uri = engine_uri(self._path)
            client = mlflow.MlflowClient(tracking_uri=uri)
            if self._path is not None:
                _sync_rarely(client)
                # idle connections may be to a file that was removed and replaced since
                _release(client)
            client.search_experiments(max_results=1)
        self.client = client

    def close(self) -> None:
        """Close the connections to a local database; the client opens new ones when used."""
        if self._path is not None and self.client is not None:
            with self.calls("cannot close"):
                _release(self.client)

    def check_lock(self) -> None:
        """Fail within seconds while another process holds a local store."""
        if self._path is not None:
            database.check_lock(self._path)

    def artifact_location(self, experiment_name: str) -> str | None:
        """Return the place of files: beside a local database, not in the current folder."""
        if self._path is None:
            return None
        folder = re.sub(r"[^A-Za-z0-9_.-]", "_", experiment_name)[:80].lstrip(".") or "_"
        return (self._path.parent / "mlartifacts" / folder).as_uri()

    @contextlib.contextmanager
    def calls(self, problem: str) -> Iterator[None]:
        """Turn errors of MLflow into one line, and keep its output off the terminal."""
        with quiet():
            try:
                yield
            except StoreError:
                raise
            except Exception as error:
                text = f"the MLflow store {self.name}: {problem}: {self.reason(error)}"
                if not is_transient(error):
                    raise StoreError(text) from self._cause(error)
                interrupted = Interrupted(text)
                interrupted.wait_s = asked_wait_s()
                raise interrupted from self._cause(error)

    def reason(self, error: Exception) -> str:
        """Return the message of an error of MLflow, in one line without credentials."""
        return printable(self.address.hide(one_line(error)))

    def _cause(self, error: Exception) -> Exception | None:
        """Return the error that a traceback may show: not one that repeats credentials."""
        chain: list[BaseException] = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) and before not in chain:
            chain.append(before)
        texts = [f"{each!s} {each!r}" for each in chain]
        return None if any(self.address.hide(text) != text for text in texts) else error


def _sync_rarely(client: Any) -> None:
    """Have SQLite flush its write-ahead log at checkpoints, not with each transaction.

    A kill loses nothing. A power failure may lose the last runs; the next command finds
    that the store lacks them, and writes them again.
    """
    from sqlalchemy import event

    engine = client._tracking_client.store.engine
    if not event.contains(engine, "connect", _sync_at_checkpoints):
        event.listen(engine, "connect", _sync_at_checkpoints)


def _sync_at_checkpoints(connection: Any, record: Any) -> None:
    cursor = connection.cursor()
    # without a write-ahead log, this could damage the file
    if cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",):
        cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _release(client: Any) -> None:
    """Close idle connections: MLflow pools them by URI for as long as the process lives."""
    client._tracking_client.store.engine.dispose()

"""Opening a store; errors of MLflow become `StoreError`, in one line."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

from kbench.errors import StoreError
from kbench.tracking import database
from kbench.tracking.faults import no_warnings, one_line, quiet, without_password
from kbench.tracking.location import sqlite_path
from kbench.tracking.server import HTTP_DEFAULTS, alone_on_server, few_attempts, reach

QUIET_DEFAULTS = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}


class Connection:
    """MLflow's client of the store at a tracking URI, made when it is first needed."""

    def __init__(self, uri: str) -> None:
        self._path = sqlite_path(uri)
        self.uri = uri if self._path is None else f"sqlite:///{self._path}"
        self.client: Any = None

    @property
    def name(self) -> str:
        """The URI without its password."""
        return without_password(self.uri, self.uri)

    def open(self) -> None:
        """Import MLflow and make the client; create the store where it is a local one."""
        if self.client is not None:
            return
        if self._path is None:
            try:
                reach(self.uri)  # before MLflow's import, which takes seconds
            except (OSError, ValueError) as error:
                raise StoreError(
                    f"the MLflow store {self.name} does not answer: {error}"
                ) from error
        for name, value in (QUIET_DEFAULTS | HTTP_DEFAULTS).items():
            os.environ.setdefault(name, value)
        with self.calls("cannot import MLflow"), no_warnings():
            import mlflow
        with self.calls("cannot open"), no_warnings():
            if self._path is not None:
                database.prepare(self._path)
            with few_attempts(self.uri), alone_on_server(self.uri):
                client = mlflow.MlflowClient(tracking_uri=self.uri)
                if self._path is not None:
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
                raise StoreError(
                    f"the MLflow store {self.name}: {problem}: {self.reason(error)}"
                ) from error

    def reason(self, error: Exception) -> str:
        """Return the message of an error of MLflow, in one line without the password."""
        return without_password(one_line(error), self.uri)


def _release(client: Any) -> None:
    """Close idle connections: MLflow pools them by URI for as long as the process lives."""
    client._tracking_client.store.engine.dispose()

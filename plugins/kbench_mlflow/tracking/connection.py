"""Opening a store, which may be unreachable; errors of MLflow become `StoreError`, in one line.

Its other errors, warnings and output are silenced, also while it saves a model. A server is asked
quickly whether it answers, and opened by one process at a time.
"""

import contextlib
import importlib
import logging
import os
import re
import socket
import threading
import urllib.request
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kbench.errors import StoreError
from kbench.messages import printable
from kbench_mlflow.tracking import database
from kbench_mlflow.tracking.address import Address, engine_uri
from kbench_mlflow.tracking.database import CREATE_S
from kbench_mlflow.tracking.run import CellRun, Client

_AWAY = {
    "Connection refused": "the server does not answer (connection refused)",
    "timed out": "the server did not answer in time",
    "Connection aborted": "the server closed the connection",
    "Connection reset": "the server closed the connection",
    "database is locked": "the database is locked by another process",
}


_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_STATUS = re.compile(r"too many (\d{3}) error responses|failed with error code (\d{3})")

RETRY_AFTER_S = 30.0
"""Longest wait that a server may ask for; a run that would wait longer is delivered later."""

_asked = threading.local()


class Interrupted(StoreError):
    """A failure that another attempt may not meet: the server is busy, restarts, or closed it.

    `wait_s` is what the server asks to wait (``Retry-After``), 0 without that header.
    """

    wait_s: float = 0.0


def is_transient(error: Exception) -> bool:
    """Return whether another attempt may succeed, as far as a library's error says it."""
    if away(error):
        return True
    if found := _STATUS.search(str(error)):
        return int(found[1] or found[2]) in _TRANSIENT
    status = getattr(error, "get_http_status_code", None)
    # MLflow's default is 500, for its own complaints about arguments too
    return (
        getattr(error, "json", None) is not None and status is not None and (status() in _TRANSIENT)
    )


def asked_wait_s() -> float:
    """Return and reset the ``Retry-After`` of the last failed request of this thread."""
    wait_s: float = getattr(_asked, "wait_s", 0.0)
    _asked.wait_s = 0.0
    return wait_s


def note_retry_after() -> None:
    """Have MLflow's HTTP sessions note what servers ask to wait: its errors do not say it."""
    from mlflow.utils import request_utils

    plain: Any = vars(request_utils)["Retry"]
    if hasattr(plain, "notes_retry_after"):
        return

    class Noting(plain):  # type: ignore[misc]
        notes_retry_after = True

        def increment(self, *args: object, **named: object) -> object:
            if (response := named.get("response")) is not None:
                with contextlib.suppress(Exception):  # a header that no RFC knows
                    _asked.wait_s = float(self.get_retry_after(response) or 0.0)
            return super().increment(*args, **named)

    vars(request_utils)["Retry"] = Noting


def away(error: Exception) -> str:
    """Return why the store is unreachable for now; empty for other errors."""
    return next((meaning for sign, meaning in _AWAY.items() if sign in str(error)), "")


def one_line(error: Exception) -> str:
    """Return the message of an error, in one line of bounded length."""
    text = str(error) or type(error).__name__
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return away(error) or (line if len(line) <= 300 else f"{line[:300]}...")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the logs of MLflow, alembic and SQLAlchemy: errors are raised as well."""
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


# MLflow's own defaults wait about four minutes for a server that is away, and send a request
# to create a run again when its reply is lost. No retries here: `Store.log` looks before it
# creates, and the journal delivers later.
HTTP_DEFAULTS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10"}

_CONNECT_S = 5.0
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


def reach(uri: str) -> None:
    """Fail at once if no server listens, with `OSError` or `ValueError`."""
    parts = urlsplit(uri)
    scheme = parts.scheme.split("+")[0]
    if scheme not in _PORTS or not parts.hostname:
        return
    if urllib.request.getproxies().get(scheme) and not urllib.request.proxy_bypass(parts.hostname):
        return
    address = (parts.hostname, parts.port or _PORTS[scheme])
    socket.create_connection(address, timeout=_CONNECT_S).close()


@contextlib.contextmanager
def few_attempts(uri: str) -> Iterator[None]:
    """Limit MLflow's attempts on an unreachable database to half a second, not 100."""
    if urlsplit(uri).scheme in ("http", "https"):
        yield
        return
    from mlflow.store.db import utils

    attempts = getattr(utils, "MAX_RETRY_COUNT", 0)
    try:
        utils.MAX_RETRY_COUNT = 2
        yield
    finally:
        utils.MAX_RETRY_COUNT = attempts


@contextlib.contextmanager
def alone_on_server(uri: str) -> Iterator[None]:
    """Hold a lock of a PostgreSQL server while its store is opened: the first time migrates it.

    Two first migrations at once break each other; here nothing can be renamed.
    """
    if not uri.startswith("postgresql"):
        yield
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SET lock_timeout = '{int(CREATE_S)}s'")
        connection.exec_driver_sql("SELECT pg_advisory_lock(hashtext('kbench'))")
        yield


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
        self.client: Client = None

    def load(self) -> None:
        """Import what opening a local store needs, which takes seconds; open nothing.

        Nothing is imported for a server: `open` asks first whether it answers.
        """
        if self._path is not None:
            self._import()

    def _import(self) -> None:
        for name, value in (QUIET_DEFAULTS | HTTP_DEFAULTS).items():
            os.environ.setdefault(name, value)
        # for opening only: it acts on all threads
        with self.calls("cannot import MLflow"), warnings.catch_warnings(action="ignore"):
            importlib.import_module("mlflow")
            if self._path is not None:
                importlib.import_module("mlflow.store.tracking.sqlalchemy_store")
            note_retry_after()

    def open(self) -> None:
        """Import MLflow and make the client; create the store where it is a local one.

        Causes of a `StoreError`: the server does not answer, the database is
        locked, damaged, half-migrated or of another MLflow version.
        """
        if self.client is not None:
            return
        uri = self.address.uri
        if self._path is None:
            try:
                reach(uri)  # before MLflow's import, which takes seconds
            except (OSError, ValueError) as error:
                text = f"does not answer: {self.address.hide(str(error))}"
                raise StoreError(f"the MLflow store {self.address.name} {text}") from self._cause(
                    error
                )
        self._import()
        import mlflow

        opening, no_warnings = self.calls("cannot open"), warnings.catch_warnings(action="ignore")
        with opening, no_warnings, few_attempts(uri), alone_on_server(uri):
            if self._path is not None:
                database.prepare(self._path)
                uri = engine_uri(self._path)
            client = mlflow.MlflowClient(tracking_uri=uri)
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

    def insert(self, experiment_id: str, runs: Sequence[CellRun]) -> list[str]:
        """Write whole runs into a local store, all or none; return their ids."""
        return [] if self._path is None else database.insert_runs(self._path, experiment_id, runs)

    def artifact_location(self, experiment_name: str) -> str | None:
        """Return the place of files: next to a local database, not in the current folder."""
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
                text = f"the MLflow store {self.address.name}: {problem}: {self.reason(error)}"
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


def _release(client: Client) -> None:
    """Close idle connections: MLflow pools them by URI for as long as the process lives."""
    client._tracking_client.store.engine.dispose()


def save_model(pipeline: Any, folder: Path, example: Any, requirements: Sequence[str]) -> None:
    """Save a fitted pipeline as an MLflow model with signature and input example.

    It is loaded with ``mlflow.sklearn.load_model(folder)``, or served with
    ``mlflow models serve -m folder``. MLflow pickles it: load only what you trust.
    The folder must not exist; `example` are a few rows as the pipeline takes
    them, `requirements` packages for pip. A `StoreError` says why MLflow cannot
    save it.
    """
    for name, value in QUIET_DEFAULTS.items():
        os.environ.setdefault(name, value)
    with quiet(), warnings.catch_warnings(action="ignore"):
        import mlflow.sklearn
        from mlflow.models import infer_signature
    # MLflow's import sets the levels of its loggers, so they are silenced again
    with quiet(), warnings.catch_warnings(action="ignore"):
        try:
            mlflow.sklearn.save_model(
                pipeline,
                str(folder),
                signature=infer_signature(example, pipeline.predict(example)),
                input_example=example,
                pip_requirements=list(requirements),
                serialization_format="cloudpickle",
            )
        except Exception as error:  # errors of MLflow have no common base
            raise StoreError(f"MLflow cannot save this model: {one_line(error)}") from error

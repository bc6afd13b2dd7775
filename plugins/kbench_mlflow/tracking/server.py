"""A store on a server: checked quickly, opened by one process at a time."""

from __future__ import annotations

import contextlib
import socket
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from kbench_mlflow.tracking.database import CREATE_S

# MLflow's own defaults wait about four minutes for a server that is away, and send a request
# to create a run again when its reply is lost. No retries here: `Store.log` looks before it
# creates, and the journal delivers later.
HTTP_DEFAULTS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}

_CONNECT_S = 5.0
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


def reach(uri: str) -> None:
    """Fail at once where nothing listens, with `OSError` or `ValueError`."""
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
    """Limit MLflow's attempts on a database that is away to half a second, not 100."""
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

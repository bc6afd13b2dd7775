"""Errors, warnings and output of MLflow: one line is kept, the rest is silenced."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from kbench.errors import StoreError

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
    """A failure that another attempt may not meet: the server is busy, restarts, or hung up.

    `wait_s` is what the server asks to wait (``Retry-After``), 0 where it does not say.
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
    """Return and forget the ``Retry-After`` of the last refusal in this thread."""
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

        def increment(
            self,
            method: Any = None,
            url: Any = None,
            response: Any = None,
            *args: Any,
            **named: Any,
        ) -> Any:
            if response is not None:
                with contextlib.suppress(Exception):  # a header that no RFC knows
                    _asked.wait_s = float(self.get_retry_after(response) or 0.0)
            return super().increment(method, url, response, *args, **named)

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


@contextlib.contextmanager
def no_warnings() -> Iterator[None]:
    """Ignore warnings; for opening only, since this acts on all threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

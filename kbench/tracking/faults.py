"""Errors, warnings and output of MLflow: one line is kept, the rest is silenced."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator

_AWAY = {
    "Connection refused": "the server does not answer (connection refused)",
    "timed out": "the server did not answer in time",
    "Connection aborted": "the server closed the connection",
    "Connection reset": "the server closed the connection",
    "database is locked": "the database is locked by another process",
}


def away(error: Exception) -> str:
    """Return why the store is unreachable for now; empty for other errors."""
    return next((meaning for sign, meaning in _AWAY.items() if sign in str(error)), "")


def one_line(error: Exception) -> str:
    """Return the message of an error, in one line of bounded length."""
    text = str(error) or type(error).__name__
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return away(error) or (line if len(line) <= 300 else f"{line[:300]}...")


def without_password(text: str, uri: str) -> str:
    """Return `text` without the password of the store's URI."""
    password = re.match(r"[^/]*//[^/@]*:([^/@]+)@", uri)
    return text.replace(f":{password[1]}@", ":***@") if password else text


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

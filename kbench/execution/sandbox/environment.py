"""The environment of processes that run code of plugins: without credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(
    r"(^|_)(AWS_.+|\w*(PASSWORD|PASSWD|PASSPHRASE|SECRETS?|TOKENS?|APIKEY|CREDENTIALS?)"
    r"|KEYS?|PASS|AUTH|PAT|DSN)(_|$)",
    re.IGNORECASE,
)
_VALUE = re.compile(r"://[^/\s@]*:[^/\s@]+@")
"""An address with a password, as of a database or a proxy."""


def is_credential(name: str, value: str) -> bool:
    """Tell whether an environment variable seems to hold a credential.

    >>> is_credential("OPENML_APIKEY", "x"), is_credential("TOKENIZERS_PARALLELISM", "true")
    (True, False)
    >>> is_credential("DATABASE_URL", "postgresql://me:secret@host/db")
    True
    """
    return bool(_NAME.search(name) or _VALUE.search(value))


def without_credentials(variables: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables without those that seem to hold credentials."""
    return {name: value for name, value in variables.items() if not is_credential(name, value)}

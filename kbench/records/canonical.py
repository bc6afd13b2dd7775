"""The canonical JSON form of refs, parameters and protocols: hashed, and sent to tasks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from kbench.records import Protocol, Ref, Search
from kbench.records._json import encodable

__all__ = ["digest", "dumps", "encodable", "from_json", "to_json"]

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
"""`json.dumps` would make one for each value."""


def to_json(value: Any) -> Any:
    """Return a parameter value, ref or protocol as plain JSON values."""
    if isinstance(value, Ref):
        return {"name": value.name, "params": {k: to_json(v) for k, v in value.params.items()}}
    if isinstance(value, Search):
        return {"search": [to_json(item) for item in value.values]}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Protocol):
        return {k: to_json(v) for k, v in dataclasses.asdict(value).items()}
    return value


def from_json(value: Any) -> Any:
    """Return the parameter value or ref that `to_json` wrote."""
    if isinstance(value, dict) and "search" in value:
        return Search(tuple(from_json(item) for item in value["search"]))
    if isinstance(value, dict):
        return Ref(value["name"], {k: from_json(v) for k, v in value["params"].items()})
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    return value


def dumps(value: Any) -> str:
    """Write plain JSON values in the one form that is hashed.

    >>> dumps({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    return _ENCODER.encode(value)


def digest(value: Any) -> str:
    """Return the SHA-256 of plain JSON values (hex)."""
    # names of files that are not valid text have lone surrogates
    return hashlib.sha256(dumps(value).encode("utf-8", "surrogatepass")).hexdigest()

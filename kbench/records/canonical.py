"""Records as plain JSON values; the canonical form of refs and protocols is hashed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

from kbench.records._suite import Protocol, Ref, Tune

# Any JSON value.
Json = Any

JsonObject = dict[str, Json]

# Defaults of the fields that protocols have got since results were first stored.
_LATER = (
    *(("target_scale", "linear"), ("threshold_metric", "none")),
    *(("device", "cpu"), ("other_methods", "host")),
)

# `json.dumps` would make one for each value.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_json(value: object) -> Any:
    """Return a parameter value, ref or protocol as plain JSON values."""
    if isinstance(value, Ref):
        return {"name": value.name, "params": {k: to_json(v) for k, v in value.params.items()}}
    if isinstance(value, Tune):
        return {"tune": [to_json(item) for item in value.values]}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Protocol):
        # keys of results that were stored without the later fields
        return {k: to_json(v) for k, v in vars(value).items() if (k, v) not in _LATER}
    return value


def to_json_with_label(ref: Ref) -> dict[str, Any]:
    """Return a ref as JSON with its label, which is in no key."""
    return {**to_json(ref), "label": ref.label}


def from_json(value: object) -> Any:
    """Return the value, ref or mapping that `to_json` or `to_json_with_label` wrote."""
    if isinstance(value, dict) and "tune" in value:
        return Tune(tuple(from_json(item) for item in value["tune"]))
    if isinstance(value, dict) and "mapping" in value:
        return {from_json(name): from_json(each) for name, each in value["mapping"]}
    if isinstance(value, dict):
        params = {k: from_json(v) for k, v in value["params"].items()}
        return Ref(value["name"], params, value.get("label", ""))
    return tuple(map(from_json, value)) if isinstance(value, list) else value


def read_protocol(values: Mapping[str, object]) -> Protocol:
    """Return the protocol that `to_json` wrote."""
    return Protocol(**{name: from_json(value) for name, value in values.items()})


def dumps(value: object) -> str:
    """Write plain JSON values in the one form that is hashed.

    >>> dumps({"b": 1.0, "a": [True, None]})
    '{"a":[true,null],"b":1.0}'
    """
    return _ENCODER.encode(value)


def digest(value: object) -> str:
    """Return the SHA-256 of plain JSON values (hex)."""
    # names of files that are not valid text have lone surrogates
    return hashlib.sha256(dumps(value).encode("utf-8", "surrogatepass")).hexdigest()


def encodable(value: object) -> Any:
    r"""Write lone surrogates in the strings of a JSON value as escapes: UTF-8 has none.

    >>> encodable({"error": ["\udcff is not a letter"]})
    {'error': ['\\udcff is not a letter']}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [encodable(each) for each in value]
    if isinstance(value, Mapping):
        return {encodable(name): encodable(each) for name, each in value.items()}
    return value


class AsJson:
    """A frozen dataclass of plain values, whose sequences are lists in JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read what `to_json` returned, also in another version; ignore unknown fields.

        Raises TypeError if a field without a default is missing.
        """
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
                if name in names
            }
        )

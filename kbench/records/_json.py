"""Records as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self


def encodable(value: Any) -> Any:
    r"""Write lone surrogates in the texts of a JSON value as escapes: UTF-8 has none.

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
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned, perhaps of another version; ignore unknown fields.

        TypeError is raised where a field without a default is missing.
        """
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
                if name in names
            }
        )

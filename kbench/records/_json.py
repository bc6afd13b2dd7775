"""Records as plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self


class AsJson:
    """A frozen dataclass of plain values, whose sequences are lists in JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned, perhaps of another version; ignore unknown fields.

        Raises
        ------
        TypeError
            A field without a default is missing.
        """
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
                if name in names
            }
        )

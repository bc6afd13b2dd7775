"""Suite files as TOML gives them, before they are checked.

It imports no pydantic: completions of the command line need it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from kbench.errors import SuiteError
from kbench.planning.lines import LISTS
from kbench.records import TaskType
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry

OWN_TABLES: Mapping[TaskType, str] = {
    "classification": "own-table",
    "regression": "own-table-regression",
}
"""Suites that `kbench run` reads, by the task of the target."""

FIRST_ROUNDS: Mapping[TaskType, str] = {task: f"{name}-first" for task, name in OWN_TABLES.items()}
"""Suites whose methods it measures first in a limited time."""


def parsed(text: str, name: str) -> dict[str, Any]:
    """Parse the tables of a suite file.

    Raises
    ------
    SuiteError
        The text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"the file of suite {name!r} is not valid TOML: {error}") from error


def tables_of(raw: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return (place, table) of the file itself, and of each block that is a table."""
    blocks = raw.get("block")
    numbered = enumerate(blocks if isinstance(blocks, list) else ())
    return [
        ("", raw),
        *((f"block[{i}].", block) for i, block in numbered if isinstance(block, dict)),
    ]


def lists_of(
    raw: dict[str, Any], lists: Mapping[str, Kind]
) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield (place, key, lines) of every list that can be read at all."""
    for place, table in tables_of(raw):
        for key in lists:
            if isinstance(table.get(key), list):
                yield f"{place}{key}", key, table[key]


def has_rules(raw: dict[str, Any]) -> bool:
    """Tell whether a suite file has rules on the size of data."""
    blocks = [table for _, table in tables_of(raw)][1:]
    return (
        "rule" in raw
        or any("when" in block for block in blocks)
        or any(_has_share(given) for _, _, given in lists_of(raw, LISTS))
    )


def is_share(value: Any) -> bool:
    """Tell whether a parameter's value depends on the number of rows."""
    return isinstance(value, dict) and "share_of_rows" in value and "name" not in value


def _has_share(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return is_share(value) or any(map(_has_share, inner))


def runnable(registry: Registry) -> list[str]:
    """Return the names of the installed suites that can be run by themselves."""
    names = []
    for name, file in sorted(registry.all("suite").items()):
        try:
            rules = has_rules(tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            rules = False  # running it reports what is wrong with it
        if not rules:
            names.append(name)
    return names

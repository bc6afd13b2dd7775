"""Suite files as TOML gives them, before they are checked.

It imports no pydantic: completions of the command line need it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kbench.errors import SuiteError
from kbench.planning.lines import LISTS
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry


def parsed(text: str, name: str) -> dict[str, Any]:
    """Parse the tables of a suite file.

    SuiteError is raised where the text is not TOML.
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


def experiment_of(suite: str) -> str:
    """Return the name of a suite's experiment: that in its file, else the file's stem."""
    path = Path(suite)
    if path.suffix != ".toml":
        return suite
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8")).get("name")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        own = None  # the runs outlive the file
    return own if isinstance(own, str) else path.stem

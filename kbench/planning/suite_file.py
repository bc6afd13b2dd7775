"""Suite files: TOML text becomes a `Suite`, or all its mistakes at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kbench.errors import SuiteError
from kbench.messages import did_you_mean
from kbench.planning.cells import indistinct_cells
from kbench.planning.lines import LISTS, Lines, parameter_problems
from kbench.planning.schema import BlockTable, SuiteFile, explained
from kbench.records import Block, Limits, Published, Suite
from kbench.registry.registry import Registry


def read(text: str, name: str, registry: Registry) -> Suite:
    """Read a suite file.

    Parameters
    ----------
    text : str
        The TOML text.
    name : str
        Name of the suite where the file gives none: the file's stem.
    registry : Registry
        Where the names of components are looked up.

    Returns
    -------
    Suite

    Raises
    ------
    SuiteError
        With every mistake of the file, parameters of components included; a
        TOML syntax error stands alone.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"the file of suite {name!r} is not TOML: {error}") from error
    problems: list[str] = []
    file = None
    try:
        file = SuiteFile.model_validate(raw)
    except ValidationError as error:
        problems += explained(error, raw)
    problems += _missing_lists(raw)
    lines = {place: Lines(place, given, registry) for place, given in _lists_of(raw)}
    for each in lines.values():
        problems += each.problems
    if problems:
        # Names are known now, so parameters can be checked in the same breath;
        # this imports the components, which a right file does much later.
        for each in lines.values():
            problems += parameter_problems(each.placed, each.kind, registry)
    if problems or file is None:
        raise SuiteError(*problems)
    blocks = tuple(
        Block(
            **{key: _own_or_shared(lines, f"block[{number}].", key).refs for key in LISTS},
            protocol=(table.protocol or file.protocol).record(),
        )
        for number, table in enumerate(file.block or [BlockTable()])
    )
    suite = Suite(
        name=file.name or name,
        blocks=blocks,
        limits=Limits(**file.limits.model_dump()),
        published=tuple(Published(**each.model_dump()) for each in file.published),
        measure=file.compared,
    )
    problems = indistinct_cells(suite, registry)
    if problems:
        raise SuiteError(*problems)
    return suite


def find(name: str, registry: Registry) -> tuple[str, str]:
    """Return text and name of a suite, given the name of an installed one or a path.

    Raises
    ------
    SuiteError
        There is neither.
    """
    suites = registry.all("suite")
    if name in suites:
        return suites[name].read_text(encoding="utf-8"), name
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        try:
            return path.read_text(encoding="utf-8"), path.stem
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise SuiteError(f"cannot read the suite file {name}: {reason}") from error
    raise SuiteError(f"no suite is called {name!r}{did_you_mean(name, suites)}")


def _own_or_shared(lines: Mapping[str, Lines], place: str, key: str) -> Lines:
    """Return a block's list; a block without one takes that at the top of the file."""
    return lines.get(f"{place}{key}") or lines[key]


def _missing_lists(raw: Mapping[str, Any]) -> list[str]:
    """Say which lists are neither in a block nor at the top."""
    wanting = [key for key in LISTS if key not in raw]
    if "block" not in raw:
        return [f"{key}: missing; a list of {key} is needed" for key in wanting]
    blocks = raw["block"] if isinstance(raw["block"], list) else []
    return [
        f"block[{number}].{key}: missing, and there is none at the top of the file either"
        for number, block in enumerate(blocks)
        for key in wanting
        if isinstance(block, dict) and key not in block
    ]


def _lists_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, list[Any]]]]:
    """Yield (place, (key, lines)) of every list that can be read at all."""
    tables: list[tuple[str, Any]] = [("", raw)]
    if isinstance(raw.get("block"), list):
        tables += [(f"block[{i}].", block) for i, block in enumerate(raw["block"])]
    for place, table in tables:
        for key in LISTS:
            if isinstance(table, dict) and isinstance(table.get(key), list):
                yield f"{place}{key}", (key, table[key])

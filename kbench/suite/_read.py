"""Suite files: TOML text becomes a `Suite`, or all its mistakes at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kbench.errors import SuiteError
from kbench.records import Block, Limits, Published, Suite
from kbench.registry import Registry, did_you_mean
from kbench.suite._lines import LISTS, Lines, parameter_problems
from kbench.suite._model import SuiteFile, explained
from kbench.suite._plan import indistinct_cells


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
        raise SuiteError(f"this is not TOML: {error}") from error
    problems: list[str] = []
    file = None
    try:
        file = SuiteFile.model_validate(raw)
    except ValidationError as error:
        problems += explained(error, raw)
    if not problems or "block" not in raw:
        problems += _misplaced_lists(raw)
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
    places = ("",) if not file.block else tuple(f"block[{i}]." for i in range(len(file.block)))
    own = [None] if not file.block else [block.protocol for block in file.block]
    blocks = tuple(
        Block(
            datasets=lines[f"{place}datasets"].refs,
            feature_maps=lines[f"{place}feature_maps"].refs,
            learners=lines[f"{place}learners"].refs,
            protocol=(protocol or file.protocol).record(),
        )
        for place, protocol in zip(places, own, strict=True)
    )
    suite = Suite(
        name=file.name or name,
        blocks=blocks,
        limits=Limits(**file.limits.model_dump()),
        published=tuple(Published(**each.model_dump()) for each in file.published),
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


def _misplaced_lists(raw: Mapping[str, Any]) -> list[str]:
    """Say where lists are missing, or stand both at the top and in blocks."""
    given = [key for key in LISTS if key in raw]
    if "block" in raw:
        return [f"{key}: a file with [[block]] tables has its lists in them" for key in given]
    return [f"{key}: missing; a list of {key} is needed" for key in LISTS if key not in raw]


def _lists_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, list[Any]]]]:
    """Yield (place, (key, lines)) of every list that can be read at all."""
    tables: list[tuple[str, Any]] = [("", raw)]
    if isinstance(raw.get("block"), list):
        tables = [(f"block[{i}].", block) for i, block in enumerate(raw["block"])]
    for place, table in tables:
        for key in LISTS:
            if isinstance(table, dict) and isinstance(table.get(key), list):
                yield f"{place}{key}", (key, table[key])

"""Parameters of a method that are given instead of being searched for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kbench.errors import SuiteError
from kbench.features import LISTS, PlannedCell, Registry, parameter_problems
from kbench.records import Ref, Suite

SIDES = {"feature_map": "feature_maps", "learner": "learners"}
"""Sides of a method, and the lists of a block that have them."""


def parsed(texts: Iterable[str]) -> dict[str, Any]:
    """Parse settings such as ``learner.C=8``.

    Raises
    ------
    SuiteError
        A text is not a setting.

    Examples
    --------
    >>> parsed(["learner.C=8", "feature_map.bandwidth_factor=0.5"])
    {'learner.C': 8, 'feature_map.bandwidth_factor': 0.5}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, is_given, value = text.partition("=")
        side, _, parameter = name.partition(".")
        if not (is_given and parameter and side in SIDES):
            raise SuiteError(
                f"--set must be {' or '.join(f'{each}.NAME=VALUE' for each in SIDES)}, got {text!r}"
            )
        found[name] = _value(value)
    return found


def with_settings(suite: Suite, settings: Mapping[str, Any], registry: Registry) -> Suite:
    """Return a suite whose methods have given parameters.

    SuiteError is raised where a method has no such parameter.
    """
    blocks = []
    for block in suite.blocks:
        lists: dict[str, Any] = {
            key: tuple(_given(ref, side, settings) for ref in getattr(block, key))
            for side, key in SIDES.items()
        }
        blocks.append(replace(block, **lists))
        for side, key in SIDES.items() if settings else ():
            placed = [(f"--set {side}", ref) for ref in lists[key]]
            kind = LISTS[key]
            if problems := parameter_problems(placed, kind, registry):
                raise SuiteError(*problems)
    return replace(suite, blocks=tuple(blocks))


def _given(ref: Ref, side: str, settings: Mapping[str, Any]) -> Ref:
    """Return a line of one side with the settings of that side."""
    more = {
        name.partition(".")[2]: value
        for name, value in settings.items()
        if name.partition(".")[0] == side
    }
    return Ref(ref.name, {**ref.params, **more}, ref.label)


def chosen_settings(planned: PlannedCell) -> dict[str, Any]:
    """Return the parameters that a cell has or whose search it ended with, if they are plain."""
    found: dict[str, Any] = {}
    for side in SIDES:
        ref: Ref = getattr(planned.cell, side)
        found |= {f"{side}.{name}": value for name, value in ref.params.items()}
    found |= planned.done[0].details.chosen
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int | float | str)
        and name.count(".") == 1
        and name.partition(".")[0] in SIDES
    }


def _value(text: str) -> int | float | str | bool:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

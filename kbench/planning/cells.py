"""Which cells a suite plans, and which of them a user asks for."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kbench.errors import SuiteError
from kbench.messages import did_you_mean
from kbench.planning.lines import LISTS, labelled
from kbench.records import Cell, Ref, Suite
from kbench.registry.registry import Registry

IDENTITY = "identity"
"""The map with which kernelized learners are planned."""


def cells(suite: Suite, registry: Registry) -> list[Cell]:
    """Plan the cells of a suite.

    A kernelized learner works on the inputs, so it is planned once per
    dataset, with the map `identity`, whatever maps its block has.
    """
    planned = []
    for block in suite.blocks:
        for dataset in block.datasets:
            for learner in block.learners:
                maps = block.feature_maps
                if registry.get("learner", learner.name).kernelized:
                    maps = tuple(m for m in maps if m.name == IDENTITY) or (Ref(IDENTITY),)
                planned += [Cell(dataset, each, learner, block.protocol) for each in maps]
    return planned


def indistinct_cells(suite: Suite, registry: Registry) -> list[str]:
    """Refuse two cells, or two datasets, that no table could tell apart."""
    seen: set[str] = set()
    problems = []
    means: dict[str, Ref] = {}
    for ref in (ref for block in suite.blocks for ref in block.datasets):
        first = means.setdefault(ref.label, ref)
        if (first.name, first.params) != (ref.name, ref.params):
            problems.append(
                f"the dataset label {ref.label!r} means two things; give one a label of its own"
            )
    for cell in cells(suite, registry):
        if cell.name in seen:
            problems.append(f"the file plans {cell.name!r} twice; give one a label of its own")
        seen.add(cell.name)
    return problems


def select(
    suite: Suite,
    registry: Registry,
    datasets: Sequence[str] = (),
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
) -> Suite:
    """Keep the lines that match; add installed components that no line has.

    Parameters
    ----------
    suite : Suite
    registry : Registry
    datasets, feature_maps, learners : sequence of str
        Labels, names or globs. An installed name that no line has is added
        with its defaults: a dataset to every block, a map or learner to the
        first. Empty keeps all.

    Raises
    ------
    SuiteError
        A pattern matches no line and nothing installed, or no cell is left.
    """
    problems: list[str] = []
    blocks = list(suite.blocks)
    for key, patterns in (
        ("datasets", datasets),
        ("feature_maps", feature_maps),
        ("learners", learners),
    ):
        if not patterns:
            continue
        kind = LISTS[key]
        lines = [ref for block in blocks for ref in getattr(block, key)]
        new = []
        for pattern in patterns:
            if any(_matches(ref, pattern) for ref in lines):
                continue
            if pattern in registry.all(kind):
                new.append(labelled(pattern, {}, kind, registry))
                continue
            known = {ref.label for ref in lines} | {ref.name for ref in lines}
            known |= set(registry.all(kind))
            problems.append(f"no {kind} matches {pattern!r}{did_you_mean(pattern, known)}")
        for index, block in enumerate(blocks):
            kept = tuple(
                ref for ref in getattr(block, key) if any(_matches(ref, p) for p in patterns)
            )
            added = tuple(new) if key == "datasets" or index == 0 else ()
            changed: dict[str, Any] = {key: kept + added}
            blocks[index] = replace(block, **changed)
    if problems:
        raise SuiteError(*problems)
    blocks = [b for b in blocks if b.datasets and b.feature_maps and b.learners]
    if not blocks:
        raise SuiteError("the filters leave no cell of the suite")
    return replace(suite, blocks=tuple(blocks))


def _matches(ref: Ref, pattern: str) -> bool:
    return pattern in (ref.name, ref.label) or (
        any(sign in pattern for sign in "*?")
        and (fnmatch.fnmatchcase(ref.label, pattern) or fnmatch.fnmatchcase(ref.name, pattern))
    )

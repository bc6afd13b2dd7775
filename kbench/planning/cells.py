"""Cells of a suite, and the filters that select some of them."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from kbench.errors import SuiteError
from kbench.messages import did_you_mean, explain_shared_targets, option
from kbench.planning.component_refs import LISTS, add_label
from kbench.records import Cell, Ref, Suite, Tune
from kbench.registry.registry import Registry

IDENTITY = "identity"
"""The map with which uses_kernel learners are planned."""


def cells(suite: Suite, registry: Registry) -> list[Cell]:
    """Plan the cells of a suite.

    A uses_kernel learner works on the inputs, so it is planned once per
    dataset, with the map `identity`, whatever maps its block has.
    """
    planned = []
    for block in suite.blocks:
        for dataset in block.datasets:
            for learner in block.learners:
                maps = block.feature_maps
                if registry.get("learner", learner.name).uses_kernel:
                    maps = tuple(m for m in maps if m.name == IDENTITY) or (Ref(IDENTITY),)
                protocol = block.protocol_of(dataset)
                planned += [Cell(dataset, map_, learner, protocol) for map_ in maps]
    return planned


def cell_problems(suite: Suite, registry: Registry) -> list[str]:
    """Return the errors of cells as a whole.

    Two have the same labels, or a map that uses the targets would be fitted for all folds.
    """
    supervised = {
        f"feature map {cell.feature_map.name!r}": None
        for cell in cells(suite, registry)
        if not cell.protocol.refit_maps_in_inner_folds
        and registry.get("feature map", cell.feature_map.name).supervised
    }
    return [*_indistinct(suite, registry), *map(explain_shared_targets, supervised)]


def check_map_seeds(suite: Suite, registry: Registry) -> list[str]:
    """Return one message if a suite sets several seeds of maps, but no map has a seed."""
    several = [cell for cell in cells(suite, registry) if cell.protocol.map_seeds > 1]
    if not several or any(cell.feature_map.name != IDENTITY for cell in several):
        return []
    return [
        f"protocol.map_seeds has an effect only with feature maps that are drawn by a seed; "
        f"the only feature map is {IDENTITY!r}"
    ]


def _indistinct(suite: Suite, registry: Registry) -> list[str]:
    seen: set[str] = set()
    problems = []
    means: dict[str, Ref] = {}
    for ref in (ref for block in suite.blocks for ref in block.datasets):
        first = means.setdefault(ref.label, ref)
        if (first.name, first.params) != (ref.name, ref.params):
            problems.append(
                f"the dataset label {ref.label!r} means two things; give one of them "
                "a different label"
            )
    for cell in cells(suite, registry):
        if cell.name in seen:
            problems.append(
                f"the file plans {cell.name!r} twice; give one of them a different label"
            )
        seen.add(cell.name)
    return problems


def select(
    suite: Suite,
    registry: Registry,
    datasets: Sequence[str] = (),
    feature_maps: Sequence[str] = (),
    learners: Sequence[str] = (),
    add: Sequence[Sequence[str]] = ((), (), ()),
) -> Suite:
    """Add installed components, and keep those that match labels, names or globs.

    No pattern keeps all; what is added is always kept. `add` has names of datasets, of maps and of
    learners; one that the suite lacks is added with its defaults: a dataset to every block, a map
    or learner to the first.

    Raises SuiteError if a name is not installed, a pattern matches nothing, or no cell is left.
    """
    problems: list[str] = []
    blocks = list(suite.blocks)
    asked = zip(LISTS.items(), (datasets, feature_maps, learners), add, strict=True)
    for (key, kind), patterns, names in asked:
        lists, added = [list(getattr(block, key)) for block in blocks], list[str]()
        for name in names:
            if name not in registry.all(kind):
                hint = did_you_mean(name, registry.all(kind))
                problems.append(f"{option(f'add_{key}')}: no {kind} is named {name!r}{hint}")
            elif not any(_matches(ref, name) for refs in lists for ref in refs):
                added.append(name)
                for refs in lists if key == "datasets" else lists[:1]:
                    refs.append(add_label(name, {}, kind, registry))
        refs_of_suite = [ref for refs in lists for ref in refs]
        for pattern in patterns:
            if not any(_matches(ref, pattern) for ref in refs_of_suite):
                there = {name for ref in refs_of_suite for name in (ref.name, ref.label)}
                hint = did_you_mean(pattern, there)
                if pattern in registry.all(kind):
                    hint = f"; {option(f'add_{key}', [pattern])} adds it"
                problems.append(f"no {kind} of the suite matches {pattern!r}{hint}")
        wanted = [*patterns, *added] if patterns else ["*"]
        for index, refs in enumerate(lists):
            chosen = [ref for ref in refs if any(_matches(ref, each) for each in wanted)]
            changed: dict[str, Any] = {key: tuple(chosen)}
            blocks[index] = replace(blocks[index], **changed)
    if problems:
        raise SuiteError(*problems)
    if not (blocks := [b for b in blocks if b.datasets and b.feature_maps and b.learners]):
        raise SuiteError("the filters leave no cell of the suite")
    return replace(suite, blocks=tuple(blocks))


def _matches(ref: Ref, pattern: str) -> bool:
    names = (ref.name, ref.label)
    is_glob = "*" in pattern or "?" in pattern
    return pattern in names or (is_glob and any(fnmatchcase(name, pattern) for name in names))


WIDTH = "n_components"
"""Parameter of a map that is the width of its embedding."""


def get_width(cell: Cell) -> int | None:
    """Return the number of components that a suite line gives: the largest of several."""
    value = cell.feature_map.params.get(WIDTH)
    values = value.values if isinstance(value, Tune) else (value,)
    widths = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
    return max(widths, default=None)


def set_width(cell: Cell, width: int) -> Cell:
    """Return a cell whose map has another number of components."""
    ref = cell.feature_map
    return replace(cell, feature_map=Ref(ref.name, {**ref.params, WIDTH: width}, ref.label))

"""Cells whose cost is worth a few seconds of trials, and the search of a trial."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace

from kbench.features import WIDTH, PlannedCell, Registry, given_width
from kbench.records import Cell, Ref
from kbench.records.canonical import to_json

ROWS = 20_000
"""Rows of a dataset from which the cost of its cells is predicted."""

SHORT = 2
"""Candidates of a short search: a path, a choice, and a refit are in it."""

MOST_WIDER = 8
"""Times as many components as an embedding has from which a wider one is predicted."""

_BYTES = 8


def needs_trials(planned: PlannedCell, registry: Registry, limit_mb: float) -> bool:
    """Whether a cell has many rows, or may need more than half the limit of memory.

    Matrices that a method may hold have as many columns as there are inputs, components or,
    for learners with kernels, rows. No trial is made to know more of smaller cells.
    """
    facts = planned.dataset
    if facts is None or planned.problem is not None or not planned.missing:
        return False
    n, widths = facts.n_samples, [facts.n_features, given_width(planned.cell) or 0]
    if n >= ROWS:
        return True
    if registry.get("learner", planned.cell.learner.name).kernelized:
        widths.append(n)
    return _BYTES * n * max(widths) > limit_mb * 2**20 / 2


def rows_of_width(cell: Cell, memory_mb: float) -> int | None:
    """Return the rows whose dense embedding needs an amount of memory, if its width is given."""
    width = given_width(cell)
    return width and math.ceil(memory_mb * 2**20 / (_BYTES * width))


def narrower(cells: Iterable[PlannedCell], whole_bytes: int) -> dict[str, list[PlannedCell]]:
    """Return by key the cells that have fewer components and differ in nothing else.

    They have at least an eighth as many. Embeddings of more than `whole_bytes`, which may
    be computed in blocks, are apart from smaller ones.
    """
    families: dict[str, dict[int, PlannedCell]] = {}
    for planned in cells:
        cell = planned.cell
        width = cell.feature_map.params.get(WIDTH)
        if not isinstance(width, int) or isinstance(width, bool) or planned.dataset is None:
            continue
        without = {k: v for k, v in cell.feature_map.params.items() if k != WIDTH}
        ref = Ref(cell.feature_map.name, without)
        of_method = [to_json(part) for part in (ref, cell.learner, cell.protocol)]
        is_large = _BYTES * planned.dataset.n_samples * width > whole_bytes
        key = json.dumps([planned.dataset.checksum, of_method, is_large], sort_keys=True)
        families.setdefault(key, {}).setdefault(width, planned)
    found = {}
    for family in families.values():
        for width, planned in family.items():
            near = [each for w, each in family.items() if width / MOST_WIDER <= w < width]
            if near:
                found[planned.key] = near
    return found


def shortened(cell: Cell) -> Cell:
    """Return a cell whose search has two candidates only."""
    return replace(cell, protocol=replace(cell.protocol, search="random", n_candidates=SHORT))

"""What may still improve a method that was measured: more candidates, or a wider map."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kbench.features import WIDTH, PlannedCell, Registry, given_width, n_candidates, of_width
from kbench.records import Cell, Ref
from kbench_tables.time_budget.ladders import n_train

MORE = 3
"""Candidates of a further search, as a multiple of those of the one before."""

WIDER = 2
"""Components of a wider map, as a multiple of those that were measured."""

_ENDING = re.compile(r" \([\d,]+ (candidates|components)\)$")


def refinements(planned: PlannedCell, registry: Registry) -> Iterator[Cell]:
    """Yield cells of the same method and rows that take longer, and may be better.

    A larger random search has all candidates of the smaller one, and ends with the space. A
    map has at most as many components as the training rows; one that searches for their
    number is not made wider.
    """
    cell = planned.cell
    before, protocol = n_candidates(cell, registry), cell.protocol
    if protocol.search == "random" and before > 1:
        more = replace(cell, protocol=replace(protocol, n_candidates=MORE * before))
        if (n := n_candidates(more, registry)) > before:
            learner = _named(cell.learner, f"{n:,} candidates")
            yield replace(cell, learner=learner, protocol=replace(protocol, n_candidates=n))
    width = cell.feature_map.params.get(WIDTH)
    if isinstance(width, int) and not isinstance(width, bool):
        width = min(WIDER * width, n_train(planned))
        if width > (given_width(cell) or 0):
            ref = of_width(cell, width).feature_map
            yield replace(cell, feature_map=_named(ref, f"{width:,} components"))


def _named(ref: Ref, what: str) -> Ref:
    """Return a line with another label; earlier numbers of the same are replaced."""
    kind = what.rpartition(" ")[2]
    label = ref.label
    if (ending := _ENDING.search(label)) and ending.group(1) == kind:
        label = label[: ending.start()]
    return replace(ref, label=f"{label} ({what})")

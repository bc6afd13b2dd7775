"""Ladders: the cells of one method on ever more rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kbench.features import PlannedCell, holdout_sizes
from kbench.records import Cell, Ref, Search

Name = tuple[str, str]
"""Labels of the map and the learner of a method."""


@dataclass
class Ladder:
    """The cells of one method, on ever more rows.

    `is_first` is true of a method of the first round. `base` is what a method refines.
    """

    name: Name
    cells: list[PlannedCell] = field(default_factory=list)
    is_first: bool = False
    base: Ladder | None = None

    @property
    def reached(self) -> int:
        """Number of the last cell with a result of its first split; -1 if there is none."""
        return max((i for i, cell in enumerate(self.cells) if is_done(cell, 0)), default=-1)

    @property
    def is_stopped(self) -> bool:
        """Whether a task has failed, so that no further one is tried."""
        return any(
            cell.problem or any(not result.is_ok for result in dict(cell.results).values())
            for cell in self.cells
        )

    @property
    def components(self) -> tuple[Ref, str]:
        """The map and the learner, however they are searched."""
        cell = self.cells[0].cell
        return replace(cell.feature_map, label=""), cell.learner.name

    @property
    def known(self) -> list[PlannedCell]:
        """The cells with a result of their first split."""
        return [cell for cell in self.cells if is_done(cell, 0)]


def is_done(cell: PlannedCell, split: int) -> bool:
    """Whether a split of a cell is measured."""
    result = dict(cell.results).get(split)
    return result is not None and result.is_ok


def n_train(planned: PlannedCell) -> int:
    """Return the training rows of a cell."""
    facts, protocol = planned.dataset, planned.cell.protocol
    assert facts is not None
    if protocol.train_rows is not None:
        return protocol.train_rows
    if protocol.splits == "holdout":
        return holdout_sizes(facts.n_samples, protocol)[0]
    return facts.n_samples * (protocol.n_folds - 1) // protocol.n_folds


def with_chosen(cell: Cell, below: PlannedCell) -> Cell | None:
    """Return a cell with the parameters that a search on fewer rows chose; None without one."""
    chosen = {"feature_map": dict[str, Any](), "learner": dict[str, Any]()}
    if below.cell.protocol.n_candidates == 1 < cell.protocol.n_candidates:
        chosen = {side: dict(getattr(below.cell, side).params) for side in chosen}
    for name, value in below.results[0].details.chosen.items():
        side, _, parameter = name.partition(".")
        if "." in parameter or not isinstance(value, int | float | str):
            return None  # of a component within
        if side in chosen:
            chosen[side][parameter] = value
    sides: dict[str, Any] = {}
    for side, values in chosen.items():
        ref: Ref = getattr(cell, side)
        # what is given for these rows, such as a width, stays
        is_searched = {name: isinstance(value, Search) for name, value in ref.params.items()}
        more = {name: value for name, value in values.items() if is_searched.get(name, True)}
        sides[side] = Ref(ref.name, {**ref.params, **more}, ref.label)
    given = replace(cell, **sides)
    if given == cell:
        return None
    return replace(given, protocol=replace(given.protocol, n_candidates=1))

"""The number of components of a cell's map, as its suite line gives it."""

from __future__ import annotations

from dataclasses import replace

from kbench.records import Cell, Ref, Search

WIDTH = "n_components"
"""Parameter of a map that is the width of its embedding."""


def given_width(cell: Cell) -> int | None:
    """Return the number of components that a suite line gives: the largest of several."""
    value = cell.feature_map.params.get(WIDTH)
    values = value.values if isinstance(value, Search) else (value,)
    widths = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
    return max(widths, default=None)


def of_width(cell: Cell, width: int) -> Cell:
    """Return a cell whose map has another number of components."""
    ref = cell.feature_map
    return replace(cell, feature_map=Ref(ref.name, {**ref.params, WIDTH: width}, ref.label))

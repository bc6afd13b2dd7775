"""What becomes of the columns of a user's table, in lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from kbench.messages import printable
from kbench_tables.profile import Fate

COLUMNS = ("column", "read as", "encoded as", "columns out", "note")

LEAST_ALIKE = 6
"""Neighbouring columns of one fate that are one line, at least."""


def fate_lines(fates: Sequence[Fate]) -> list[tuple[str, ...]]:
    """Return a line with `COLUMNS` for each column, one for many alike beside each other.

    >>> fate_lines([Fate("age", "numbers", "number", 1)])
    [('age', 'numbers', 'number', '1', '')]
    >>> fate_lines([Fate(f"x{j}", "numbers", "number", 1) for j in range(40)])
    [('x0 ... x39 (40 columns)', 'numbers', 'number', '40', '')]
    """
    lines = []
    for _, group in groupby(fates, key=lambda f: (f.read_as, f.encoded_as, f.n_columns, f.note)):
        alike = list(group)
        if len(alike) >= LEAST_ALIKE:
            first, last = (printable(fate.name, 60) for fate in (alike[0], alike[-1]))
            lines.append(_line(alike, f"{first} ... {last} ({len(alike):,} columns)"))
        else:
            lines += [_line([fate], printable(fate.name, 60)) for fate in alike]
    return lines


def _line(alike: Sequence[Fate], name: str) -> tuple[str, ...]:
    fate = alike[0]
    n_columns = sum(each.n_columns for each in alike)
    return (name, fate.read_as, fate.encoded_as, f"{n_columns:,}", printable(fate.note, 200))

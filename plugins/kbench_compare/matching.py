"""The cells and splits that both sides have."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.errors import SuiteError
from kbench.features import Labels, Row


def by_labels(rows: Sequence[Row], side: str) -> dict[Labels, Row]:
    """Return the rows of a side by cell; refuse two rows of one cell, and several machines."""
    machines = sorted({row.machine for row in rows})
    if len(machines) > 1:
        raise SuiteError(
            f"{side} holds results of {len(machines)} machines ({', '.join(machines)}); those of "
            "one are compared: `kbench results SUITE --machine ID --format json` writes them"
        )
    cells: dict[Labels, Row] = {}
    for row in rows:
        if cells.setdefault(row.labels, row) is not row:
            raise SuiteError(f"{side} holds {' + '.join(row.method)} on {row.dataset} twice")
    return cells


def check_splits(pairs: Sequence[tuple[Labels, Row, Row]]) -> None:
    """Refuse rows that were measured on different splits."""
    differ = []
    for labels, left, right in pairs:
        common = left.split_hash.keys() & right.split_hash.keys()
        if any(left.split_hash[i] != right.split_hash[i] for i in common):
            differ.append(labels[0])
    if differ:
        names = list(dict.fromkeys(differ))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        raise SuiteError(
            f"not comparable: {len(differ)} of {len(pairs)} common cells were measured on other "
            f"splits ({shown}): the data, the protocol's splits or its seed differ"
        )


def values_on(a: Row, b: Row, splits: Sequence[str], name: str) -> list[tuple[float, float]]:
    """Return the values of both sides on the splits that have them."""
    left, right = a.by_split(name), b.by_split(name)
    return [(left[i], right[i]) for i in splits if i in left and i in right]


def why_none(a: Row, b: Row, what: str) -> str:
    """Return why two rows have no values in common."""
    for side, row in (("a", a), ("b", b)):
        if row.status != "ok":
            return f"{row.status} in {side}"
    return f"no {what} of common splits"

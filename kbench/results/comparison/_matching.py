"""Selection of the rows that are compared, and of their common splits."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.errors import SuiteError
from kbench.results.rows import Labels, Row


def chosen(rows: Sequence[Row], version: str = "", until_ms: int | None = None) -> list[Row]:
    """Keep one row per cell, the one that ended last.

    With `version` only rows that this version of kbench computed, at least in
    part; with `until_ms` (milliseconds since 1970) only rows that had ended.

    >>> old = Row("iris", "rff", "ridge", "ok", 5, 5, version="0.1", end_ms=1)
    >>> new = Row("iris", "rff", "ridge", "ok", 5, 5, version="0.2", end_ms=2)
    >>> [row.version for row in chosen([old, new])], len(chosen([old, new], "0.1"))
    (['0.2'], 1)
    """
    newest: dict[Labels, Row] = {}
    for row in rows:
        if version and version not in row.version.split(", "):
            continue
        if until_ms is not None and row.end_ms > until_ms:
            continue
        other = newest.setdefault(row.labels, row)
        if row.end_ms > other.end_ms:
            newest[row.labels] = row
    return list(newest.values())


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

"""What is unusual about the rows that a model is to predict; it leaves with a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EXAMPLES = 3
"""Values of a finding that are shown."""

_SAYING = {
    "unknown": "a category that was not in training",
    "below": "a value below all of training",
    "above": "a value above all of training",
    "missing": "a missing value, of which training had none",
}


@dataclass
class Finding:
    """Rows of one column that are unlike those of training.

    Parameters
    ----------
    column : str
    kind : {"unknown", "below", "above", "missing"}
    n_rows : int
    first_row : int
        From 1.
    examples : list of str
        Different values.
    bound : float, optional
        Smallest or largest number of training.
    """

    column: str
    kind: str
    n_rows: int
    first_row: int
    examples: list[str] = field(default_factory=list)
    bound: float | None = None

    def __str__(self) -> str:
        rows = counted(self.n_rows, "row")
        has = "has" if self.n_rows == 1 else "have"
        bound = "" if self.bound is None else f" ({self.bound:.10g})"
        shown = f": {', '.join(map(repr, self.examples))}" if self.examples else ""
        return (
            f"column {self.column!r}: {rows} {has} {_SAYING[self.kind]}{bound}, the first is row "
            f"{self.first_row:,}{shown}"
        )


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding for each column and kind, of several blocks of rows."""
    known: dict[tuple[str, str], Finding] = {}
    for each in findings:
        other = known.setdefault((each.column, each.kind), each)
        if other is not each:
            other.n_rows += each.n_rows
            other.examples = list(dict.fromkeys([*other.examples, *each.examples]))[:EXAMPLES]
    return list(known.values())


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def refuse_missing(encoded: np.ndarray, places: Mapping[str, slice], first_row: int) -> None:
    """Raise a `ValueError` that names the first missing value of a block of rows."""
    if not np.isnan(encoded).any():
        return
    row = int(np.isnan(encoded).any(axis=1).argmax())
    name = next(name for name, place in places.items() if np.isnan(encoded[row, place]).any())
    raise ValueError(
        f"column {name!r} has a missing value in row {first_row + row:,}, and the model takes none"
    )


def findings_of(
    values: Mapping[str, Any],
    encoded: np.ndarray,
    places: Mapping[str, slice],
    seen: Mapping[str, Mapping[str, Any]],
    first_row: int = 1,
) -> list[Finding]:
    """Return what is unusual about rows.

    Parameters
    ----------
    values : mapping
        Columns of the table.
    encoded : ndarray, shape (n_rows, n_features)
        The same rows as numbers.
    places : mapping
        Columns of `encoded` by column of the table.
    seen : mapping
        What training had in a column: ``kind`` is "number", "codes" or "indicators", ``low``
        and ``high`` bound its numbers, ``missing`` tells whether values were missing.
    first_row : int
        Number of the first row.
    """
    found = []
    for name, place in places.items():
        block, known = encoded[:, place], seen[name]
        first = block[:, 0]
        is_missing = np.isnan(first)
        rows: dict[str, Any] = {}
        if not known["missing"]:
            rows["missing"] = is_missing
        if known["kind"] == "indicators":
            rows["unknown"] = ~is_missing & (block.sum(axis=1) == 0)
        elif known["kind"] == "codes":
            rows["unknown"] = first < 0
        elif known["low"] is not None:
            rows["below"], rows["above"] = first < known["low"], first > known["high"]
        for kind, mask in rows.items():
            if not mask.any():
                continue
            where = np.flatnonzero(mask)
            bound = {"below": known.get("low"), "above": known.get("high")}.get(kind)
            texts = [] if kind == "missing" else [str(values[name][i]) for i in where[:200]]
            examples = list(dict.fromkeys(text[:60] for text in texts))[:EXAMPLES]
            found.append(
                Finding(name, kind, len(where), first_row + int(where[0]), examples, bound)
            )
    return found

"""Order and ranks of rows within their datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbench.records import ACCURACY, Measure
from kbench.results.rows import Labels, Row


def by_dataset(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by dataset, in the order of first appearance, those without data last."""
    order = {name: place for place, name in enumerate(dict.fromkeys(r.dataset for r in rows))}
    available = {row.dataset for row in rows if row.status != "unavailable"}
    return sorted(rows, key=lambda row: (row.dataset not in available, order[row.dataset]))


def unequal_splits(rows: Sequence[Row]) -> dict[str, str]:
    """Return how a dataset's rows differ in their splits, where they do.

    Only rows that may be ranked count: their means are over different splits. Blocks of
    a suite can differ in the number of splits, and in the rows that a split tests.

    >>> unequal_splits([Row("iris", "rff", "ridge", "ok", n, n) for n in (5, 2)])
    {'iris': '2 to 5 splits'}
    >>> parts = {"0": "a1"}, {"0": "b2"}
    >>> unequal_splits([Row("iris", "rff", "ridge", "ok", 1, 1, split_hash=one) for one in parts])
    {'iris': 'other test rows'}
    """
    numbers: dict[str, set[int]] = {}
    hashes: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        if row.is_complete:
            numbers.setdefault(row.dataset, set()).add(row.n_splits)
            by_split = hashes.setdefault(row.dataset, {})
            for split, digest in row.split_hash.items():
                by_split.setdefault(split, set()).add(digest)
    differences = {}
    for name, some in numbers.items():
        if len(some) > 1:
            differences[name] = f"{min(some)} to {max(some)} splits"
        elif any(len(digests) > 1 for digests in hashes[name].values()):
            differences[name] = "other test rows"
    return differences


def rounded(value: float) -> float:
    """Round a mean to twelve digits: sums in another order must not break ties.

    >>> rounded(0.1 + 0.2) == rounded(0.3), rounded(1.5e-19)
    (True, 1.5e-19)
    """
    return float(f"{value:.12g}")


def tied_ranks(values: np.ndarray) -> np.ndarray:
    """Rank values, 1 for the smallest; ties share the mean of their ranks.

    As scipy's ``rankdata``, whose import takes longer than the rest of a command.

    >>> tied_ranks(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: np.ndarray = np.cumsum(counts) - (counts - 1) / 2
    return shared[number]


def ranks(rows: Sequence[Row], measure: Measure = ACCURACY) -> list[float | None]:
    """Rank each complete row among its dataset's, 1 for the best; ties share the mean rank.

    Rows that are not complete, or lack the measure, have no rank.
    """
    ranked: list[float | None] = [None] * len(rows)
    for dataset in dict.fromkeys(row.dataset for row in rows):
        places = [
            i
            for i, row in enumerate(rows)
            if row.dataset == dataset and row.is_complete and row.value(measure.name) is not None
        ]
        values = [-measure.gain(rounded(rows[i].measures[measure.name])) for i in places]
        for i, rank in zip(places, tied_ranks(np.array(values)), strict=True):
            ranked[i] = float(rank)
    return ranked


def newest(rows: Sequence[Row], version: str = "", until_ms: int | None = None) -> list[Row]:
    """Keep one row per cell, the one that ended last.

    With `version` only rows that this version of kbench computed, at least in
    part; with `until_ms` (milliseconds since 1970) only rows that had ended.

    >>> old = Row("iris", "rff", "ridge", "ok", 5, 5, version="0.1", end_ms=1)
    >>> new = Row("iris", "rff", "ridge", "ok", 5, 5, version="0.2", end_ms=2)
    >>> [row.version for row in newest([old, new])], len(newest([old, new], "0.1"))
    (['0.2'], 1)
    """
    last: dict[Labels, Row] = {}
    for row in rows:
        if version and version not in row.version.split(", "):
            continue
        if until_ms is not None and row.end_ms > until_ms:
            continue
        other = last.setdefault(row.labels, row)
        if row.end_ms > other.end_ms:
            last[row.labels] = row
    return list(last.values())

"""Rows of a results repository by suite: what its site shows, and compares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kbench.features import ImportedRow, Method, Row, without_times
from kbench.records import Measure
from kbench_sharing.agreement import CLOSE
from kbench_sharing.form import Bundle
from kbench_sharing.meaning import planned_splits
from kbench_sharing.recomputed import Records
from kbench_sharing.repository import content_key
from kbench_sharing.rows import measure_of, rows_of

Group = tuple[str, int]
"""What rows are compared in: data with protocol, and number of splits."""


@dataclass(frozen=True)
class Published:
    """A row of a repository: where it lies, who computed it, and what it may be compared with.

    Rows are comparable if their `comparable`, data and protocol, is equal, and their number of
    splits; `planned` is the number that the suite or the protocol asks for. `value` is the mean
    of the suite's measure, None without one.
    """

    place: str
    other: ImportedRow
    comparable: str
    value: float | None
    planned: int = 1

    @property
    def row(self) -> Row:
        """The row itself."""
        return self.other.row


@dataclass
class Board:
    """All rows of one suite and measure, in the order of their labels.

    `compared` has one row for each dataset and method: of those that share data and protocol
    with most others, the one with most splits, the first to be computed. Its times are kept
    only if one author computed all of them on one CPU (`timed_on`).
    """

    suite: str
    measure: Measure
    rows: list[Published] = field(default_factory=list)
    compared: list[Row] = field(default_factory=list)
    timed_on: str = ""

    def others(self) -> dict[str, str]:
        """Say by place what others measured for the same cell, where any did."""
        by_cell: dict[tuple[str, str], list[Published]] = {}
        for each in self.rows:
            if each.row.is_complete and each.value is not None:
                by_cell.setdefault((each.row.key, each.row.made_from), []).append(each)
        said = {}
        for same in by_cell.values():
            for each in same:
                by_author = {b.other.author: b for b in same if b.other.author != each.other.author}
                if by_author:
                    equal = sum(_equal(each.value, b.value) for b in by_author.values())
                    differ = len(by_author) - equal
                    words = [f"{equal} equal"] * bool(equal) + [f"{differ} different"] * bool(
                        differ
                    )
                    said[each.place] = ", ".join(words)
        return said


def published(place: str, bundle: Bundle, records: Records) -> Published:
    """Return the row of a rows file."""
    measure = measure_of(bundle)
    (other,) = rows_of(bundle, measure, records)
    planned = planned_splits(bundle.manifest.suite, bundle.cells[0].read_protocol())
    value = other.row.measures.get(measure.name)
    return Published(place, other, content_key(bundle), value, planned)


def boards(files: Iterable[tuple[str, Bundle, Records]]) -> list[Board]:
    """Return the boards of rows files with their records, by suite and measure."""
    found: dict[tuple[str, str, str], Board] = {}
    for place, bundle, records in files:
        measure = measure_of(bundle)
        key = (bundle.manifest.suite, measure.name, measure.better)
        board = found.setdefault(key, Board(bundle.manifest.suite, measure))
        board.rows.append(published(place, bundle, records))
    for board in found.values():
        _complete(board)
    return [found[key] for key in sorted(found)]


def _complete(board: Board) -> None:
    board.rows = _with_planned(_with_data_named(board.rows))
    board.rows.sort(key=lambda each: (each.row.labels, each.row.start_ms, each.place))
    chosen = _chosen(board.rows)
    machines = {(each.other.author, each.other.cpu) for each in chosen}
    board.compared = [each.row for each in chosen]
    if len(machines) == 1:
        board.timed_on = " on ".join(*machines)
    else:
        board.compared = [without_times(row) for row in board.compared]


def _with_data_named(rows: Sequence[Published]) -> list[Published]:
    """Name data that share a label with others by their checksums."""
    seen: dict[str, set[str]] = {}
    for each in rows:
        seen.setdefault(each.row.dataset, set()).add(each.row.checksum)
    return [
        each
        if len(seen[each.row.dataset]) == 1
        else replace(each, other=replace(each.other, row=_named(each.row)))
        for each in rows
    ]


def _named(row: Row) -> Row:
    return replace(row, dataset=f"{row.dataset} [{row.checksum[:8]}]")


def _references(rows: Sequence[Published]) -> dict[str, Group]:
    """Return what the rows of each dataset are compared in: data with protocol, and splits.

    Those with all splits of the suite or protocol come first: nobody can plan the one split that
    is good. Of these, it is what most methods have, and then what has most splits. Rows that lack
    splits count only where no other row does.
    """
    found: dict[str, dict[Group, set[Method]]] = {}
    full: set[Group] = set()
    for each in rows:
        group = each.comparable, each.row.n_splits
        methods = found.setdefault(each.row.dataset, {}).setdefault(group, set())
        if each.row.is_complete:
            methods.add(each.row.method)
        if each.row.n_splits >= each.planned:
            full.add(group)
    return {
        dataset: max(
            sorted(groups),
            key=lambda group: (bool(groups[group]) and group in full, len(groups[group]), group[1]),
        )
        for dataset, groups in found.items()
    }


def _with_planned(rows: Sequence[Published]) -> list[Published]:
    """Let rows with fewer splits than those that they stand beside say how many they lack."""
    references = _references(rows)
    shown = []
    for each in rows:
        comparable, n_splits = references[each.row.dataset]
        if each.comparable == comparable and each.row.n_splits < n_splits:
            row = replace(each.row, n_splits=n_splits)
            each = replace(each, other=replace(each.other, row=row))
        shown.append(each)
    return shown


def _chosen(rows: Sequence[Published]) -> list[Published]:
    """Return a row for each dataset and method, all of a dataset under one protocol."""
    best = _references(rows)
    chosen: dict[tuple[str, str, str], Published] = {}
    for each in rows:
        if (each.comparable, each.row.n_splits) == best[each.row.dataset]:
            known = chosen.setdefault(each.row.labels, each)
            if each.row.n_splits_done > known.row.n_splits_done:
                chosen[each.row.labels] = each
    return list(chosen.values())


def _equal(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE**2)

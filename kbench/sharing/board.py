"""Rows of a results repository by suite: what its site shows, and compares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kbench.evaluation.definitions import MEASURES
from kbench.planning.planned import PlannedCell, task_key
from kbench.records import DatasetFacts, Measure
from kbench.results.rows import Method, Row
from kbench.results.sources import of_cell_in_full
from kbench.sharing.agreement import CLOSE
from kbench.sharing.form import Bundle
from kbench.sharing.repository import content_key

_TIMES = ("_s", "_s_sd", "_mb")


@dataclass(frozen=True)
class Published:
    """A row of a repository: where it lies, who computed it, and what it may be compared with.

    Rows are comparable if their `comparable` is equal: data, protocol and number of splits.
    `cell` is the key of the cell, `value` the mean of the suite's measure, None without one.
    """

    place: str
    row: Row
    author: str
    cpu: str
    versions: str
    cell: str
    checksum: str
    comparable: str
    value: float | None


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
        by_cell: dict[str, list[Published]] = {}
        for each in self.rows:
            if each.row.is_complete and each.value is not None:
                by_cell.setdefault(each.cell, []).append(each)
        said = {}
        for same in by_cell.values():
            for each in same:
                by_author = {b.author: b for b in same if b.author != each.author}
                if by_author:
                    equal = sum(_equal(each.value, b.value) for b in by_author.values())
                    differ = len(by_author) - equal
                    words = [f"{equal} equal"] * bool(equal) + [f"{differ} different"] * bool(
                        differ
                    )
                    said[each.place] = ", ".join(words)
        return said


def published(place: str, bundle: Bundle) -> Published:
    """Return the row of a rows file."""
    (cell,) = bundle.cells
    dataset = bundle.datasets[cell.dataset]
    cpus = [each.cpu for each in bundle.manifest.machines]
    names = {number: f"{bundle.author} on {cpu}" for number, cpu in enumerate(cpus)}
    results = {
        split: shared.result(task_key(cell.key, split), names, cpus[shared.machine])
        for split, shared in bundle.results[cell.key].items()
    }
    planned = PlannedCell(
        cell.cell(dataset.ref),
        cell.key,
        DatasetFacts(**dataset.model_dump(exclude={"ref"})),
        cell.n_splits,
        results=results,
        equivalence=cell.equivalence,
        family=cell.family,
    )
    measure = measure_of(bundle)
    row = of_cell_in_full(planned, f"{bundle.author} on {', '.join(dict.fromkeys(cpus))}", measure)
    given = bundle.manifest.versions
    names_of_versions = ("kbench-core", "python", "numpy", "scipy", "scikit-learn")
    return Published(
        place,
        row,
        bundle.author,
        ", ".join(dict.fromkeys(cpus)),
        ", ".join(f"{name} {given[name]}" for name in names_of_versions if name in given),
        cell.key,
        dataset.checksum,
        content_key(bundle),
        row.measures.get(measure.name),
    )


def measure_of(bundle: Bundle) -> Measure:
    """Return the measure of a bundle; one of a plugin need not be installed."""
    name, better = bundle.manifest.measure, bundle.manifest.better
    known = MEASURES.get(name)
    return known if known is not None and known.better == better else Measure(name, better)


def boards(files: Iterable[tuple[str, Bundle]]) -> list[Board]:
    """Return the boards of rows files, by suite and measure."""
    found: dict[tuple[str, str, str], Board] = {}
    for place, bundle in files:
        measure = measure_of(bundle)
        key = (bundle.manifest.suite, measure.name, measure.better)
        board = found.setdefault(key, Board(bundle.manifest.suite, measure))
        board.rows.append(published(place, bundle))
    for board in found.values():
        _complete(board)
    return [found[key] for key in sorted(found)]


def _complete(board: Board) -> None:
    board.rows = _with_data_named(board.rows)
    board.rows.sort(key=lambda each: (each.row.labels, each.row.start_ms, each.place))
    chosen = _chosen(board.rows)
    machines = {(each.author, each.cpu) for each in chosen}
    board.compared = [each.row for each in chosen]
    if len(machines) == 1:
        board.timed_on = " on ".join(*machines)
    else:
        board.compared = [_without_times(row) for row in board.compared]


def _with_data_named(rows: Sequence[Published]) -> list[Published]:
    """Name data that share a label with others by their checksums."""
    seen: dict[str, set[str]] = {}
    for each in rows:
        seen.setdefault(each.row.dataset, set()).add(each.checksum)
    return [
        each
        if len(seen[each.row.dataset]) == 1
        else replace(
            each, row=replace(each.row, dataset=f"{each.row.dataset} [{each.checksum[:8]}]")
        )
        for each in rows
    ]


def _chosen(rows: Sequence[Published]) -> list[Published]:
    """Return a row for each dataset and method, all of a dataset under one protocol."""
    methods: dict[str, dict[str, set[Method]]] = {}
    for each in rows:
        of_dataset = methods.setdefault(each.row.dataset, {})
        of_dataset.setdefault(each.comparable, set()).add(each.row.method)
    best = {
        dataset: max(sorted(found), key=lambda key: len(found[key]))
        for dataset, found in methods.items()
    }
    chosen: dict[tuple[str, str, str], Published] = {}
    for each in rows:
        if each.comparable == best[each.row.dataset]:
            known = chosen.setdefault(each.row.labels, each)
            if each.row.n_splits_done > known.row.n_splits_done:
                chosen[each.row.labels] = each
    return list(chosen.values())


def _without_times(row: Row) -> Row:
    measures = {name: v for name, v in row.measures.items() if not name.endswith(_TIMES)}
    by_split = {name: v for name, v in row.values_by_split.items() if not name.endswith(_TIMES)}
    return replace(row, measures=measures, values_by_split=by_split, budget_curve=[])


def _equal(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE**2)

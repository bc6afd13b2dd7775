"""Cells with their keys, the cached results of their splits, and the order of their tasks."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kbench import records
from kbench.messages import option, plural
from kbench.records.canonical import digest
from kbench.registry.collecting import Kind
from kbench.registry.registry import Registry


@dataclass
class PlannedCell:
    """A cell with its key and the cached results of its splits.

    `key` is `Planner.cell_key`, or that of the suite lines where the dataset cannot be
    had, whose facts are None then. `n_splits` are planned; `recall` adds those that are
    cached beyond them. `problem` is the reason why the cell cannot be computed. `results`
    are by split, and shared by cells of one key. `equivalence` is equal for methods that
    are the same up to a rotation of the features (see `kbench.FeatureMap`), and empty
    if there is none. `family` is that of the method. `cost` is that of one task, if it
    was predicted. `changed` says why results that the journal has of it are not used:
    their code, data or dependencies changed. `outdated` says so of results that it has.
    """

    cell: records.Cell
    key: str
    dataset: records.DatasetFacts | None
    n_splits: int
    problem: records.Problem | None = None
    results: dict[int, records.Result] = field(default_factory=dict)
    equivalence: str = ""
    family: str = ""
    cost: records.Cost | None = None
    changed: str = ""
    outdated: str = ""

    @property
    def manifest(self) -> str:
        """A digest of all that its results were made from; empty if that is unknown."""
        digests = sorted({result.manifest for result in self.results.values()})
        if not digests or not all(digests):
            return ""
        return digests[0] if len(digests) == 1 else digest(digests)[:32]

    @property
    def version(self) -> str:
        """The key, and the manifest of the results: it names results in other places."""
        return f"{self.key}-{self.manifest[:16]}" if self.manifest else self.key

    @property
    def missing(self) -> list[int]:
        """Splits still to be computed; none once one was stopped by a limit or a crash."""
        # a copy: slots ask while the results of others come in
        done = dict(self.results)
        if self.problem or any(result.status in records.STOPPING for result in done.values()):
            return []
        return [i for i in range(self.n_splits) if i not in done]

    @property
    def is_finished(self) -> bool:
        """Whether nothing more is to be computed."""
        return not self.missing

    @property
    def status(self) -> records.Status:
        """The worst status of its splits; "skipped" while some are to come."""
        if self.problem:
            return self.problem.status
        seen: set[records.Status] = {result.status for result in self.results.values()}
        if self.missing:
            seen.add("skipped")
        return next(status for status in records.WORST_FIRST if status in seen)

    @property
    def done(self) -> list[records.Result]:
        """Results of the splits that are ok, in order."""
        return [result for result in self.in_order if result.is_ok]

    @property
    def in_order(self) -> list[records.Result]:
        """Results of all splits that are done, in order."""
        return [self.results[i] for i in sorted(self.results)]


def set_aside(
    planned: Iterable[PlannedCell], foreign: Mapping[str, Mapping[int, records.Result]]
) -> tuple[list[PlannedCell], list[PlannedCell]]:
    """Return the cells to compute here, and unfinished ones of which others have all splits.

    `foreign` has results by key of the cell and number of the split.
    """
    local: list[PlannedCell] = []
    imported: list[PlannedCell] = []
    for cell in planned:
        results = foreign.get(cell.key, {})
        wanted = range(cell.n_splits)
        if cell.missing and all(index in results for index in wanted):
            # a dictionary of its own: results of cells here are never mixed with them
            imported.append(replace(cell, results={index: results[index] for index in wanted}))
        else:
            local.append(cell)
    return local, imported


def task_key(cell_key: str, split_index: int) -> str:
    """Return the key of a task."""
    return hashlib.sha256(f"{cell_key}/{split_index}".encode()).hexdigest()


def out_of_date(cells: Iterable[PlannedCell], shown: int = 5) -> str:
    """Say why cached results of cells are not valid, and of how many; empty if all are."""
    counts = Counter(each for cell in cells if (each := cell.outdated or cell.changed))
    texts = [f"{why}: {plural(n, 'cell')}" for why, n in counts.most_common(shown)]
    more = [f"and {len(counts) - shown} other reasons"] if len(counts) > shown else []
    return "; ".join([*texts, *more])


def notices_of_reuse(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Warn that reused results were not timed exclusively."""
    if reused := [result for cell in cells for result in cell.done if result.timing != "exclusive"]:
        yield (
            f"{len(reused)} cached results keep the times of an ordinary run; "
            f"{option('recompute', True)} takes all of them again"
        )


def notices_of_cpus(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Warn that times were taken on several CPUs."""
    cpus = {result.cpu for cell in cells for result in cell.done if result.cpu}
    if len(cpus) > 1:
        yield (
            f"times were taken on different CPUs ({', '.join(sorted(cpus))}): compare those "
            "of runs with the same tag kbench.hosts only"
        )


Step = tuple[PlannedCell, int]
"""A cell and the number of a split."""


class Strategy(Protocol):
    """Chooses the next task; results come in between, in the cells and by `tell`."""

    n_tasks: int = 0
    """Maximum number of tasks to compute; without any, nothing is prepared for them."""

    cuts_off: bool = False
    """Whether tasks that run at the end of the time are cut off, and leave no result."""

    def steps(self) -> Iterator[Step]:
        """Yield what to compute next; asked whenever a slot is free, by several threads in turn."""

    def tell(self, cell: PlannedCell, result: records.Result) -> None:
        """Record the result of a step."""
        return

    def kept(self, cells: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Return the cells that the report of the run has."""
        return list(cells)


def n_missing(cells: Sequence[PlannedCell]) -> int:
    """Return the number of tasks that cells lack; cells of one key share theirs."""
    return len({(cell.key, index) for cell in cells for index in cell.missing})


class InOrder(Strategy):
    """All tasks in the order of the cells, or the first split of all cells before the second."""

    def __init__(self, cells: Sequence[PlannedCell], by_split: bool = False) -> None:
        steps = [(cell, index) for cell in cells for index in cell.missing]
        self._steps = sorted(steps, key=lambda step: step[1]) if by_split else steps
        self.n_tasks = n_missing(cells)

    def steps(self) -> Iterator[Step]:
        """Yield the missing splits of the cells."""
        begun: set[tuple[str, int]] = set()  # cells of one key share their splits
        for cell, index in self._steps:
            # results have come in since: one may have stopped the cell
            if (cell.key, index) in begun or index not in cell.missing:
                continue
            begun.add((cell.key, index))
            yield cell, index


def longest_first(planned: Iterable[PlannedCell], registry: Registry) -> list[PlannedCell]:
    """Return cells by the work of one of their tasks, the most first.

    A long task that starts last leaves the other slots idle. Cells of equal work keep their order.
    """
    return sorted(planned, key=lambda cell: -_work(cell, registry))


def _work(planned: PlannedCell, registry: Registry) -> float:
    """Estimate the work of a task: numbers in the data, classes, and candidates of the search."""
    if (facts := planned.dataset) is None:
        return 0.0
    size = facts.n_samples * max(1, facts.n_features) * max(1, facts.n_classes)
    return float(size * n_candidates(planned.cell, registry))


def n_candidates(cell: records.Cell, registry: Registry) -> int:
    """Return the number of candidates that the search of a cell compares."""
    maps = _n_values(cell.feature_map, "feature map", registry)
    n = len(cell.protocol.scaling) * maps * _n_values(cell.learner, "learner", registry)
    return min(n, cell.protocol.n_candidates) if cell.protocol.draws_candidates else n


def _n_values(ref: records.Ref, kind: Kind, registry: Registry) -> int:
    grid = registry.get(kind, ref.name).grid
    searched = [
        records.Tune(tuple(values)) for name, values in grid.items() if name not in ref.params
    ]
    return math.prod(
        len(records.alternatives(value)) for value in (*searched, *ref.params.values())
    )

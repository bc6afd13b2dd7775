"""Cells with their keys, and what is known of their splits."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kbench.messages import counted
from kbench.records import (
    STOPPING,
    WORST_FIRST,
    Cell,
    Cost,
    DatasetFacts,
    Problem,
    Result,
    Status,
)
from kbench.records.canonical import digest


@dataclass
class PlannedCell:
    """A cell with its key and the known results of its splits.

    `key` is `Planner.cell_key`, or that of the suite lines where the dataset cannot be
    had, whose facts are None then. `n_splits` are planned; `recall` adds those that are
    known beyond them. `problem` is the reason why the cell cannot be computed. `results`
    are by split, and shared by cells of one key. `equivalence` is equal for methods that
    are the same up to a rotation of the features (see `kbench.FeatureMap`), and empty
    where none is known. `family` is that of the method. `cost` is that of one task, if it
    was predicted. `changed` says why results that the journal has of it are not used:
    what they were made from is not as it was. `outdated` says so of results that it has.
    """

    cell: Cell
    key: str
    dataset: DatasetFacts | None
    n_splits: int
    problem: Problem | None = None
    results: dict[int, Result] = field(default_factory=dict)
    equivalence: str = ""
    family: str = ""
    cost: Cost | None = None
    changed: str = ""
    outdated: str = ""

    @property
    def manifest(self) -> str:
        """A digest of all that its results were made from; empty where that is not known."""
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
        known = dict(self.results)
        if self.problem or any(result.status in STOPPING for result in known.values()):
            return []
        return [i for i in range(self.n_splits) if i not in known]

    @property
    def is_finished(self) -> bool:
        """Whether nothing more is to be computed."""
        return not self.missing

    @property
    def status(self) -> Status:
        """The worst status of its splits; "skipped" while some are to come."""
        if self.problem:
            return self.problem.status
        seen: set[Status] = {result.status for result in self.results.values()}
        if self.missing:
            seen.add("skipped")
        return next(status for status in WORST_FIRST if status in seen)

    @property
    def done(self) -> list[Result]:
        """Results of the splits that are ok, in order."""
        return [result for result in self.in_order if result.is_ok]

    @property
    def in_order(self) -> list[Result]:
        """Results of all splits that are done, in order."""
        return [self.results[i] for i in sorted(self.results)]


def task_key(cell_key: str, split_index: int) -> str:
    """Return the key of a task."""
    return hashlib.sha256(f"{cell_key}/{split_index}".encode()).hexdigest()


def out_of_date(cells: Iterable[PlannedCell], shown: int = 5) -> str:
    """Say why known results of cells are not valid, and of how many; empty where all are."""
    counts = Counter(each for cell in cells if (each := cell.outdated or cell.changed))
    texts = [f"{why}: {counted(n, 'cell')}" for why, n in counts.most_common(shown)]
    more = [f"and {len(counts) - shown} other reasons"] if len(counts) > shown else []
    return "; ".join([*texts, *more])


def notices_of_reuse(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Warn that reused results were not timed exclusively."""
    known = [result for cell in cells for result in cell.done if result.timing != "exclusive"]
    if known:
        yield (
            f"{len(known)} known results keep the times of an ordinary run; "
            "--fresh takes all of them again"
        )


def notices_of_cpus(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Warn that times were taken on several CPUs."""
    cpus = {result.cpu for cell in cells for result in cell.done if result.cpu}
    if len(cpus) > 1:
        yield (
            f"times were taken on different CPUs ({', '.join(sorted(cpus))}): compare those "
            "of runs with the same tag kbench.hosts only"
        )

"""What is to be computed: cells with their keys, and what is known of them already.

Planning loads no data: the cache's manifest knows the checksums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kbench.planning.cells import cells
from kbench.planning.fingerprint import Fingerprinter
from kbench.records import WORST_FIRST, Cell, Limits, Protocol, Ref, Search, Status, Suite
from kbench.records.canonical import dumps, to_json
from kbench.registry.registry import Registry, makes, module_of, resolve
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal

STOPPING = ("timeout", "memory", "crash")
"""What a split may end with so that the cell's other splits are not tried."""

LOOK_AHEAD = 16
"""Splits of a cell that are looked up at least, for those beyond what is asked for."""


@dataclass
class PlannedCell:
    """A cell with its key and what the journal knows of its splits.

    Parameters
    ----------
    cell : Cell
    key : str
        `cell_key`, or the key of the suite line where there are no data.
    dataset : mapping
        What the data cache tells of the dataset; empty where it cannot be had.
    n_splits : int
        Splits that are planned; `recall` adds those that are known besides.
    problem : (status, reason), optional
        Why the cell cannot be computed at all.
    lines : dict of int to mapping
        The journal's line of each split that is done.
    equivalence : str
        Equal for methods that are the same up to a rotation of the features
        (see `kbench.FeatureMap`); empty where none is known.
    """

    cell: Cell
    key: str
    dataset: Mapping[str, Any]
    n_splits: int
    problem: tuple[Status, str] | None = None
    lines: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    equivalence: str = ""

    @property
    def stopped(self) -> bool:
        """Whether a split ended so that the others are skipped."""
        return any(line["status"] in STOPPING for line in self.lines.values())

    @property
    def missing(self) -> list[int]:
        """Splits still to be computed."""
        if self.problem or self.stopped:
            return []
        return [i for i in range(self.n_splits) if i not in self.lines]

    @property
    def status(self) -> Status:
        """The worst status of its splits; "skipped" while some are to come."""
        if self.problem:
            return self.problem[0]
        found = {str(line["status"]) for line in self.lines.values()}
        if self.missing:
            found.add("skipped")
        return next(status for status in WORST_FIRST if status in found)

    @property
    def done(self) -> list[Mapping[str, Any]]:
        """Lines of the splits that are ok, in order."""
        return [self.lines[i] for i in sorted(self.lines) if self.lines[i]["status"] == "ok"]


def task_key(cell_key: str, split_index: int) -> str:
    """Return the key of one unit of work."""
    return hashlib.sha256(f"{cell_key}/{split_index}".encode()).hexdigest()


def recall(
    planned: Iterable[PlannedCell],
    journal: Journal,
    limits: Limits | None = None,
    retry_failed: bool = False,
) -> None:
    """Give cells the journal's lines that still hold.

    Where all splits that are asked for are ok, those that follow and are ok too
    belong to the cell as well: asking for fewer loses nothing.

    Parameters
    ----------
    planned : iterable of PlannedCell
    journal : Journal
    limits : Limits, optional
        Those of the run that is planned: what hit a lower limit is left out,
        so that it is computed again.
    retry_failed : bool, default False
        Leave out what failed.
    """
    spans = [
        (each, range(max(each.n_splits, LOOK_AHEAD))) for each in planned if each.problem is None
    ]
    while spans:
        results = journal.results({task_key(each.key, i) for each, span in spans for i in span})
        further = []
        for each, span in spans:
            asked, all_ok = each.n_splits, True
            for index in span:
                line = results.get(task_key(each.key, index))
                is_ok = line is not None and line["status"] == "ok"
                all_ok = all_ok and is_ok
                if index >= asked and not all_ok:
                    break
                if line and (is_ok or not (retry_failed or _is_raised(line, limits))):
                    each.lines[index] = line
                each.n_splits = max(asked, index + 1)
            if all_ok:
                further.append((each, range(span.stop, 2 * span.stop)))
        spans = further


def _is_raised(line: Mapping[str, Any], limits: Limits | None) -> bool:
    """Tell whether the limit that a task hit is higher now."""
    if limits is None:
        return False
    if line["status"] == "timeout":
        return bool(limits.time_s > line["limits"]["time_s"])
    return line["status"] == "memory" and bool(limits.memory_mb > line["limits"]["memory_mb"])


def line_key(cell: Cell) -> str:
    """Return the key of a cell without data: of the lines of the suite file."""
    return _hash(["line", to_json(cell.dataset), *_method_of(cell)])


class Planner:
    """Turns the cells of a suite into planned cells.

    Parameters
    ----------
    registry : Registry
    data_cache : DataCache
    """

    def __init__(self, registry: Registry, data_cache: DataCache) -> None:
        self._registry = registry
        self._cache = data_cache
        packages = {plugin.module.partition(".")[0] for plugin in registry.plugins}
        self._packages = tuple(sorted({"kbench", *packages} - {""}))
        self._fingerprint = Fingerprinter(self._packages)
        self._codes: dict[tuple[str, ...], str] = {}

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages whose files are hashed: kbench's and the plugins'."""
        return self._packages

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules of all components that were planned so far."""
        return tuple(sorted({module for modules in self._codes for module in modules}))

    def source_code(self, dataset: Ref) -> str:
        """Return the fingerprint of the code that makes a dataset."""
        source = self._registry.get("dataset", dataset.name)
        return self._code((module_of(source.load), *source.depends))

    def dataset(self, ref: Ref) -> Mapping[str, Any] | None:
        """Return what the cache tells of a dataset; None where it must be loaded."""
        return self._cache.recall(ref.name, to_json(ref)["params"], self.source_code(ref))

    def plan(
        self,
        suite: Suite,
        datasets: Mapping[str, Mapping[str, Any]],
        problems: Mapping[str, tuple[Status, str]],
    ) -> list[PlannedCell]:
        """Plan all cells of a suite; what is known of them is for `recall` to tell.

        Parameters
        ----------
        suite : Suite
        datasets : mapping
            What the cache tells of each dataset, by label.
        problems : mapping of str to (status, reason)
            Why a dataset cannot be had, by label. A dataset in neither is
            still to be fetched.
        """
        planned = []
        # cells of one key, such as the same data under two labels, are computed once
        lines: dict[str, dict[int, Mapping[str, Any]]] = {}
        for cell in cells(suite, self._registry):
            label = cell.dataset.label
            if label not in datasets:
                n_splits = how_many_splits(cell.protocol, suite.limits, {})
                problem = problems.get(label)
                planned.append(PlannedCell(cell, line_key(cell), {}, n_splits, problem))
                continue
            known = datasets[label]
            key = self.cell_key(cell, known["checksum"])
            planned.append(
                PlannedCell(
                    cell,
                    key,
                    known,
                    how_many_splits(cell.protocol, suite.limits, known),
                    _refused(cell, known),
                    lines=lines.setdefault(key, {}),
                    equivalence=self._equivalence(cell),
                )
            )
        return planned

    def cell_key(self, cell: Cell, checksum: str) -> str:
        """Return the SHA-256 of all that decides a cell's numbers.

        Of data the checksum; of map and learner what is given and what is
        searched; the protocol; the code. Not the suite, labels, limits, jobs
        or the machine.
        """
        map_record = self._registry.get("feature map", cell.feature_map.name)
        learner_record = self._registry.get("learner", cell.learner.name)
        modules = ["kbench.evaluation.evaluate"]
        for record in (map_record, learner_record):
            modules += [module_of(make) for make in makes(record)] + list(record.depends)
        for ref, record in ((cell.feature_map, map_record), (cell.learner, learner_record)):
            modules += self._nested_modules(ref.params.values())
            modules += self._nested_modules(map(tuple, _grid(ref, record).values()))
        return _hash(
            [
                "cell",
                checksum,
                *_method_of(cell),
                _space(cell.feature_map, map_record),
                _space(cell.learner, learner_record),
                [map_record.supervised, map_record.requires, learner_record.path],
                dict(learner_record.simpler),
                self._code(tuple(modules)),
            ]
        )

    def _equivalence(self, cell: Cell) -> str:
        """Return what methods share that differ by a rotation of the features only."""
        span = self._registry.get("feature map", cell.feature_map.name).span
        learner = self._registry.get("learner", cell.learner.name)
        if span is None or not learner.rotation_invariant:
            return ""
        spanned = resolve(span)(cell.feature_map.params)
        return _hash([spanned, to_json(cell.learner), to_json(cell.protocol)]) if spanned else ""

    def _nested_modules(self, values: Any) -> list[str]:
        found: list[str] = []
        for value in values:
            if isinstance(value, Ref):
                found.append(module_of(self._registry.nested(value.name).make))
                found += self._nested_modules(value.params.values())
            elif isinstance(value, Search):
                found += self._nested_modules(value.values)
            elif isinstance(value, tuple):
                found += self._nested_modules(value)
        return found

    def _code(self, modules: tuple[str, ...]) -> str:
        if modules not in self._codes:
            self._codes[modules] = self._fingerprint(modules)
        return self._codes[modules]


def _method_of(cell: Cell) -> list[Any]:
    return [to_json(cell.feature_map), to_json(cell.learner), to_json(cell.protocol)]


def _grid(ref: Ref, record: Any) -> dict[str, Sequence[Any]]:
    """Return the part of a record's grid that is searched: what the ref does not give."""
    return {name: values for name, values in record.grid.items() if name not in ref.params}


def _space(ref: Ref, record: Any) -> dict[str, Any]:
    return {name: to_json(tuple(values)) for name, values in _grid(ref, record).items()}


def _hash(value: Any) -> str:
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def how_many_splits(protocol: Protocol, limits: Limits, dataset: Mapping[str, Any]) -> int:
    """Return how many splits are planned: the suite's number, or all there are."""
    if protocol.splits == "official":
        own = int(dataset.get("n_splits", 1))
        return own if limits.n_splits is None else min(own, limits.n_splits)
    if protocol.splits == "ordered":
        return 1
    default = 10 if protocol.splits == "holdout" else protocol.n_folds
    return default if limits.n_splits is None else limits.n_splits


def _refused(cell: Cell, dataset: Mapping[str, Any]) -> tuple[Status, str] | None:
    """Say why a dataset cannot be used under a protocol, before anything runs."""
    if cell.protocol.missing == "error" and dataset["n_missing"]:
        columns = list(dataset["missing"].items())
        shown = ", ".join(f"{name} ({count})" for name, count in columns[:5])
        more = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
        return "error", (
            f"{cell.dataset.label} has {dataset['n_missing']} missing values in {shown}{more}; "
            'set missing = "impute" or missing = "drop_rows" in [protocol]'
        )
    if cell.protocol.splits == "official" and not dataset["n_splits"]:
        return "error", f'{cell.dataset.label} has no splits of its own (splits = "official")'
    return None


def with_expanded(suite: Suite, expanded: Mapping[str, Sequence[Ref]]) -> Suite:
    """Return the suite with each dataset line replaced by the datasets it means."""
    blocks = tuple(
        replace(
            block,
            datasets=tuple(
                each for ref in block.datasets for each in expanded.get(ref.label, (ref,))
            ),
        )
        for block in suite.blocks
    )
    return replace(suite, blocks=blocks)

"""Planned cells: their keys, and the results that the journal has already.

Planning loads no data: the cache's manifest knows the checksums.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import operator
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kbench.errors import PluginError
from kbench.evaluation.definitions import COMPUTED
from kbench.messages import SHARED_CATEGORIES
from kbench.planning.cells import cells
from kbench.planning.fingerprint import Fingerprinter, evaluation_modules
from kbench.planning.spans import Spans
from kbench.records import (
    STOPPING,
    WORST_FIRST,
    Cell,
    Cost,
    DatasetFacts,
    Limits,
    Problem,
    Protocol,
    Ref,
    Result,
    Search,
    Status,
    Suite,
    Task,
    TaskType,
    family_of,
)
from kbench.records.canonical import digest, to_json
from kbench.registry.callables import makes
from kbench.registry.collecting import Kind
from kbench.registry.dependencies import Dependencies, declared
from kbench.registry.identity import identity_of
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal

LOOK_AHEAD = 16
"""Splits of a cell that are looked up at least: some beyond the planned ones may be known."""


@dataclass
class PlannedCell:
    """A cell with its key and the known results of its splits.

    `key` is `Planner.cell_key`, or that of the suite lines where the dataset cannot be
    had, whose facts are None then. `n_splits` are planned; `recall` adds those that are
    known beyond them. `problem` is the reason why the cell cannot be computed. `results`
    are by split, and shared by cells of one key. `equivalence` is equal for methods that
    are the same up to a rotation of the features (see `kbench.FeatureMap`), and empty
    where none is known. `family` is that of the method. `cost` is that of one task, if it
    was predicted.
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


def recall(
    planned: Iterable[PlannedCell],
    journal: Journal,
    limits: Limits | None = None,
    retry_failed: bool = False,
) -> int:
    """Add the journal's results to cells, as far as they still hold.

    Where all splits that are asked for are ok, those that follow and are ok too
    belong to the cell as well: asking for fewer loses nothing. Tasks that hit a limit
    which is higher in `limits` are left out, so that they are computed again;
    `retry_failed` leaves out all that failed.

    Returns
    -------
    int
        Number of missing splits that the journal has, in lines that cannot be read.
    """
    planned = list(planned)
    unreadable: set[str] = set()
    spans = [(cell, range(max(cell.n_splits, LOOK_AHEAD))) for cell in planned if not cell.problem]
    while spans:
        wanted = {task_key(cell.key, i) for cell, span in spans for i in span}
        results = {key: _parsed(line) for key, line in journal.results(wanted).items()}
        unreadable |= journal.unreadable
        unreadable |= {key for key, result in results.items() if result is None}
        further = []
        for cell, span in spans:
            asked, all_ok = cell.n_splits, True
            for index in span:
                result = results.get(task_key(cell.key, index))
                is_ok = result is not None and result.is_ok
                all_ok = all_ok and is_ok
                if index >= asked and not all_ok:
                    break
                if result and (is_ok or not (retry_failed or _is_raised(result, limits))):
                    cell.results[index] = result
                cell.n_splits = max(asked, index + 1)
            if all_ok:
                further.append((cell, range(span.stop, 2 * span.stop)))
        spans = further
    return len(unreadable & {task_key(cell.key, i) for cell in planned for i in cell.missing})


def recall_added(
    planned: Iterable[PlannedCell], journal: Journal, codes: Mapping[str, str]
) -> None:
    """Add the measures that the journal has beside the results of cells.

    `codes` has the fingerprints of the measures' present code; a value of other code, or
    of an earlier result of its task, is left out. What a task measured itself stays.
    """
    planned = list(planned)
    tasks = {result.task_key for cell in planned for result in cell.done}
    lines = journal.added(tasks) if tasks and codes else {}
    if not lines:
        return
    for cell in planned:
        for index, result in cell.results.items():
            added = {
                line["name"]: line["value"]
                for line in lines.get(result.task_key, ())
                if line["ended_ms"] == result.ended_ms and codes.get(line["name"]) == line["code"]
            }
            if added and result.is_ok:
                cell.results[index] = replace(result, measures={**added, **result.measures})


def _parsed(line: Mapping[str, Any]) -> Result | None:
    """Parse a journal line; None if its format is not understood."""
    try:
        return Result.from_json(line)
    except ValueError:
        return None


def _is_raised(result: Result, limits: Limits | None) -> bool:
    """Tell whether the limit that a task hit is higher now."""
    if limits is None:
        return False
    if result.status == "timeout":
        return limits.time_s > result.limits.time_s
    return result.status == "memory" and limits.memory_mb > result.limits.memory_mb


def line_key(cell: Cell) -> str:
    """Return the key of a cell without data: a hash of its lines of the suite file."""
    return digest(["line", to_json(cell.dataset), *_method_of(cell)])


class Planner:
    """Turns the cells of a suite into planned cells, and these into tasks."""

    def __init__(self, registry: Registry, data_cache: DataCache) -> None:
        self._registry = registry
        self._cache = data_cache
        packages = {plugin.module.partition(".")[0] for plugin in registry.plugins}
        self.packages = tuple(sorted({"kbench", *packages} - {""}))
        """Packages whose files are hashed: kbench's and the plugins'."""
        self._fingerprint = Fingerprinter(self.packages)
        self._evaluation = evaluation_modules()
        self._codes: dict[Dependencies, str] = {}
        self._spans = Spans(registry)

    @property
    def dependencies(self) -> Dependencies:
        """Dependencies of the cells planned so far: their keys have the modules' closure."""
        return functools.reduce(operator.or_, self._codes, Dependencies())

    def source_code(self, dataset: Ref) -> str:
        """Return the fingerprint of the code that makes a dataset."""
        made, reached = self._component("dataset", dataset.name)
        return digest([made, self._code(reached)])

    def dataset(self, ref: Ref) -> DatasetFacts | None:
        """Return the cache's facts of a dataset; None where it must be loaded."""
        return self._cache.recall(ref.name, to_json(ref)["params"], self.source_code(ref))

    def plan(
        self, suite: Suite, datasets: Mapping[str, DatasetFacts | Problem | None]
    ) -> list[PlannedCell]:
        """Plan all cells of a suite; `recall` adds their known results.

        `datasets` has facts of datasets by label, or the reason why one cannot be
        had. Any other dataset is still to be fetched.
        """
        planned = []
        # cells of one key, such as the same data under two labels, are computed once
        results: dict[str, dict[int, Result]] = {}
        every = list(cells(suite, self._registry))
        self._spans.find(
            cell.feature_map
            for cell in every
            if self._registry.get("learner", cell.learner.name).rotation_invariant
        )
        for cell in every:
            facts = datasets.get(cell.dataset.label)
            if facts is None or isinstance(facts, Problem):
                n_splits = how_many_splits(cell.protocol, suite.limits)
                planned.append(
                    PlannedCell(
                        cell, line_key(cell), None, n_splits, facts, family=self._family(cell)
                    )
                )
                continue
            key = self.cell_key(cell, facts)
            planned.append(
                PlannedCell(
                    cell,
                    key,
                    facts,
                    how_many_splits(cell.protocol, suite.limits, facts.n_splits),
                    _refused(cell, facts),
                    results=results.setdefault(key, {}),
                    equivalence=self._equivalence(cell),
                    family=self._family(cell),
                )
            )
        return planned

    def tasks(self, planned: Iterable[PlannedCell], until: float) -> Iterator[Task]:
        """Yield the missing splits of cells, as long as `until` (`time.monotonic`) allows."""
        begun: set[tuple[str, int]] = set()  # cells of one key share their splits
        for cell in planned:
            for index in cell.missing:
                # results have come in since: one may have stopped the cell
                if (cell.key, index) in begun or index not in cell.missing:
                    continue
                # the first begins however late it is: each run brings at least one split
                if begun and not _has_time_for(cell, until):
                    continue
                begun.add((cell.key, index))
                yield self.task(cell, index)

    def task(self, planned: PlannedCell, index: int) -> Task:
        """Return the task of one split of a cell whose dataset is known."""
        cell, facts = planned.cell, planned.dataset
        assert facts is not None
        kinds = deciding_kinds(cell.protocol, facts)
        source, plugins = self.source_code(cell.dataset), self.plugins_of(cell)
        return Task(cell, index, planned.key, facts.checksum, kinds, source, plugins)

    def plugins_of(self, cell: Cell) -> tuple[str, ...]:
        """Return the third-party plugins of a cell's map, learner and search_measure."""
        return self._registry.plugins_of(*components_of(cell, self._registry))

    def cell_key(self, cell: Cell, dataset: DatasetFacts) -> str:
        """Return the SHA-256 of everything that decides a cell's numbers.

        Of data: the checksum, the task, and the kinds of columns that are imputed
        or encoded. Of map
        and learner: what is given, what is searched and in which order, and what
        their records say. Then the protocol and the code. Not the suite, labels,
        limits, jobs or the machine.
        """
        map_record = self._registry.get("feature map", cell.feature_map.name)
        learner_record = self._registry.get("learner", cell.learner.name)
        sides = ((cell.feature_map, map_record), (cell.learner, learner_record))
        components = self._registry.reached(*components_of(cell, self._registry))
        made, reached = [], Dependencies(modules=frozenset(self._evaluation))
        for kind, name in sorted(components):
            callables, dependencies = self._component(kind, name, dataset.task)
            made.append([kind, name, callables, *self._meaning(kind, name)])
            reached |= dependencies
        return digest(
            [
                "cell",
                dataset.checksum,
                dataset.task,
                list(deciding_kinds(cell.protocol, dataset)),
                *_method_of(cell),
                *(_space(ref, record) for ref, record in sides),
                [map_record.supervised, map_record.requires, learner_record.path],
                [list(pair) for pair in learner_record.simpler.items()],
                made,
                self._code(reached),
            ]
        )

    def measure_code(self, name: str) -> str:
        """Return the fingerprint of a measure that can be added to known results.

        It is empty for a built-in measure, whose code is in the keys of cells. PluginError
        is raised where a file that the measure declares cannot be read.
        """
        if name in COMPUTED:
            return ""
        made, reached = self._component("measure", name)
        # not among `dependencies`: hosts that compute tasks need not have it
        code = self._fingerprint(reached.modules, reached.files, reached.variables)
        return digest([made, self._meaning("measure", name), code])

    def measure_codes(self) -> dict[str, str]:
        """Return `measure_code` of all measures that have one, by name."""
        codes = dict.fromkeys(COMPUTED, "")
        for name in self._registry.all("measure"):
            with contextlib.suppress(PluginError):
                codes[name] = self.measure_code(name)
        return codes

    def _meaning(self, kind: Kind, name: str) -> list[Any]:
        """Return what a measure's record says beside its code; nothing for other kinds."""
        if kind != "measure":
            return []
        measure = self._registry.get(kind, name)
        return [measure.better, measure.task, measure.needs]

    def _equivalence(self, cell: Cell) -> str:
        """Return a key that methods share which differ only by a rotation of the features."""
        learner = self._registry.get("learner", cell.learner.name)
        if not learner.rotation_invariant:
            return ""
        spanned = self._spans.of(cell.feature_map)
        return digest([spanned, to_json(cell.learner), to_json(cell.protocol)]) if spanned else ""

    def _family(self, cell: Cell) -> str:
        return family_of(
            self._registry.get("feature map", cell.feature_map.name),
            self._registry.get("learner", cell.learner.name),
        )

    def _component(
        self, kind: Kind, name: str, task: TaskType | None = None
    ) -> tuple[dict[str, str], Dependencies]:
        """Return the callables of a component by field, and all that it depends on.

        Of a learner they are those for the task. PluginError is raised where a file that
        it declares cannot be read.
        """
        record, plugin = self._registry.get(kind, name), self._registry.owner(kind, name)
        reached = declared(record)
        for file in sorted(reached.files):
            if self._fingerprint.digest_of(file) is None:
                raise PluginError(
                    f"the plugin {plugin.name!r} declares that its {kind} {name!r} depends on the "
                    f"file {file!r}, which cannot be read: {self._fingerprint.path_of(file)}"
                )
        callables: dict[str, str] = {}
        modules: set[str] = set()
        for field_name, make in makes(record, task).items():
            identity = identity_of(make)
            callables[field_name] = identity.text
            modules |= identity.modules
            if isinstance(make, str):
                modules.update(self._fingerprint.exporting(*make.split(":", 1)))
            if plugin.module and not identity.is_importable:
                modules.add(plugin.module)  # an object without a name, which this module made
        return callables, reached | Dependencies(modules=frozenset(modules))

    def _code(self, reached: Dependencies) -> str:
        if reached not in self._codes:
            self._codes[reached] = self._fingerprint(
                reached.modules, reached.files, reached.variables
            )
        return self._codes[reached]


def components_of(cell: Cell, registry: Registry) -> list[tuple[Kind, Ref]]:
    """Return the components whose code runs in the tasks of a cell."""
    components: list[tuple[Kind, Ref]] = [
        ("feature map", cell.feature_map),
        ("learner", cell.learner),
    ]
    measure = cell.protocol.search_measure
    if measure in registry.all("measure"):
        components.append(("measure", Ref(str(measure))))
    return components


def _method_of(cell: Cell) -> list[Any]:
    return [to_json(cell.feature_map), to_json(cell.learner), to_json(cell.protocol)]


def _grid(ref: Ref, record: Any) -> dict[str, Sequence[Any]]:
    """Return the part of a record's grid that is searched: parameters not in the ref."""
    return {name: values for name, values in record.grid.items() if name not in ref.params}


def _space(ref: Ref, record: Any) -> list[Any]:
    """Return the search space in the order of its candidates: ties go to the first."""
    given = [path for name, value in ref.params.items() for path in _searched(name, value)]
    grid = [
        [to_json(tuple(values)), *_searched(name, Search(tuple(values)))]
        for name, values in _grid(ref, record).items()
    ]
    return [grid, given]


def _searched(name: str, value: Any) -> Iterator[str]:
    """Yield the paths of the searches in a parameter's value, in their order."""
    if isinstance(value, Search):
        yield name
        value = value.values
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _searched(f"{name}[{index}]", item)
    elif isinstance(value, Ref):
        for key, given in value.params.items():
            yield from _searched(f"{name}.{key}", given)


def deciding_kinds(protocol: Protocol, dataset: DatasetFacts) -> tuple[str, ...]:
    """Return the column kinds if values are imputed or encoded by kind, else an empty tuple."""
    imputes = protocol.missing in ("impute", "indicate") and dataset.n_missing > 0
    return dataset.feature_kinds if imputes or "category" in dataset.feature_kinds else ()


def how_many_splits(protocol: Protocol, limits: Limits, n_official: int = 1) -> int:
    """Return the number of planned splits: the suite's, or all there are.

    `n_official` splits come with the data.
    """
    if protocol.splits == "official":
        return n_official if limits.n_splits is None else min(n_official, limits.n_splits)
    if protocol.splits == "ordered":
        return 1
    default = 10 if protocol.splits == "holdout" else protocol.n_folds
    return default if limits.n_splits is None else limits.n_splits


def _refused(cell: Cell, dataset: DatasetFacts) -> Problem | None:
    """Return the reason why a dataset cannot be used under a protocol, if there is one."""
    if cell.protocol.missing == "error" and dataset.n_missing:
        columns = list(dataset.missing.items())
        shown = ", ".join(f"{name} ({count})" for name, count in columns[:5])
        more = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
        return Problem(
            "error",
            f"{cell.dataset.label} has {dataset.n_missing} missing values in {shown}{more}; "
            'set missing = "impute", "indicate" or "drop_rows" in [protocol]',
        )
    if cell.protocol.inner_fit == "outer" and "category" in dataset.feature_kinds:
        return Problem("error", f"{cell.dataset.label}: {SHARED_CATEGORIES}")
    if cell.protocol.splits == "official" and not dataset.n_splits:
        return Problem("error", f'{cell.dataset.label} comes without splits (splits = "official")')
    return None


def _has_time_for(planned: PlannedCell, until: float) -> bool:
    """Tell whether a split that takes as long as the longest so far would end by `until`."""
    longest = max((result.seconds for result in list(planned.results.values())), default=0.0)
    return time.monotonic() + longest < until


def with_expanded(suite: Suite, expanded: Mapping[str, Sequence[Ref]]) -> Suite:
    """Return the suite with each dataset line replaced by the datasets it means."""
    blocks = []
    for block in suite.blocks:
        datasets = [data for ref in block.datasets for data in expanded.get(ref.label, (ref,))]
        blocks.append(replace(block, datasets=tuple(datasets)))
    return replace(suite, blocks=tuple(blocks))

"""Keys of cells, and the tasks that they are.

Planning loads no data: the cache's manifest knows the checksums.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kbench.errors import PluginError
from kbench.evaluation.definitions import COMPUTED
from kbench.messages import SHARED_CATEGORIES, counted
from kbench.planning.cells import cells
from kbench.planning.fingerprint import Fingerprinter, evaluation_modules
from kbench.planning.planned import PlannedCell
from kbench.planning.spans import Spans
from kbench.records import (
    Cell,
    DatasetFacts,
    Limits,
    Problem,
    Protocol,
    Ref,
    Result,
    Search,
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


def key_of(cell: Cell, checksum: str, task: str, kinds: Sequence[str], code: Sequence[Any]) -> str:
    """Return the key of a cell, given what its data and its code say (`Planner.cell_key`)."""
    return key_of_json(_method_of(cell), checksum, task, kinds, code)


def key_of_json(
    method: Sequence[Any], checksum: str, task: str, kinds: Sequence[str], code: Sequence[Any]
) -> str:
    """Return the same key, given map, learner and protocol as JSON, perhaps of another version."""
    return digest(["cell", checksum, task, list(kinds), *method, *code])


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
                    equivalence=self.equivalence(cell),
                    family=self._family(cell),
                )
            )
        return planned

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
        kinds = deciding_kinds(cell.protocol, dataset)
        return key_of(
            cell, dataset.checksum, dataset.task, kinds, self.method_code(cell, dataset.task)
        )

    def method_code(self, cell: Cell, task: TaskType) -> list[Any]:
        """Return what the code says of a cell's method: the last parts of its key.

        They are the search spaces, fields of the records, the callables, and the
        fingerprint of the code and the versions.
        """
        map_record = self._registry.get("feature map", cell.feature_map.name)
        learner_record = self._registry.get("learner", cell.learner.name)
        sides = ((cell.feature_map, map_record), (cell.learner, learner_record))
        components = self._registry.reached(*components_of(cell, self._registry))
        made, reached = [], Dependencies(modules=frozenset(self._evaluation))
        for kind, name in sorted(components):
            callables, dependencies = self._component(kind, name, task)
            made.append([kind, name, callables, *self._meaning(kind, name)])
            reached |= dependencies
        return [
            *(_space(ref, record) for ref, record in sides),
            [map_record.supervised, map_record.requires, learner_record.path],
            [list(pair) for pair in learner_record.simpler.items()],
            made,
            self._code(reached),
        ]

    def versions(self) -> dict[str, str]:
        """Return the versions of distributions that are in the keys of the cells so far."""
        reached = self.dependencies
        parts = self._fingerprint.parts(reached.modules)
        own = set(self._fingerprint.reached(reached.modules))
        return {name: version for name, version in sorted(parts.items()) if name not in own}

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

    def equivalence(self, cell: Cell) -> str:
        """Return a key that methods share which differ only by a rotation of the features."""
        learner = self._registry.get("learner", cell.learner.name)
        if not learner.rotation_invariant:
            return ""
        self._spans.find([cell.feature_map])
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
            f"{cell.dataset.label} has {counted(dataset.n_missing, 'missing value')} in "
            f"{shown}{more}; "
            'set missing = "impute", "indicate" or "drop_rows" in [protocol]',
        )
    if cell.protocol.inner_fit == "outer" and "category" in dataset.feature_kinds:
        return Problem("error", f"{cell.dataset.label}: {SHARED_CATEGORIES}")
    if cell.protocol.splits == "official" and not dataset.n_splits:
        return Problem("error", f'{cell.dataset.label} comes without splits (splits = "official")')
    return None


def with_expanded(suite: Suite, expanded: Mapping[str, Sequence[Ref]]) -> Suite:
    """Return the suite with each dataset line replaced by the datasets it means."""
    blocks = []
    for block in suite.blocks:
        datasets = [data for ref in block.datasets for data in expanded.get(ref.label, (ref,))]
        blocks.append(replace(block, datasets=tuple(datasets)))
    return replace(suite, blocks=tuple(blocks))

"""Keys of cells, and the tasks that they are.

Planning loads no data: the cache's manifest has the checksums.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kbench import records
from kbench.errors import KbenchError, PluginError
from kbench.evaluation.definitions import COMPUTED
from kbench.messages import SHARED_CATEGORIES, explain_missing
from kbench.planning import methods
from kbench.planning.cells import cells
from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell
from kbench.records.canonical import digest, to_json
from kbench.registry.collecting import Kind
from kbench.registry.dependencies import read_declared
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache


def make_key_from_json(
    method: Sequence[object], checksum: str, task: str, kinds: Sequence[str], code: Sequence[object]
) -> str:
    """Return the key of a cell, given what its data and its records say (`Planner.cell_key`).

    `method` has its map, learner and protocol as JSON, also of another version.
    """
    return digest(["cell", checksum, task, list(kinds), *method, *code])


def line_key(cell: records.Cell) -> str:
    """Return the key of a cell without data: a hash of its entries in the suite file."""
    return digest(["line", to_json(cell.dataset), *methods.describe_method(cell)])


class Planner:
    """Turns the cells of a suite into planned cells, and these into tasks."""

    def __init__(self, registry: Registry, data_cache: DataCache) -> None:
        self.registry = registry
        self.cache = data_cache
        self.present = Present()
        self._spans = methods.Spans(registry)

    def origin(self, ref: records.Ref) -> tuple[str, Mapping[str, Any], str]:
        """Return under what the cache has a dataset: name, parameters, and what its record says."""
        self._refuse_missing("dataset", ref.name)
        code = digest(methods.component_code("dataset", ref.name, self.registry))
        return ref.name, to_json(ref)["params"], code

    def dataset(self, ref: records.Ref) -> records.DatasetFacts | None:
        """Return the cache's facts of a dataset; None if it must be loaded."""
        return self.cache.recall(*self.origin(ref), self.is_valid)

    def has_other_data(self, ref: records.Ref, checksum: str) -> bool:
        """Return whether an entry of a suite is known to give other data now."""
        with contextlib.suppress(KbenchError):
            self.cache.describe(checksum)  # else nothing is known of it
            facts = self.dataset(ref)
            return facts is None or facts.checksum != checksum
        return False

    def is_valid(self, manifest: records.Manifest) -> bool:
        """Return whether all that something was made from is as it was."""
        return not self.present.why_changed(manifest)

    def plan(
        self,
        suite: records.Suite,
        datasets: Mapping[str, records.DatasetFacts | records.Problem | None],
    ) -> list[PlannedCell]:
        """Plan all cells of a suite; `recall` adds their cached results.

        `datasets` has facts of datasets by label, or the reason why one cannot be
        had. Any other dataset is still to be fetched.
        """
        planned = []
        # cells of one key, such as the same data under two labels, are computed once
        results: dict[str, dict[int, records.Result]] = {}
        every = list(cells(suite, self.registry))
        self._spans.find(
            cell.feature_map
            for cell in every
            if self.registry.get("learner", cell.learner.name).rotation_invariant
        )
        for cell in every:
            facts, limits = datasets.get(cell.dataset.label), suite.limits
            family = records.get_family(
                self.registry.get("feature map", cell.feature_map.name),
                self.registry.get("learner", cell.learner.name),
            )
            if facts is None or isinstance(facts, records.Problem):
                n_splits = how_many_splits(cell.protocol, limits)
                made = PlannedCell(cell, line_key(cell), None, n_splits, facts, family=family)
            else:
                key = self.cell_key(cell, facts)
                made = PlannedCell(
                    cell,
                    key,
                    facts,
                    how_many_splits(cell.protocol, limits, facts.n_splits),
                    _find_problem(cell, facts),
                    results=results.setdefault(key, {}),
                    equivalence=self.equivalence(cell),
                    family=family,
                )
            planned.append(made)
        return planned

    def task(self, planned: PlannedCell, index: int) -> records.Task:
        """Return the task of one split of a cell whose dataset is available."""
        cell, facts = planned.cell, planned.dataset
        assert facts is not None
        kinds = deciding_kinds(cell.protocol, facts)
        code = digest(methods.method_code(cell, self.registry, facts.task))
        plugins = self.list_plugins(cell)
        return records.Task(cell, index, planned.key, facts.checksum, kinds, code, plugins)

    def list_plugins(self, cell: records.Cell) -> tuple[str, ...]:
        """Return the third-party plugins of a cell's map, learner and search_metric."""
        return self.registry.list_plugins(*methods.list_components(cell, self.registry))

    def cell_key(self, cell: records.Cell, dataset: records.DatasetFacts) -> str:
        """Return the SHA-256 of everything that decides a cell's numbers.

        Of data: the checksum, the task, and the kinds of columns that are imputed or encoded. Of
        map and learner: what is given, what is searched and in which order, and what their records
        say. Then the protocol. Not the suite, labels, limits, jobs or the machine, and no code: a
        result has that in its manifest.
        """
        kinds = deciding_kinds(cell.protocol, dataset)
        method, code = methods.describe_method(cell), self.method_code(cell, dataset.task)
        return make_key_from_json(method, dataset.checksum, dataset.task, kinds, code)

    def method_code(self, cell: records.Cell, task: records.TaskType) -> list[Any]:
        """Return what records say of a cell's method; see `kbench.planning.methods`."""
        for kind, name in self.registry.list_reached(*methods.list_components(cell, self.registry)):
            self._refuse_missing(kind, name)
        return methods.method_code(cell, self.registry, task)

    def metric_code(self, name: str) -> str:
        """Return the identity of a metric that can be added to cached results.

        It is empty for a built-in metric. Raises PluginError if a file that the metric
        declares cannot be read.
        """
        if name in COMPUTED:
            return ""
        self._refuse_missing("metric", name)
        return digest(methods.component_code("metric", name, self.registry))

    def metric_codes(self) -> dict[str, str]:
        """Return `metric_code` of all metrics that have one, by name."""
        codes = dict.fromkeys(COMPUTED, "")
        for name in self.registry.all("metric"):
            with contextlib.suppress(PluginError):
                codes[name] = self.metric_code(name)
        return codes

    def _refuse_missing(self, kind: Kind, name: str) -> None:
        declared = read_declared(self.registry.get(kind, name))
        plugin = self.registry.owner(kind, name).name
        says = f"the plugin {plugin!r} declares that its {kind} {name!r} depends on"
        for module in sorted(declared.modules):
            if self.present.module(module) is None:
                raise PluginError(f"{says} {module}: there is no module {module!r}")
        for file in sorted(declared.files):
            path = self.present.find_path(file)
            if self.present.file(file) is None or path.is_dir():
                raise PluginError(f"{says} the file {file!r}, which cannot be read: {path}")

    def equivalence(self, cell: records.Cell) -> str:
        """Return a key that methods share which differ only by a rotation of the features."""
        if not self.registry.get("learner", cell.learner.name).rotation_invariant:
            return ""
        self._spans.find([cell.feature_map])
        spanned = self._spans.get(cell.feature_map)
        return digest([spanned, to_json(cell.learner), to_json(cell.protocol)]) if spanned else ""


def deciding_kinds(protocol: records.Protocol, dataset: records.DatasetFacts) -> tuple[str, ...]:
    """Return the column kinds if values are imputed or encoded by kind, else an empty tuple."""
    imputes = protocol.missing in ("impute", "impute_with_indicators") and dataset.n_missing > 0
    return dataset.feature_kinds if imputes or "target_encoded" in dataset.feature_kinds else ()


def how_many_splits(protocol: records.Protocol, limits: records.Limits, n_official: int = 1) -> int:
    """Return the number of planned splits: the suite's, or all there are.

    `n_official` splits come with the data.
    """
    if protocol.cv == "official":
        return n_official if limits.n_splits is None else min(n_official, limits.n_splits)
    if protocol.cv == "ordered":
        return 1
    default = 10 if protocol.cv == "holdout" else protocol.n_folds
    return default if limits.n_splits is None else limits.n_splits


def _find_problem(cell: records.Cell, dataset: records.DatasetFacts) -> records.Problem | None:
    if cell.protocol.missing == "error" and dataset.n_missing:
        why = explain_missing(cell.dataset.label, [*dataset.missing.items()], dataset.n_missing)
        return records.Problem("error", why)
    if not cell.protocol.refit_maps_in_inner_folds and "target_encoded" in dataset.feature_kinds:
        return records.Problem("error", f"{cell.dataset.label}: {SHARED_CATEGORIES}")
    if cell.protocol.cv == "official" and not dataset.n_splits:
        return records.Problem(
            "error", f'{cell.dataset.label} comes without splits (cv = "official")'
        )
    return None


def expand_datasets(
    suite: records.Suite, expanded: Mapping[str, Sequence[records.Ref]]
) -> records.Suite:
    """Return the suite with each dataset line replaced by the datasets it means."""

    def expand(refs: Sequence[records.Ref]) -> tuple[records.Ref, ...]:
        return tuple(data for ref in refs for data in expanded.get(ref.label, (ref,)))

    blocks = [replace(block, datasets=expand(block.datasets)) for block in suite.blocks]
    return replace(suite, blocks=tuple(blocks))

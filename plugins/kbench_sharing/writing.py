"""Write the files of a bundle from stored results, byte for byte reproducibly.

The results are recalled without fetching or computing anything. Third-party plugins behind them are
named by their distributions, and shared as text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kbench import features
from kbench._version import __version__
from kbench.errors import BundleError
from kbench.features import machine, read_source
from kbench.messages import option
from kbench.records import Ref, Result, Suite
from kbench.records.canonical import Json, JsonObject, digest, to_json, to_json_with_label
from kbench_sharing import bundle_records, zip_file
from kbench_sharing.bundle_records import SOURCES
from kbench_sharing.checks import round_all, round_score, round_time
from kbench_sharing.columns import dump_line, pack
from kbench_sharing.dependencies import dump_dependencies, portable
from kbench_sharing.predictions import dump_predictions
from kbench_sharing.reading import parse_bundle


@dataclass(frozen=True)
class Saved:
    """Cells of a suite that have results here, the planner of their keys, and cells without.

    `manifests` are by the digests that results name.
    """

    suite: Suite
    cells: list[features.PlannedCell]
    planner: features.Planner
    n_without: int
    manifests: Mapping[str, features.Manifest]

    @property
    def used(self) -> list[features.Manifest]:
        """What the results were made from, each once."""
        results = (result for cell in self.cells for result in cell.in_order)
        return list({result.manifest: self.read_manifest(result) for result in results}.values())

    def read_manifest(self, result: Result) -> features.Manifest:
        """Return what a result was made from; BundleError if that is unknown."""
        manifest = self.manifests.get(result.manifest)
        if manifest is None:
            raise BundleError("the dependencies of a result are unknown: compute it again")
        return manifest


def recall_results(suite: Suite, registry: features.Registry, n_splits: int | None = None) -> Saved:
    """Return the cells of a suite whose results hold: all they were made from is as it was.

    With `n_splits`, they have the first splits only.

    BundleError is raised if no result holds.
    """
    plan = features.SuitePlan(suite, registry, machine.machine_id())
    with features.open_fetching(registry) as fetching:
        plan.expand({ref.label: fetching.expand(ref) for ref in suite.datasets})
    plan.settle_metric()
    planned, _ = plan.cells()
    for cell in planned:
        n = min(cell.n_splits, n_splits or cell.n_splits)
        cell.n_splits, cell.results = n, {i: r for i, r in cell.results.items() if i < n}
    cells = [cell for cell in planned if cell.results and cell.dataset is not None]
    if not cells:
        raise BundleError(
            f"no results of {suite.name!r} are stored here: `kbench suite` computes them; "
            "results of changed code are out of date"
        )
    n_without = len(planned) - len(cells)
    return Saved(plan.suite, cells, plan.planner, n_without, plan.journal.manifests())


_TIMES = ("seconds", "machine_speed_s", "cpu_s")


def build_files(
    saved: Saved,
    suite_text: str,
    registry: features.Registry,
    *,
    author: str = "",
    with_errors: bool = False,
    with_sources: bool = False,
    predictions: features.Journal | None = None,
    data: Path | None = None,
) -> dict[str, bytes]:
    """Return the files of a bundle by name.

    `data` is the folder of the files that the suite names: their names are written
    relative to it. Tracebacks and printed output of failed tasks are written `with_errors`,
    the modules of third-party plugins `with_sources`, and the predictions that the journal
    `predictions` has kept.

    BundleError is raised if a dataset is a file outside of `data`, a bundle may not have one of
    the strings, or the manifest of a result is unknown.
    """
    cells = sorted(saved.cells, key=_order)
    results = (result for cell in cells for result in cell.in_order)
    machines = list(dict.fromkeys((result.machine, result.cpu) for result in results))
    numbers = {each: number for number, each in enumerate(machines)}
    of_label = {cell.cell.dataset.label: cell for cell in cells}
    refs = {label: _portable(cell.cell.dataset, data) for label, cell in of_label.items()}
    plugins = third_party(saved, registry)
    files = {
        bundle_records.SUITE: suite_text.encode(),
        bundle_records.LOCK: _lock(saved, plugins),
        bundle_records.DATASETS: _lines(
            _dataset(refs[label], of_label[label]) for label in sorted(refs)
        ),
        bundle_records.CELLS: _lines(_cell(cell, refs, saved) for cell in cells),
        bundle_records.RESULTS: pack(
            (
                _result(result, saved, numbers[result.machine, result.cpu], with_errors)
                for cell in {cell.key: cell for cell in cells}.values()
                for result in cell.in_order
            ),
            [cell.key for cell in cells],
        ),
        bundle_records.DEPENDENCIES: _lines(dump_dependencies(saved.used)),
        bundle_records.PLUGINS: _lines(plugin_lines(plugins, saved)),
        **(plugin_sources(plugins, saved) if with_sources else {}),
    }
    if predictions is not None:
        files[bundle_records.PREDICTIONS] = _lines(dump_predictions(cells, predictions))
    manifest = {
        "format": bundle_records.FORMAT,
        "suite": saved.suite.name,
        "author": author,
        "metric": saved.suite.compared.name,
        "better": saved.suite.compared.better,
        "versions": versions(),
        "machines": [_machine(*each) for each in machines],
        "files": {
            name: {"n_bytes": len(content), "sha256": zip_file.sha256(content)}
            for name, content in files.items()
        },
    }
    files[bundle_records.MANIFEST] = dump_line(manifest)
    # what is refused elsewhere is refused here, where it can be mended
    parse_bundle(files)
    return files


def versions() -> dict[str, str]:
    """Return the versions of Python, BLAS and the distributions that decide all numbers."""
    return {**machine.versions(), "kbench-core": __version__}


def _order(cell: features.PlannedCell) -> tuple[str, ...]:
    labels = (cell.cell.dataset, cell.cell.feature_map, cell.cell.learner)
    return (*(ref.label for ref in labels), cell.key)


def _machine(name: str, cpu: str) -> JsonObject:
    """Describe a machine; its id stays here, because it was made from the host's name."""
    return {"cpu": cpu, "cores": machine.physical_cores() if name == machine.machine_id() else None}


def _portable(ref: Ref, data: Path | None) -> Ref:
    """Return a dataset whose files are named relative to the folder of the data."""
    params = dict(ref.params)
    for key in features.FILE_PARAMETERS:
        name = params.get(key)
        if not isinstance(name, str) or not Path(name).expanduser().is_absolute():
            continue
        folder = (data or Path.cwd()).expanduser().absolute()
        if not Path(name).is_relative_to(folder):
            raise BundleError(
                f"the dataset {ref.label!r} is a file outside of {folder}, and a bundle contains "
                "no paths: write its path in the suite relative to a folder, and give the "
                f"folder with {option('data')}"
            )
        params[key] = Path(name).relative_to(folder).as_posix()
    label = ref.label
    if any(str(value) in label for key, value in ref.params.items() if params[key] != value):
        if label == Ref(ref.name, ref.params).label:
            label = ""
        else:
            raise BundleError(f"the label {label!r} contains a path: choose another label")
    return Ref(ref.name, params, label)


def _dataset(ref: Ref, planned: features.PlannedCell) -> JsonObject:
    facts = planned.dataset
    assert facts is not None
    names = bundle_records.SharedDataset.model_fields.keys() - {"ref", "source"}
    # files of the user are named by their paths
    source = "" if any(key in ref.params for key in features.FILE_PARAMETERS) else facts.source
    return {
        **{name: getattr(facts, name) for name in names},
        "ref": to_json_with_label(ref),
        "source": source,
    }


def _cell(planned: features.PlannedCell, refs: Mapping[str, Ref], saved: Saved) -> JsonObject:
    cell, facts = planned.cell, planned.dataset
    assert facts is not None
    return {
        "key": planned.key,
        "dataset": refs[cell.dataset.label].label,
        "feature_map": to_json_with_label(cell.feature_map),
        "learner": to_json_with_label(cell.learner),
        "protocol": to_json(cell.protocol),
        "kinds": list(features.deciding_kinds(cell.protocol, facts)),
        "code": saved.planner.method_code(cell, facts.task),
        "n_splits": planned.n_splits,
        "family": planned.family,
        "equivalence": planned.equivalence,
    }


def _result(result: Result, saved: Saved, number: int, with_errors: bool) -> JsonObject:
    line = result.to_json()
    details = asdict(result.details) if result.is_ok else {}
    if details:
        details["work_s"] = round_time(details["work_s"])
        details["search_seconds"] = [round_time(value) for value in details["search_seconds"]]
        details["search"] = [_round_candidate(candidate) for candidate in details["search"]]
    return {
        **{name: line[name] for name in bundle_records.SharedResult.model_fields if name in line},
        **{name: round_time(line[name]) for name in _TIMES},
        **dict.fromkeys(("error", "printed"), ""),
        **({"error": result.error, "printed": result.printed} if with_errors else {}),
        "cell": result.cell_key,
        "machine": number,
        "manifest": portable(saved.read_manifest(result)).digest,
        "limits": {n: v if math.isfinite(v) else None for n, v in line["limits"].items()},
        "details": details,
        # a metric that is not defined has no value in JSON, and none in a table
        "metrics": round_all({n: v for n, v in result.metrics.items() if math.isfinite(v)}),
    }


def _round_candidate(candidate: Mapping[str, Json]) -> JsonObject:
    """Return a candidate of a search whose scores are rounded, but for shares of rows."""
    return {
        name: [round_score(v) if isinstance(v, float) else v for v in value]
        if name == "values"
        else value
        for name, value in candidate.items()
    }


def _lines(values: Iterable[Json]) -> bytes:
    return b"".join(map(dump_line, values))


def _lock(saved: Saved, plugins: Sequence[Json]) -> bytes:
    """Return the distributions that the results were made with, as pip reads them."""
    used = (manifest.across_hosts().distributions for manifest in saved.used)
    pinned = {name: version for each in used for name, version in each.items() if version}
    python = pinned.pop("python")
    pinned["kbench-core"] = __version__
    pinned |= {plugin.distribution: plugin.version for plugin in plugins if plugin.version}
    lines = [f"{name}=={version}" for name, version in sorted(pinned.items())]
    return "\n".join([f"# Python {python}", *lines, ""]).encode()


def third_party(saved: Saved, registry: features.Registry) -> list[features.Plugin]:
    """Return the third-party plugins whose code computed results, by name."""
    names = {name for cell in saved.cells for name in saved.planner.list_plugins(cell.cell)}
    return sorted((p for p in registry.plugins if p.name in names), key=lambda p: p.name)


def plugin_lines(plugins: Iterable[features.Plugin], saved: Saved) -> list[JsonObject]:
    """Return name, distribution, version and fingerprint of plugins.

    The fingerprint is a hash of the modules of a plugin's package that results were made from.
    """
    return [
        {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "fingerprint": digest(_modules(plugin, saved)),
        }
        for plugin in plugins
    ]


def plugin_sources(plugins: Sequence[features.Plugin], saved: Saved) -> dict[str, bytes]:
    """Return the modules of plugins as files of a bundle; it is never installed by kbench."""
    files: dict[str, bytes] = {}
    paths: dict[str, Path | None] = {}
    for plugin in plugins:
        for module in _modules(plugin, saved):
            path = features.find_source(module, paths)
            if path is None or path.suffix != ".py":
                continue
            parts = module.split(".") + (["__init__"] if path.name == "__init__.py" else [])
            files[f"{SOURCES}{plugin.distribution}/{'/'.join(parts)}.py"] = read_source(path)
    return files


def _modules(plugin: features.Plugin, saved: Saved) -> dict[str, str | None]:
    """Return the modules of a plugin's package that results were made from, with their hashes."""
    package = plugin.module.partition(".")[0]
    return {
        module: value
        for manifest in saved.used
        for module, value in manifest.modules.items()
        if module.partition(".")[0] == package
    }

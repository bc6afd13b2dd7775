"""Records of plugins for a cell's method: part of its key, and what is recorded."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kbench.errors import PluginError
from kbench.records import Cell, Make, Ref, TaskType, Tune, alternatives
from kbench.records.canonical import dumps, from_json, to_json
from kbench.registry.callables import Reference, identify, makes, resolve
from kbench.registry.collecting import Kind
from kbench.registry.dependencies import Dependencies, read_declared
from kbench.registry.installed import HOST
from kbench.registry.registry import Registry

EVALUATION = "kbench.evaluation.evaluate"
"""The module that decides numbers, with all that it imports."""

Components = Collection[tuple[Kind, str]]  # kinds and names


def list_components(cell: Cell, registry: Registry) -> list[tuple[Kind, Ref]]:
    """Return the components whose code runs in the tasks of a cell."""
    components: list[tuple[Kind, Ref]] = [
        ("feature map", cell.feature_map),
        ("learner", cell.learner),
    ]
    if (metric := cell.protocol.search_metric) in registry.all("metric"):
        components.append(("metric", Ref(str(metric))))
    return components


def describe_method(cell: Cell) -> list[Any]:
    """Return map, learner and protocol of a cell as JSON."""
    return [to_json(cell.feature_map), to_json(cell.learner), to_json(cell.protocol)]


def _space(ref: Ref, record: Any) -> list[Any]:
    """Return the search space in the order of its candidates: ties go to the first."""
    paths = [path for name, value in ref.params.items() for path in _find_searches(name, value)]
    grid = [
        [to_json(tuple(values)), *_find_searches(name, Tune(tuple(values)))]
        for name, values in record.grid.items()
        if name not in ref.params
    ]
    return [grid, paths]


def _find_searches(name: str, value: object) -> Iterator[str]:
    if isinstance(value, Tune):
        yield name
        value = value.values
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _find_searches(f"{name}[{index}]", item)
    elif isinstance(value, Ref):
        for key, param in value.params.items():
            yield from _find_searches(f"{name}.{key}", param)


def method_code(cell: Cell, registry: Registry, task: TaskType) -> list[Any]:
    """Return what records say of a cell's method: the last parts of its key.

    They are the search spaces, fields of the records, and the callables.
    """
    map_record = registry.get("feature map", cell.feature_map.name)
    learner_record = registry.get("learner", cell.learner.name)
    sides = ((cell.feature_map, map_record), (cell.learner, learner_record))
    return [
        *(_space(ref, record) for ref, record in sides),
        [map_record.supervised, map_record.requires, learner_record.path],
        [list(pair) for pair in learner_record.simpler.items()],
        [
            [kind, name, *component_code(kind, name, registry, task)]
            for kind, name in sorted(registry.list_reached(*list_components(cell, registry)))
        ],
    ]


def component_code(
    kind: Kind, name: str, registry: Registry, task: TaskType | None = None
) -> list[Any]:
    """Return the callables of a component by field, and the other fields of a metric's record.

    Of a learner they are those for the task.
    """
    record = registry.get(kind, name)
    made = {field: identify(make).text for field, make in makes(record, task).items()}
    return [made, record.better, record.task, record.needs] if kind == "metric" else [made]


def list_dependencies(
    components: Components, registry: Registry, task: TaskType | None = None
) -> Dependencies:
    """Return the modules that define components, and what their records declare.

    It imports the modules. Those of third-party plugins have the module of their entry point
    too, which may register and patch. Raises PluginError if one cannot be imported.
    """
    dependencies = Dependencies()
    for kind, name in components:
        record, plugin = registry.get(kind, name), registry.owner(kind, name)
        # a package may export the name of a module that it loads on first use, and a module
        # may name a preset of what another one defines
        named = makes(record, task).values()
        identities = [identify(each) for make in named for each in (make, resolve(make))]
        modules = {module for each in identities for module in each.modules}
        if plugin.distribution != HOST or not all(each.is_importable for each in identities):
            modules.add(plugin.module)
        dependencies |= read_declared(record) | Dependencies(frozenset(modules - {""}))
    return dependencies


class Spans:
    """Spans of settings of feature maps; each is computed once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found: dict[str, str] = {}

    def find(self, feature_maps: Iterable[Ref]) -> None:
        """Find what the features of maps span, all settings of one map at once."""
        missing: dict[str, dict[str, Ref]] = {}
        for ref in feature_maps:
            if _write(ref) not in self._found:
                missing.setdefault(ref.name, {})[_write(ref)] = ref
        for name, refs in missing.items():
            span = self._registry.get("feature map", name).span
            spans = _call_span(span, list(refs.values())) if span is not None else [""] * len(refs)
            self._found |= dict(zip(refs, spans, strict=True))

    def get(self, feature_map: Ref) -> str:
        """Return what `find` found for a setting of a map; empty if nothing was found."""
        return self._found[_write(feature_map)]


def _write(ref: Ref) -> str:
    return dumps(to_json(ref))


def _call_span(span: Make, refs: Sequence[Ref]) -> list[str]:
    """Return what a record's `span` says about each setting of its map."""
    if isinstance(span, Reference):
        spans = span.call(f"{__name__}:spans_in_sandbox", [to_json(ref) for ref in refs])
    else:
        spans = [resolve(span)(_flat(ref.params)) for ref in refs]
    if len(spans) != len(refs) or not all(isinstance(each, str) for each in spans):
        raise PluginError(
            f"span of feature map {refs[0].name!r} must return a string for each entry"
        )
    return list(spans)


def _flat(params: Mapping[str, object]) -> dict[str, Any]:
    """Return parameters with one `Tune` over all that inner searches stand for."""
    flat = {name: alternatives(value) for name, value in params.items()}
    return {name: values[0] if len(values) == 1 else Tune(values) for name, values in flat.items()}


def spans_in_sandbox(span: Make, refs: Sequence[object]) -> list[str]:
    """Return the spans of refs in JSON, where the plugin is imported."""
    return _call_span(span, [from_json(ref) for ref in refs])

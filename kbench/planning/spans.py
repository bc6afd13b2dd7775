"""What the features of maps span (see `kbench.FeatureMap`), as far as their plugins tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kbench.errors import PluginError
from kbench.records import Make, Ref, Search, alternatives
from kbench.records.canonical import dumps, from_json, to_json
from kbench.registry.callables import Reference, resolve
from kbench.registry.registry import Registry


class Spans:
    """Spans of settings of feature maps; each is computed once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._found: dict[str, str] = {}

    def find(self, feature_maps: Iterable[Ref]) -> None:
        """Find what the features of maps span, all settings of one map at once."""
        missing: dict[str, dict[str, Ref]] = {}
        for ref in feature_maps:
            if _written(ref) not in self._found:
                missing.setdefault(ref.name, {})[_written(ref)] = ref
        for name, refs in missing.items():
            span = self._registry.get("feature map", name).span
            found = _spans_of(span, list(refs.values())) if span is not None else [""] * len(refs)
            self._found |= dict(zip(refs, found, strict=True))

    def of(self, feature_map: Ref) -> str:
        """Return what `find` found for a setting of a map; empty where nothing is known."""
        return self._found[_written(feature_map)]


def _written(ref: Ref) -> str:
    return dumps(to_json(ref))


def _spans_of(span: Make, refs: Sequence[Ref]) -> list[str]:
    """Return what a record's `span` says about each setting of its map.

    PluginError is raised where it does not return texts.
    """
    if isinstance(span, Reference):
        given = span.call(f"{__name__}:spans_in_sandbox", [to_json(ref) for ref in refs])
    else:
        given = [resolve(span)(_flat(ref.params)) for ref in refs]
    if len(given) != len(refs) or not all(isinstance(each, str) for each in given):
        raise PluginError(f"span of feature map {refs[0].name!r} must return a text for each line")
    return list(given)


def _flat(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with one `Search` over all that inner searches stand for."""
    flat = {name: alternatives(value) for name, value in params.items()}
    return {
        name: values[0] if len(values) == 1 else Search(values) for name, values in flat.items()
    }


def spans_in_sandbox(span: Make, refs: Sequence[Any]) -> list[str]:
    """Return the spans of refs in JSON, where the plugin is imported."""
    return _spans_of(span, [from_json(ref) for ref in refs])

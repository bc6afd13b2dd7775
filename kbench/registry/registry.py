"""Registry of components, made from entry points; a broken plugin is named and left out."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from kbench.errors import PluginError, SuiteError
from kbench.messages import did_you_mean, printable
from kbench.records import Ref, Tune
from kbench.registry.collecting import HOOKS, NESTED, Kind, Record, collect
from kbench.registry.installed import HOST, Plugin, how_to_get, refuse_other_version


@dataclass(frozen=True)
class Registry:
    """The records of all plugins, by kind and name; broken plugins have their reason."""

    plugins: tuple[Plugin, ...] = ()
    _records: Mapping[Kind, dict[str, Any]] = field(
        default_factory=lambda: {kind: {} for kind, _ in HOOKS.values()}
    )
    _owners: dict[tuple[Kind, str], Plugin] = field(default_factory=dict)

    def all(self, kind: Kind) -> Mapping[str, Any]:
        """Return all records of one kind, by name."""
        return MappingProxyType(self._records[kind])

    def get(self, kind: Kind, name: str) -> Any:
        """Return one record.

        Raises SuiteError if there is none of that name; the message has a similar name.
        """
        records = self._records[kind]
        if name not in records:
            raise SuiteError(f"no {kind} is named {name!r}{did_you_mean(name, records)}")
        return records[name]

    def get_nested(self, name: str) -> Any:
        """Return the record of a component inside a parameter: a kernel, else a map or learner.

        Raises SuiteError if there is none of that name.
        """
        return self._records[self._kind_of_nested(name)][name]

    def _kind_of_nested(self, name: str) -> Kind:
        for kind in NESTED:
            if name in self._records[kind]:
                return kind
        raise SuiteError(f"no kernel, feature map or learner is named {name!r}")

    def _nested_in(self, values: Iterable[object]) -> set[tuple[Kind, str]]:
        components: set[tuple[Kind, str]] = set()
        for value in values:
            if isinstance(value, Ref):
                components.add((self._kind_of_nested(value.name), value.name))
                components |= self._nested_in(value.params.values())
            elif isinstance(value, Tune):
                components |= self._nested_in(value.values)
            elif isinstance(value, tuple | list):
                components |= self._nested_in(value)
        return components

    def owner(self, kind: Kind, name: str) -> Plugin:
        """Return the plugin that gave a record."""
        return self._owners[kind, name]

    def list_reached(self, *components: tuple[Kind, Ref]) -> set[tuple[Kind, str]]:
        """Return kind and name of components, and of those inside parameters and grids."""
        reached = {(kind, ref.name) for kind, ref in components}
        for kind, ref in components:
            grid = getattr(self.get(kind, ref.name), "grid", {})
            searched = [values for name, values in grid.items() if name not in ref.params]
            reached |= self._nested_in([*ref.params.values(), *searched])
        return reached

    def list_plugins(self, *components: tuple[Kind, Ref]) -> tuple[str, ...]:
        """Return the third-party plugins whose code components run, nested ones included."""
        owners = (self.owner(kind, name) for kind, name in self.list_reached(*components))
        return tuple(sorted({owner.name for owner in owners if owner.distribution != HOST}))

    def find_kinds(self, name: str) -> list[Kind]:
        """Return the kinds in which something has this name."""
        return [kind for kind, records in self._records.items() if name in records]


def build(
    plugins: Iterable[Plugin], collect: Callable[[Plugin], list[Record]] = collect
) -> Registry:
    """Make a registry of the records of plugins; leave broken plugins out.

    `collect` returns the records of one plugin; by default its module is imported. A name
    that is taken makes the later plugin broken. Plugins with a reason are not loaded.
    """
    registry = Registry()
    done = [_register(plugin, registry, collect) for plugin in plugins]
    return replace(registry, plugins=tuple(done))


def _register(
    plugin: Plugin, registry: Registry, collect: Callable[[Plugin], list[Record]]
) -> Plugin:
    """Add all records of one plugin, or none."""
    if plugin.reason:
        return plugin
    try:
        refuse_other_version(plugin.distribution)
        collected = collect(plugin)
        for kind, name, _ in collected:
            if (kind, name) in registry._owners:
                other = registry._owners[kind, name]
                raise PluginError(
                    f"gives a {kind} called {name!r}, as does {other.name!r} of "
                    f"{other.distribution}: rename one of them"
                )
        _refuse_taken_endings(collected, registry)
    except (Exception, SystemExit) as error:
        return replace(plugin, reason=explain_failure(error, plugin.distribution))
    for kind, name, record in collected:
        registry._records[kind][name] = record
        registry._owners[kind, name] = plugin
    return plugin


def explain_failure(error: BaseException, distribution: str) -> str:
    """Return the reason why a plugin is left out, in one line that a terminal can show."""
    if isinstance(error, PluginError):
        reason = str(error)
    elif isinstance(error, ModuleNotFoundError):
        missing = error.name or str(error)
        how = how_to_get(missing, distribution)
        reason = f"needs the package {missing!r}, which is not installed{how}"
    else:
        reason = f"{type(error).__name__}: {error}".strip(": ")
    return printable(" ".join(reason.split()))


def _refuse_taken_endings(collected: Iterable[Record], registry: Registry) -> None:
    """Raise if two sources of datasets would read the same files."""
    taken = {ending: s.name for s in registry.all("dataset").values() for ending in s.extensions}
    for name, source in [(name, record) for kind, name, record in collected if kind == "dataset"]:
        for ending in source.extensions:
            if taken.setdefault(ending, name) != name:
                raise PluginError(
                    f"gives {name!r}, which reads files that end in {ending}, as does "
                    f"{taken[ending]!r}: only one of them may read this file extension"
                )

"""Registry of components, made from entry points; a broken plugin is named and left out.

A plugin is taken whole or not at all: one wrong record, and none of its records
are used, so that nobody compares half of a package without noticing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import Distribution, PackageNotFoundError, entry_points, metadata, requires
from importlib.resources.abc import Traversable
from pathlib import PurePath
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, Literal

import pluggy

from kbench import hookspecs
from kbench._version import __version__
from kbench.errors import PluginError, SuiteError
from kbench.messages import did_you_mean, printable
from kbench.records import (
    DatasetSource,
    FeatureMap,
    Figure,
    KernelSpec,
    Learner,
    Make,
    Ref,
    Search,
)
from kbench.registry.dependencies import declared
from kbench.registry.identity import identity_of
from kbench.registry.references import Reference

GROUP = "kbench"
HOST = "kbench-core"
"""Distribution of kbench itself; its plugins are registered before all others."""

DISABLED = "KBENCH_DISABLE_PLUGINS"
"""Environment variable with the names of plugins to leave out, separated by commas."""

Kind = Literal["dataset", "kernel", "feature map", "learner", "figure", "suite", "dashboard"]

HOOKS: Mapping[str, tuple[Kind, type]] = MappingProxyType(
    {
        "kbench_datasets": ("dataset", DatasetSource),
        "kbench_kernels": ("kernel", KernelSpec),
        "kbench_feature_maps": ("feature map", FeatureMap),
        "kbench_learners": ("learner", Learner),
        "kbench_figures": ("figure", Figure),
        "kbench_suites": ("suite", Traversable),
        "kbench_dashboards": ("dashboard", Traversable),
    }
)
NESTED: tuple[Kind, ...] = ("kernel", "feature map", "learner")
"""Kinds among which a nested component is looked up, in this order."""

_NAME = re.compile(r"[a-z0-9]+([-.][a-z0-9]+)*")
_ENDING = re.compile(r"\.[a-z0-9_-]+")
_MAPPINGS = {
    "grid": "parameters' names",
    "simpler": "parameters' names",
    "endings": "endings of file names",
}
"""Fields of records that are mappings, and their keys."""


@dataclass(frozen=True)
class Plugin:
    """A plugin before or after it was registered.

    `name` is that of its entry point, and `load` returns its module. `reason` says why
    the plugin was left out; it is empty when it works. `entry` is the object of its entry
    point, ``"module"`` or ``"module:name"``; empty for a plugin that is not installed.
    """

    name: str
    distribution: str
    version: str
    load: Callable[[], Any]
    reason: str = ""
    module: str = ""
    entry: str = ""


Record = tuple[Kind, str, Any]
"""A kind, a name, and the record that a plugin gives under them."""


def installed() -> list[Plugin]:
    """List the plugins that are installed, kbench's own first, without loading them.

    Those that `DISABLED` names have this as their reason.
    """
    described = functools.cache(_described)
    left_out = disabled()
    plugins = [
        Plugin(
            entry.name,
            *described(entry.dist),
            load=entry.load,
            reason=f"disabled by {DISABLED}" if entry.name in left_out else "",
            module=entry.module,
            entry=entry.value,
        )
        for entry in entry_points(group=GROUP)
    ]
    # an editable install can be listed twice: by its metadata and by its source folder
    unique = {(plugin.distribution, plugin.name): plugin for plugin in plugins}
    return sorted(unique.values(), key=lambda p: (p.distribution != HOST, p.distribution, p.name))


def disabled() -> list[str]:
    """Return the names of plugins in `DISABLED`."""
    names = (name.strip() for name in os.environ.get(DISABLED, "").split(","))
    return [name for name in names if name]


def _described(distribution: Distribution | None) -> tuple[str, str]:
    """Return the name and version of a distribution; each access parses its metadata anew."""
    if distribution is None:
        return "unknown", ""
    about = distribution.metadata
    return about["Name"], about["Version"]


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

        Raises
        ------
        SuiteError
            There is none of that name; the message has a similar name.
        """
        records = self._records[kind]
        if name not in records:
            raise SuiteError(f"no {kind} is called {name!r}{did_you_mean(name, records)}")
        return records[name]

    def nested(self, name: str) -> Any:
        """Return the record of a component inside a parameter: a kernel, else a map or learner.

        Raises
        ------
        SuiteError
            There is none of that name.
        """
        return self._records[self._kind_of_nested(name)][name]

    def _kind_of_nested(self, name: str) -> Kind:
        for kind in NESTED:
            if name in self._records[kind]:
                return kind
        raise SuiteError(f"no kernel, feature map or learner is called {name!r}")

    def _nested_in(self, values: Iterable[Any]) -> set[tuple[Kind, str]]:
        found: set[tuple[Kind, str]] = set()
        for value in values:
            if isinstance(value, Ref):
                found.add((self._kind_of_nested(value.name), value.name))
                found |= self._nested_in(value.params.values())
            elif isinstance(value, Search):
                found |= self._nested_in(value.values)
            elif isinstance(value, tuple | list):
                found |= self._nested_in(value)
        return found

    def owner(self, kind: Kind, name: str) -> Plugin:
        """Return the plugin that gave a record."""
        return self._owners[kind, name]

    def reached(self, *components: tuple[Kind, Ref]) -> set[tuple[Kind, str]]:
        """Return kind and name of components, and of those inside parameters and grids."""
        found = {(kind, ref.name) for kind, ref in components}
        for kind, ref in components:
            grid = getattr(self.get(kind, ref.name), "grid", {})
            searched = [values for name, values in grid.items() if name not in ref.params]
            found |= self._nested_in([*ref.params.values(), *searched])
        return found

    def plugins_of(self, *components: tuple[Kind, Ref]) -> tuple[str, ...]:
        """Return the third-party plugins whose code components run, nested ones included."""
        owners = (self.owner(kind, name) for kind, name in self.reached(*components))
        return tuple(sorted({owner.name for owner in owners if owner.distribution != HOST}))

    def kinds_of(self, name: str) -> list[Kind]:
        """Return the kinds in which something has this name."""
        return [kind for kind, records in self._records.items() if name in records]


def collect(plugin: Plugin) -> list[Record]:
    """Import a plugin, call its hooks and check their records."""
    # text that a plugin prints at import must not end up in `--json` output
    with contextlib.redirect_stdout(sys.stderr), _folder_kept():
        return _collect(plugin.load(), plugin.name)


def _collect(loaded: Any, name: str) -> list[Record]:
    # pluggy asks dir(), which a module with lazy exports may have narrowed
    holder = SimpleNamespace(**vars(loaded)) if isinstance(loaded, ModuleType) else loaded
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(holder, name=name)
    hooks = manager.get_hookcallers(holder)
    if not hooks:
        raise PluginError("has no hook: none of its functions is marked with kbench.hookimpl")
    collected: list[Record] = []
    for hook in hooks:
        if hook.name not in HOOKS:
            raise PluginError(f"has no such hook: {hook.name}{did_you_mean(hook.name, HOOKS)}")
        kind, type_ = HOOKS[hook.name]
        given = hook.get_hookimpls()[0].function()
        if not isinstance(given, list | tuple):
            raise PluginError(
                f"{hook.name} returned {type(given).__name__}, not a list of {type_.__name__}"
            )
        collected += [(kind, checked_name(hook.name, record, type_), record) for record in given]
    for (kind, name), n in Counter((kind, name) for kind, name, _ in collected).items():
        if n > 1:
            raise PluginError(f"gives a {kind} called {name!r} twice")
    return collected


@contextlib.contextmanager
def _folder_kept() -> Iterator[None]:
    """Return to the current folder afterwards: stores and files are named relative to it."""
    # a folder need not be readable to be the current one
    folder = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    try:
        yield
    finally:
        os.fchdir(folder)
        os.close(folder)


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
        _refuse_other_version(plugin.distribution)
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
        return replace(plugin, reason=why_left_out(error, plugin.distribution))
    for kind, name, record in collected:
        registry._records[kind][name] = record
        registry._owners[kind, name] = plugin
    return plugin


def why_left_out(error: BaseException, distribution: str) -> str:
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


def _refuse_other_version(distribution: str) -> None:
    """Raise if a distribution asks for another version of kbench than this."""
    if distribution == HOST:  # asks for no version of itself
        return
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:  # a plugin that was never installed, in tests
        return
    for line in lines:
        if not re.match(r"kbench[-_.]core\b", line, re.IGNORECASE):
            continue
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        wanted = Requirement(line)
        if canonicalize_name(wanted.name) != HOST:
            continue
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        if not wanted.specifier.contains(__version__, prereleases=True):
            raise PluginError(
                f"is made for {HOST}{wanted.specifier}, and this is {__version__}: "
                f"install a version of {distribution} that goes with it, or that {HOST}"
            )


def _refuse_taken_endings(collected: Iterable[Record], registry: Registry) -> None:
    """Raise if two sources of datasets would read the same files."""
    taken = {ending: s.name for s in registry.all("dataset").values() for ending in s.endings}
    for name, source in [(name, record) for kind, name, record in collected if kind == "dataset"]:
        for ending in source.endings:
            if taken.setdefault(ending, name) != name:
                raise PluginError(
                    f"gives {name!r}, which reads files that end in {ending}, as does "
                    f"{taken[ending]!r}: leave the ending to one of them"
                )


def checked_name(hook: str, record: Any, type_: type) -> str:
    """Return the name under which a record is registered."""
    if not isinstance(record, type_):
        raise PluginError(f"{hook} returned a {type(record).__name__} where {type_.__name__} goes")
    name: object = record.name  # type: ignore[attr-defined]
    if type_ is Traversable:
        if not str(name).isprintable():
            raise PluginError(f"{hook} gives the file {name!r}: its name cannot be printed")
        return PurePath(str(name)).stem if str(name).endswith(".toml") else str(name)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PluginError(
            f"{hook} gives the name {name!r}: names are lower case letters, digits and hyphens"
        )
    for field_name, keys in _MAPPINGS.items():
        given = getattr(record, field_name, {})
        if not isinstance(given, Mapping):
            raise PluginError(
                f"{hook}: {field_name} of {name!r} must be a mapping of {keys}, "
                f"got {type(given).__name__}"
            )
    if isinstance(record, DatasetSource | FeatureMap | KernelSpec | Learner):
        try:
            declared(record)
        except PluginError as error:
            raise PluginError(f"{hook}: {error}") from None
        for field_name, make in makes(record).items():
            try:
                identity_of(make)
            except PluginError as error:
                raise PluginError(f"{hook}: {field_name} of {name!r} {error}") from None
    for ending, given in getattr(record, "endings", {}).items():
        if not (isinstance(ending, str) and _ENDING.fullmatch(ending)):
            raise PluginError(
                f"{hook}: {name!r} has the ending {ending!r}: endings are a dot and lower case "
                'letters or digits, such as ".csv"'
            )
        if not isinstance(given, Mapping):
            raise PluginError(
                f"{hook}: the ending {ending!r} of {name!r} must have a mapping of the parameters "
                f"that it implies, got {type(given).__name__}"
            )
    return name


def resolve(make: Make) -> Callable[..., Any]:
    """Return the class or function of a record's `make`, importing its module if need be.

    Raises
    ------
    PluginError
        The module or the name in it does not exist.

    Examples
    --------
    >>> resolve("collections:Counter")
    <class 'collections.Counter'>
    """
    if not isinstance(make, str):
        return make
    module, _, name = make.partition(":")
    try:
        target = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise PluginError(
                f"{make} needs the package {error.name!r}, which is not installed"
                f"{how_to_get(error.name, _distribution_of(module))}"
            ) from error
        raise PluginError(f"there is no module {module!r}") from error
    except AttributeError as error:
        raise PluginError(f"the module {module!r} has no {name!r}") from error
    if not callable(target):
        raise PluginError(f"{make} is not callable")
    return target  # type: ignore[no-any-return]


def _distribution_of(module: str) -> str:
    """Return the distribution of a module's plugin; that of kbench if none is known."""
    top = module.partition(".")[0]
    owners = [p.distribution for p in installed() if p.module.partition(".")[0] == top]
    return owners[0] if owners else HOST


def how_to_get(package: str, plugin: str = HOST) -> str:
    """Return the command that installs an extra with a package; empty if no extra has it.

    `package` is its name in import statements or in the index, `plugin` the distribution
    of the plugin.

    Examples
    --------
    >>> how_to_get("numba")
    ": pip install 'kbench-core[fast]'"
    >>> how_to_get("no-such-package")
    ''
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    try:
        lines = requires(plugin) or []
        extras = metadata(plugin).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return ""
    markers = [
        requirement.marker
        for requirement in map(Requirement, lines)
        if requirement.marker and canonicalize_name(requirement.name) == canonicalize_name(package)
    ]
    matches = [e for e in extras if any(marker.evaluate({"extra": e}) for marker in markers)]
    # an extra for this package says more than one that gathers others
    specific = [extra for extra in matches if extra not in ("all", "dev", "test")]
    return f": pip install '{plugin}[{(specific or matches)[0]}]'" if matches else ""


def module_of(make: Make) -> str:
    """Return the name of the module that defines a record's `make`, without importing it."""
    return target_of(make).partition(":")[0]


def target_of(make: Make) -> str:
    """Return a record's `make` as ``"module:name"``; a partial's is that of its function."""
    if isinstance(make, str):
        return make
    if isinstance(make, Reference):
        return make.target
    if isinstance(make, functools.partial):  # else it would be functools
        return target_of(make.func)
    return f"{make.__module__}:{getattr(make, '__qualname__', type(make).__qualname__)}"


def makes(record: Any) -> dict[str, Make]:
    """Return the callables of a record that decide numbers, by field."""
    names = ("make", "load", "kernel", "measures")
    fields = {name: getattr(record, name, None) for name in names}
    return {name: make for name, make in fields.items() if make is not None}

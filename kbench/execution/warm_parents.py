"""Warm parents of tasks: one for each set of third-party plugins.

A plugin that patches scikit-learn or changes a setting of numpy alters everything that is computed
in its process. The process of a task therefore imports no other plugins than those of its cell.
Built-in plugins are in all of them, so that a usual suite has one warm parent.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from kbench.execution.sandbox import Sandbox
from kbench.planning.methods import list_components
from kbench.records import Cell, Ref, Suite
from kbench.registry.callables import get_module, makes
from kbench.registry.collecting import HOOKS, Kind
from kbench.registry.dependencies import read_declared
from kbench.registry.installed import HOST, packages
from kbench.registry.registry import Registry

PLUGINS = "KBENCH_TASK_PLUGINS"
"""Environment variable of a task: its third-party plugins, separated by commas."""

MOST = 4
"""Warm parents that are kept while nothing runs in them."""

_ENTRY = "kbench.execution.task_functions"

WARM = (f"{_ENTRY}:warm", f"{_ENTRY}:load_plugins")
"""What the warm parent of the built-in plugins does first."""

Preload = Mapping[tuple[str, ...], tuple[str, ...]]
"""What the warm parent of each set of plugins imports and calls, in order, and which environment
variables it gets even if they hold credentials: `GIVEN` and the name."""

GIVEN = "$"


def make_preload(suite: Suite, registry: Registry) -> Preload:
    """Return the modules and functions that the warm parents of a suite's tasks load."""
    sets: dict[tuple[str, ...], list[tuple[Kind, Ref]]] = {(): []}
    for block in suite.blocks:
        for feature_map in block.feature_maps:
            for learner in block.learners:
                cell = Cell(block.datasets[0], feature_map, learner, block.protocol)
                components = list_components(cell, registry)
                sets.setdefault(registry.list_plugins(*components), []).extend(components)
    for ref in suite.datasets:
        sets.setdefault(registry.list_plugins(("dataset", ref)), [])
    # parameters are checked with all plugins at once
    sets.setdefault(_union(sets), [])
    of_devices = ("kbench.evaluation.device:use_torch",) * (suite.protocols[0].device != "cpu")
    return {
        plugins: (*of_devices, *_preload(plugins, pairs, registry))
        for plugins, pairs in sets.items()
    }


def variables_of_sources(registry: Registry) -> Preload:
    """Return the variables that sources of datasets get, by the plugins that read them."""
    sets = {registry.list_plugins(("dataset", Ref(name))) for name in registry.all("dataset")}
    return {plugins: variables for plugins in sets if (variables := _variables(plugins, registry))}


def preload_of_metrics(names: Iterable[str], registry: Registry) -> Preload:
    """Return the same for processes that compute metrics of plugins."""
    sets: dict[tuple[str, ...], list[tuple[Kind, Ref]]] = {}
    for name in names:
        if name in registry.all("metric"):
            metric: tuple[Kind, Ref] = ("metric", Ref(name))
            sets.setdefault(registry.list_plugins(metric), []).append(metric)
    return {plugins: _preload(plugins, metrics, registry) for plugins, metrics in sets.items()}


def _variables(plugins: tuple[str, ...], registry: Registry) -> tuple[str, ...]:
    records = (
        record
        for kind, _ in HOOKS.values()
        for name, record in registry.all(kind).items()
        if registry.owner(kind, name).name in plugins
    )
    return tuple(sorted({f"{GIVEN}{name}" for r in records for name in read_declared(r).variables}))


def _union(sets: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(sorted({name for plugins in sets for name in plugins}))


def _preload(
    plugins: tuple[str, ...], components: Iterable[tuple[Kind, Ref]], registry: Registry
) -> tuple[str, ...]:
    """Return what the warm parent of some plugins imports and calls, and its variables."""
    own_modules, foreign, doubtful = set[str](), set[str](), set[str]()
    for kind, ref in components:
        record = registry.get(kind, ref.name)
        modules = {get_module(make) for make in makes(record).values()}
        is_own = registry.owner(kind, ref.name).distribution == HOST
        (own_modules if is_own else foreign).update(modules)
        doubtful.update(modules if record.depends else ())  # on packages that may do harm
    # scikit-learn first: each trial import of a plugin's module would load it again
    ordered = sorted(own_modules, key=lambda name: (not name.startswith("sklearn."), name))
    if not plugins:
        ordered.sort(key=lambda name: name not in doubtful)
        ordered.insert(len(own_modules & doubtful), f"{_ENTRY}:trust_built_in")
        own_calls = f"{_ENTRY}:rehearse", f"{_ENTRY}:thread_pools"
        return (*WARM, *ordered, *own_calls, *_variables(plugins, registry))
    entries = [p.module for p in registry.plugins if p.name in plugins and p.distribution != HOST]
    first = f"{_ENTRY}:warm", *ordered, "kbench.execution.global_state:watch"
    last = f"{_ENTRY}:load_plugins", f"{_ENTRY}:thread_pools", *_variables(plugins, registry)
    return (*first, *filter(None, entries), *sorted(foreign - own_modules), *last)


class WarmParents:
    """Sandboxes by their third-party plugins (see `make_preload`); each starts when first used."""

    def __init__(self, preload: Preload | None = None) -> None:
        self.preload = dict(preload or {})
        self._lock = threading.Lock()
        self._sandboxes: OrderedDict[tuple[str, ...], Sandbox] = OrderedDict()
        self._users: dict[tuple[str, ...], int] = {}
        self._closed = False

    @property
    def every(self) -> tuple[str, ...]:
        """All third-party plugins of the suite."""
        return _union(self.preload)

    @contextmanager
    def using(self, plugins: tuple[str, ...] = ()) -> Iterator[Sandbox]:
        """Lend the sandbox whose processes import these plugins and the built-in ones."""
        with self._lock:
            if (sandbox := self._sandboxes.pop(plugins, None)) is None:
                preload = self.preload.get(plugins, ())
                modules = [name for name in preload if not name.startswith(GIVEN)]
                # no code of others runs beside the built-in plugins, whose sources need keys
                names = [name.removeprefix(GIVEN) for name in preload] if plugins else os.environ
                environment = {name: os.environ[name] for name in names if name in os.environ}
                environment[PLUGINS] = ",".join(plugins)
                sandbox = Sandbox(modules, environment=environment, record=packages())
                if self._closed:
                    sandbox.close()
            self._sandboxes[plugins] = sandbox
            self._users[plugins] = self._users.get(plugins, 0) + 1
            idle = [name for name in self._sandboxes if not self._users[name]]
            n_surplus = max(0, len(self._sandboxes) - MOST)
            surplus = [self._sandboxes.pop(name) for name in idle[:n_surplus]]
        for unused in surplus:
            unused.close()
        try:
            yield sandbox
        finally:
            with self._lock:
                self._users[plugins] -= 1

    def light(self) -> "WarmParents":
        """Return others that import no components, which takes longer than to check them."""
        preload = {
            plugins: tuple(name for name in names if name in WARM or name.startswith(GIVEN))
            for plugins, names in self.preload.items()
        }
        return WarmParents(preload)

    def close(self) -> None:
        """End every process; calls in flight return "crashed"."""
        with self._lock:
            self._closed = True
            sandboxes = list(self._sandboxes.values())
        for sandbox in sandboxes:
            sandbox.close()

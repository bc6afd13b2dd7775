"""Records of one plugin, collected from its hooks and checked.

A plugin is taken whole or not at all: one wrong record, and none of its records
are used, so that half of a package is never compared unnoticed.
"""

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import PurePath
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, get_args

import pluggy

from kbench import hookspecs, records
from kbench.errors import PluginError
from kbench.messages import did_you_mean
from kbench.registry.callables import identify, makes
from kbench.registry.dependencies import read_declared
from kbench.registry.installed import GROUP, Plugin

Kind = Literal[
    "dataset", "kernel", "feature map", "learner", "metric", "figure", "suite", "dashboard"
]

HOOKS: Mapping[str, tuple[Kind, type]] = {
    "kbench_datasets": ("dataset", records.DatasetSource),
    "kbench_kernels": ("kernel", records.KernelSpec),
    "kbench_feature_maps": ("feature map", records.FeatureMap),
    "kbench_learners": ("learner", records.Learner),
    "kbench_metrics": ("metric", records.Metric),
    "kbench_figures": ("figure", records.Figure),
    "kbench_suites": ("suite", Traversable),
    "kbench_dashboards": ("dashboard", Traversable),
}
# Kinds among which a nested component is looked up, in this order.
NESTED: tuple[Kind, ...] = ("kernel", "feature map", "learner")

# A kind, a name, and the record that a plugin gives under them.
Record = tuple[Kind, str, Any]

_NAME = re.compile(r"[a-z0-9]+([-.][a-z0-9]+)*")
_METRIC_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_METRIC_NAME_CHARS = 100
_SD = "_sd"
_ENDING = re.compile(r"\.[a-z0-9_-]+")
# Fields of records that are mappings, and their keys.
_MAPPINGS = {
    "grid": "parameters' names",
    "simpler": "parameters' names",
    "extensions": "extensions of file names",
}


def collect(plugin: Plugin) -> list[Record]:
    """Import a plugin, call its hooks and check their records."""
    # stores and files are named relative to the current folder, which a plugin must not change;
    # and what it prints must not end up in `--json` output
    with contextlib.chdir("."), contextlib.redirect_stdout(sys.stderr):
        return _collect(plugin.load(), plugin.name)


def _collect(loaded: object, name: str) -> list[Record]:
    # pluggy asks dir(), which a module with lazy exports may have narrowed
    holder = SimpleNamespace(**vars(loaded)) if isinstance(loaded, ModuleType) else loaded
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(holder, name=name)
    if not (hooks := manager.get_hookcallers(holder)):
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
        collected += [(kind, check_name(hook.name, record, type_), record) for record in given]
    for (kind, name), n in Counter((kind, name) for kind, name, _ in collected).items():
        if n > 1:
            raise PluginError(f"gives a {kind} called {name!r} twice")
    return collected


def check_name(hook: str, record: object, type_: type) -> str:
    """Return the name under which a record is registered."""
    if not isinstance(record, type_):
        raise PluginError(f"{hook} returned a {type(record).__name__} where {type_.__name__} goes")
    name: object = record.name  # type: ignore[attr-defined]
    if type_ is Traversable:
        if not str(name).isprintable():
            raise PluginError(f"{hook} gives the file {name!r}: its name cannot be printed")
        return PurePath(str(name)).stem if str(name).endswith(".toml") else str(name)
    if isinstance(record, records.Metric):
        _check_metric(hook, record)
    elif not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PluginError(
            f"{hook} gives the name {name!r}: names are lower case letters, digits and hyphens"
        )
    assert isinstance(name, str)
    for field_name, keys in _MAPPINGS.items():
        names = getattr(record, field_name, {})
        if not isinstance(names, Mapping):
            raise PluginError(
                f"{hook}: {field_name} of {name!r} must be a mapping of {keys}, "
                f"got {type(names).__name__}"
            )
    if hasattr(record, "depends"):
        try:
            read_declared(record)
        except PluginError as error:
            raise PluginError(f"{hook}: {error}") from None
        for field_name, make in makes(record).items():
            try:
                identify(make)
            except PluginError as error:
                raise PluginError(f"{hook}: {field_name} of {name!r} {error}") from None
    for ending, names in getattr(record, "extensions", {}).items():
        if not (isinstance(ending, str) and _ENDING.fullmatch(ending)):
            raise PluginError(
                f"{hook}: {name!r} has the extension {ending!r}: extensions are a dot and lower "
                'case letters or digits, such as ".csv"'
            )
        if not isinstance(names, Mapping):
            raise PluginError(
                f"{hook}: the extension {ending!r} of {name!r} must have a mapping of the "
                f"parameters that it implies, got {type(names).__name__}"
            )
    return name


def _check_metric(hook: str, metric: records.Metric) -> None:
    """Raise if a plugin's metric has a wrong or a taken name, or lacks what it must have."""
    name, definition = metric.name, metric.definition
    label, named = name if isinstance(name, str) else "", f" gives the name {name!r}: "
    wrong = {
        f"{named}names of metrics are lower case letters, digits and underscores": (
            not _METRIC_NAME.fullmatch(label)
        ),
        f" gives a name of more than {_METRIC_NAME_CHARS} characters": (
            len(label) > _METRIC_NAME_CHARS
        ),
        f"{named}kbench reports a number of that name itself": label in records.RESERVED,
        f"{named}names that end in {_SD!r} are those of standard deviations": label.endswith(_SD),
        f"{named}names that begin with {records.DEFAULT!r} are those of default candidates": (
            label.startswith(records.DEFAULT)
        ),
    }
    allowed: dict[str, tuple[Any, ...]] = {
        "better": ("higher", "lower"),
        "task": (*records.TASK_TYPES, None),
        "needs": get_args(records.Needs),
    }
    for field_name, values in allowed.items():
        value, listed = getattr(metric, field_name), ", ".join(map(repr, values))
        wrong[f": {field_name} of {name!r} must be {listed}, got {value!r}"] = value not in values
    wrong |= {
        f": the metric {name!r} has no function": metric.function is None,
        f": definition of {name!r} must be a string of one line": (
            not isinstance(definition, str) or not definition.strip() or "\n" in definition
        ),
        f": {name!r} needs a distribution, so that its task must be 'regression', "
        f"got {metric.task!r}": metric.needs == "distribution" and metric.task != "regression",
    }
    for reason, is_wrong in wrong.items():
        if is_wrong:
            raise PluginError(hook + reason)

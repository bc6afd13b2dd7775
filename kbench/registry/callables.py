"""Callables that records give: objects, ``"module:name"``, or references to plugins' code."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any, NoReturn

from kbench.errors import PluginError
from kbench.records import Make, TaskType
from kbench.registry.identity import Identity
from kbench.registry.installed import HOST, how_to_get, installed


@dataclasses.dataclass(frozen=True)
class Reference:
    """A callable of a third-party plugin: a field of one of its records.

    Only sandboxed processes import such a plugin, so that nothing that its code does
    befalls the command.
    """

    plugin: str
    distribution: str
    """The plugin's entry point and distribution."""
    kind: str
    name: str
    field: str
    """The record and its field."""
    target: str
    """The callable as ``"module:name"``."""
    summary: str | None
    """First sentence of its docstring; None where that is read from the target's source."""
    identity: Identity
    """What enters keys for it."""
    ask: Callable[[Reference, str, Any], Any] = dataclasses.field(compare=False, repr=False)
    """``ask(reference, function, argument)`` returns what `call` returns."""

    def call(self, function: str, argument: Any = None) -> Any:
        """Return ``function(callable, argument)``, computed in a sandboxed process.

        `function` is ``"module:name"`` of kbench. Argument and result are plain JSON
        values; what comes back is as trustworthy as the plugin.

        PluginError is raised where the plugin's code failed.
        """
        return self.ask(self, function, argument)

    def __call__(self, *args: Any, **params: Any) -> NoReturn:
        """Refuse to run the plugin's code in this process."""
        raise PluginError(
            f"{self.field} of {self.kind} {self.name!r} runs in sandboxed processes only: "
            f"plugin {self.plugin!r} is not imported here"
        )


def resolve(make: Make) -> Callable[..., Any]:
    """Return the class or function of a record's `make`, importing its module if need be.

    PluginError is raised where the module or the name in it does not exist.

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


def makes(record: Any, task: TaskType | None = None) -> dict[str, Make]:
    """Return the callables of a record that decide numbers, by field.

    With a `task`, a learner's estimator of another task is left out.
    """
    names = ["make", "regressor", "load", "kernel", "measures", "function"]
    if task is not None and hasattr(record, "regressor"):
        names.remove("make" if task == "regression" else "regressor")
    fields = {name: getattr(record, name, None) for name in names}
    return {name: make for name, make in fields.items() if make is not None}


def makers(record: Any, task: TaskType | None = None) -> list[Make]:
    """Return what makes a component: a loader, or the estimators of a learner's tasks.

    With a `task`, a learner's estimator of another task is left out.
    """
    found = makes(record, task)
    return [found[name] for name in ("load", "make", "regressor", "function") if name in found]

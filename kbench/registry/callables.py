"""Callables that records give, as objects or as ``"module:name"``."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from kbench.errors import PluginError
from kbench.records import Make, TaskType
from kbench.registry.installed import HOST, how_to_get, installed
from kbench.registry.references import Reference


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

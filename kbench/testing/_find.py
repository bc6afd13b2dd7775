"""Lookup of a plugin by module, entry point or distribution."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

from kbench.errors import PluginError
from kbench.messages import did_you_mean
from kbench.registry.installed import Plugin


def find(plugin: Any, installed: Sequence[Plugin]) -> list[Plugin]:
    """Return the plugins that a module, or a name, stands for.

    The name is that of an entry point, a module or a distribution, which may bring
    several plugins. A module that is not installed as a plugin is imported.

    Raises
    ------
    PluginError
        There is none of that name.
    """
    if isinstance(plugin, Plugin):
        return [plugin]
    name = plugin.__name__ if isinstance(plugin, ModuleType) else str(plugin)
    for field in ("name", "module", "distribution"):
        matches = [p for p in installed if _normalized(getattr(p, field)) == _normalized(name)]
        if matches:
            return matches
    if isinstance(plugin, ModuleType):
        return [Plugin(name, "not installed", "", lambda: plugin, module=name)]
    if _is_module(name):
        load = partial(importlib.import_module, name)
        return [Plugin(name, "not installed", "", load, module=name)]
    known = {field for plugin in installed for field in (plugin.name, plugin.distribution)}
    raise PluginError(
        f"no plugin, module or distribution is called {name!r}{did_you_mean(name, known)}"
    )


def _normalized(name: str) -> str:
    """Write a name one way: distributions are the same under hyphens and underscores."""
    return name.lower().replace("_", "-")


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    except Exception:  # raised by its package at import; loading the module reports it
        return True

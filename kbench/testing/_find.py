"""From whatever a user calls a plugin to the plugin."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from kbench.errors import PluginError
from kbench.messages import did_you_mean
from kbench.registry.registry import Plugin


def find(plugin: Any, installed: Sequence[Plugin]) -> list[Plugin]:
    """Return the plugins that a user means.

    Parameters
    ----------
    plugin : module or str
        A module; or the name of an entry point, a module or a distribution,
        which may bring several plugins.
    installed : sequence of Plugin
        Those that are installed; others are imported by the name of their
        module.

    Raises
    ------
    PluginError
        There is none of that name.
    """
    if isinstance(plugin, Plugin):
        return [plugin]
    name = plugin.__name__ if isinstance(plugin, ModuleType) else str(plugin)
    for of in ("name", "module", "distribution"):
        found = [each for each in installed if _key(getattr(each, of)) == _key(name)]
        if found:
            return found
    if isinstance(plugin, ModuleType):
        return [Plugin(name, "not installed", "", lambda: plugin, module=name)]
    if _is_module(name):
        return [
            Plugin(name, "not installed", "", lambda: importlib.import_module(name), module=name)
        ]
    known = {each.name for each in installed} | {each.distribution for each in installed}
    raise PluginError(
        f"no plugin, module or distribution is called {name!r}{did_you_mean(name, known)}"
    )


def _key(name: str) -> str:
    """Distributions are the same under hyphens, underscores and dots."""
    return name.lower().replace("_", "-")


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    except Exception:  # of its package, while that is imported: loading the module tells
        return True

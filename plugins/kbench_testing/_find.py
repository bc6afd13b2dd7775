"""Lookup of a plugin by module, entry point or distribution."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

from kbench.errors import FeatureError, PluginError
from kbench.features import FEATURE_FILE, Feature, Plugin, features, read_feature
from kbench.messages import did_you_mean

Named = ModuleType | Plugin | str
"""A plugin, its module, or the name of its entry point, module or distribution."""

NOT_INSTALLED = "not installed"
"""Distribution of a package that is checked without having been installed."""


def find_features(feature: Named) -> list[Feature]:
    """Return the features that a module, or a name, stands for; none where there are none."""
    name = feature.__name__ if isinstance(feature, ModuleType) else str(feature)
    for field in ("name", "module", "distribution"):
        matches = [f for f in features() if _normalized(getattr(f, field)) == _normalized(name)]
        if matches:
            return matches
    return _not_installed(name)


def _not_installed(name: str) -> list[Feature]:
    """Return the feature of a package that has metadata and is not installed."""
    try:
        found = importlib.util.find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        found = None
    for folder in (found.submodule_search_locations or ()) if found else ():
        if (path := Path(folder) / FEATURE_FILE).is_file():
            made = Feature(name.replace("_", "-"), name, NOT_INSTALLED)
            try:
                return [replace(made, metadata=read_feature(path))]
            except FeatureError as error:
                return [replace(made, reason=str(error))]
    return []


def find(plugin: Named, installed: Sequence[Plugin], optional: bool = False) -> list[Plugin]:
    """Return the plugins that a module, or a name, stands for.

    The name is that of an entry point, a module or a distribution, which may bring
    several plugins. A module that is not installed as a plugin is imported.

    Raises
    ------
    PluginError
        There is none of that name, and it is not `optional`.
    """
    if isinstance(plugin, Plugin):
        return [plugin]
    name = plugin.__name__ if isinstance(plugin, ModuleType) else str(plugin)
    for field in ("name", "module", "distribution"):
        matches = [p for p in installed if _normalized(getattr(p, field)) == _normalized(name)]
        if matches:
            return matches
    if optional:
        return []
    if isinstance(plugin, ModuleType):
        return [Plugin(name, NOT_INSTALLED, "", lambda: plugin, module=name)]
    if _is_module(name):
        load = partial(importlib.import_module, name)
        return [Plugin(name, NOT_INSTALLED, "", load, module=name)]
    both: list[Plugin | Feature] = [*installed, *features()]
    known = {field for each in both for field in (each.name, each.distribution)}
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

"""Names of ``kbench`` that features provide: functions, and modules such as ``kbench.testing``."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from kbench.errors import FeatureError
from kbench.registry.features import working


def function(name: str) -> Any:
    """Return the function of a feature that is ``kbench.NAME``; None where there is none."""
    for feature in working():
        if target := feature.metadata.functions.get(name):
            return feature.load(target)
    return None


def functions() -> list[str]:
    """Return the names of all functions of features."""
    return sorted(name for feature in working() for name in feature.metadata.functions)


def module_spec(name: str) -> ModuleSpec | None:
    """Return how ``kbench.NAME``, or a module below it, is imported: under its name in a feature.

    Models that were exported, and tests of plugins, name modules that were once in the core.
    """
    try:
        found = working()
    except FeatureError:
        return None
    for feature in found:
        for alias, package in feature.metadata.modules.items():
            if name == f"kbench.{alias}" or name.startswith(f"kbench.{alias}."):
                real = package + name.removeprefix(f"kbench.{alias}")
                try:
                    exists = importlib.util.find_spec(real) is not None
                except Exception as error:
                    what = f"{type(error).__name__}: {error}"
                    raise ModuleNotFoundError(
                        f"{name} is of the feature {feature.name!r}, which cannot be used: {what}",
                        name=name,
                    ) from error
                if exists:
                    return ModuleSpec(name, _Alias(real))
    return None


class _Below:
    """Finds the modules below an alias, which other finders would load a second time."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        return module_spec(name) if name.startswith(f"{self.alias}.") else None


class _Alias(importlib.abc.Loader):
    """Loads a module by importing another one."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the other module itself, so that both names have the same classes."""
        module = import_module(self._real)
        self._spec = module.__spec__
        if hasattr(module, "__path__"):
            sys.meta_path.insert(0, _Below(spec.name))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore what the import system has changed: the other module is complete."""
        module.__spec__ = self._spec

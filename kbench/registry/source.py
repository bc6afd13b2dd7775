"""The file of a module, without importing it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path


def source_of(module: str, known: dict[str, Path | None]) -> Path | None:
    """Find a module's file without importing it or its parents.

    Parameters
    ----------
    module : str
    known : dict
        What was found so far, by module; this is added.
    """
    if module not in known:
        known[module] = _found(module, known)
    return known[module]


def _found(module: str, known: dict[str, Path | None]) -> Path | None:
    parent, _, _ = module.rpartition(".")
    if not parent:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
    else:
        package = source_of(parent, known)
        if package is None or not package.name.startswith("__init__."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(module, [str(package.parent)])
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    return Path(spec.origin)

"""The file of a module, and its content, without importing it."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


def source_of(module: str, known: dict[str, Path | None]) -> Path | None:
    """Find a module's file without importing it or its parents; `known` is a cache."""
    if module not in known:
        spec = _spec(module, known)
        origin = spec.origin if spec is not None and spec.has_location else None
        known[module] = None if origin is None else Path(origin)
    return known[module]


def content_of(path: Path) -> bytes:
    """Read a file, which may lie in a zip archive, as modules on ``sys.path`` may."""
    try:
        return path.read_bytes()
    except NotADirectoryError:
        archive = next(parent for parent in path.parents if parent.is_file())
        with zipfile.ZipFile(archive) as files:
            name = path.relative_to(archive).as_posix()
            if name not in files.namelist():
                raise FileNotFoundError(path) from None
            return files.read(name)


def modules_of(package: str) -> list[str]:
    """List the modules of a package with an ``__init__.py``, itself first, without importing any.

    Examples
    --------
    >>> modules_of("kbench.registry")[:2]
    ['kbench.registry', 'kbench.registry.callables']
    """
    file = source_of(package, {})
    if file is None:
        raise ModuleNotFoundError(package, name=package)
    below = [path.relative_to(file.parent) for path in file.parent.rglob("*.py")]
    names = [path.parent if path.name == "__init__.py" else path.with_suffix("") for path in below]
    return sorted(".".join((package, *name.parts)) for name in names)


def _spec(module: str, known: dict[str, Path | None]) -> ModuleSpec | None:
    parent, _, name = module.rpartition(".")
    if not parent:
        try:
            return importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
    folders = folders_of(parent, known)
    for finder in sys.meta_path if folders else ():
        # by its last name: for a folder without __init__.py, PathFinder would need the parent
        sought = name if finder is PathFinder else module
        with contextlib.suppress(Exception):  # finders of editable installs, of test runners
            if (spec := finder.find_spec(sought, folders)) is not None:
                return spec
    return None


def folders_of(package: str, known: dict[str, Path | None]) -> Sequence[str]:
    """Return the folders of a package's modules; empty where it is not a package."""
    file = source_of(package, known)
    if file is not None:
        return [str(file.parent)] if file.name.startswith("__init__.") else []
    spec = _spec(package, known)  # a namespace package has folders and no file
    return list(spec.submodule_search_locations or ()) if spec else []


def is_installed(path: str | Path) -> bool:
    """Tell whether a file lies where installers put distributions, not in a working copy."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(path).parts)

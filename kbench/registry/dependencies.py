"""What the numbers of a component depend on: modules and their files, and environment variables."""

import contextlib
import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

from kbench.errors import PluginError

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_VARIABLE = re.compile(r"[^=\0]+")


@dataclass(frozen=True)
class Dependencies:
    """Names of modules, of files and of environment variables.

    A file is ``"package:relative/path"``, or an absolute path where it lies in no package.
    """

    modules: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()

    def __or__(self, other: Self) -> Self:
        """Return the union of both."""
        return type(self)(
            self.modules | other.modules, self.files | other.files, self.variables | other.variables
        )


def read_declared(record: Any) -> Dependencies:
    """Return what a record declares in `depends` and `env_vars`.

    PluginError is raised for what names neither a module nor a file nor a variable.
    """
    modules, files = set(), set()
    for entry in _entries(record, "depends"):
        if isinstance(entry, str) and _MODULE.fullmatch(entry):
            modules.add(entry)
        else:
            files.add(_file(record, entry))
    variables = frozenset(_entries(record, "env_vars"))
    for name in variables:
        if not (isinstance(name, str) and _VARIABLE.fullmatch(name)):
            raise PluginError(
                f"env_vars of {record.name!r} must have names of environment variables, "
                f"got {name!r}"
            )
    return Dependencies(frozenset(modules), frozenset(files), variables)


def _entries(record: Any, field: str) -> Iterable[Any]:
    value = getattr(record, field, ())
    if not isinstance(value, list | tuple | set | frozenset):
        raise PluginError(
            f"{field} of {record.name!r} must be a list, got {type(value).__name__}: {value!r}"
        )
    return value


def _file(record: Any, entry: object) -> str:
    """Return the name of a file, which is the same on every host that has the plugin."""
    path: object = entry
    if isinstance(entry, os.PathLike | Traversable):
        path = os.fspath(entry) if isinstance(entry, os.PathLike) else str(entry)
    if isinstance(path, str):
        package, colon, relative = path.partition(":")
        if Path(path).is_absolute():
            return locate_in_package(Path(path), {}) or path
        if isinstance(entry, str) and colon and relative and _MODULE.fullmatch(package):
            return entry
    raise PluginError(
        f"depends of {record.name!r} must have names of modules, files as "
        f'"package:relative/path", or absolute paths, got {entry!r}'
    )


def locate_in_package(path: Path, sources: dict[str, Path | None]) -> str:
    """Return ``"package:relative/path"`` of a file; empty if it lies in no package."""
    folder = path.parent
    while not (folder / "__init__.py").is_file():
        if folder == folder.parent:
            return ""
        folder = folder.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    if find_source(folder.name, sources) != folder / "__init__.py":
        return ""
    return f"{folder.name}:{path.relative_to(folder).as_posix()}"


def find_source(module: str, sources: dict[str, Path | None]) -> Path | None:
    """Find a module's file without importing it or its parents; `sources` is a cache."""
    if module not in sources:
        spec = _spec(module, sources)
        origin = spec.origin if spec is not None and spec.has_location else None
        sources[module] = None if origin is None else Path(origin)
    return sources[module]


def read_source(path: Path) -> bytes:
    """Read a file, which may lie in a zip archive, as modules on ``sys.path`` may."""
    try:
        return path.read_bytes()
    except NotADirectoryError:
        archive = next(parent for parent in path.parents if parent.is_file())
        with zipfile.ZipFile(archive) as files:
            if (name := path.relative_to(archive).as_posix()) not in files.namelist():
                raise FileNotFoundError(path) from None
            return files.read(name)


def list_modules(package: str) -> list[str]:
    """List the modules of a package with an ``__init__.py``, itself first, without importing any.

    Examples
    --------
    >>> list_modules("kbench.registry")[:2]
    ['kbench.registry', 'kbench.registry.callables']
    """
    if (file := find_source(package, {})) is None:
        raise ModuleNotFoundError(package, name=package)
    below = [path.relative_to(file.parent) for path in file.parent.rglob("*.py")]
    names = [path.parent if path.name == "__init__.py" else path.with_suffix("") for path in below]
    return sorted(".".join((package, *name.parts)) for name in names)


def _spec(module: str, sources: dict[str, Path | None]) -> ModuleSpec | None:
    parent, _, name = module.rpartition(".")
    if not parent:
        try:
            return importlib.util.find_spec(module)
        except (ImportError, ValueError):
            return None
    folders = find_folders(parent, sources)
    for finder in sys.meta_path if folders else ():
        # by its last name: for a folder without __init__.py, PathFinder would need the parent
        sought = name if finder is PathFinder else module
        with contextlib.suppress(Exception):  # finders of editable installs, of test runners
            if (spec := finder.find_spec(sought, folders)) is not None:
                return spec
    return None


def find_folders(package: str, sources: dict[str, Path | None]) -> Sequence[str]:
    """Return the folders of a package's modules; empty if it is not a package."""
    if (file := find_source(package, sources)) is not None:
        return [str(file.parent)] if file.name.startswith("__init__.") else []
    spec = _spec(package, sources)  # a namespace package has folders and no file
    return list(spec.submodule_search_locations or ()) if spec else []


def is_installed(path: str | Path) -> bool:
    """Return whether a file lies where installers put distributions, not in a working copy."""
    # not by pathlib, which imports a module in some versions: imports ask this
    return not {"site-packages", "dist-packages"}.isdisjoint(str(path).split("/"))

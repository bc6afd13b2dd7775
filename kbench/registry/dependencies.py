"""What the numbers of a component depend on: modules, files and environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

from kbench.errors import PluginError
from kbench.registry.source import source_of

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

    def __or__(self, other: Self) -> Dependencies:
        """Return the union of both."""
        return Dependencies(
            self.modules | other.modules,
            self.files | other.files,
            self.variables | other.variables,
        )


def declared(record: Any) -> Dependencies:
    """Return what a record declares in `depends` and `reads_env`.

    PluginError is raised for what names neither a module nor a file nor a variable.
    """
    modules, files = set(), set()
    for entry in _entries(record, "depends"):
        if isinstance(entry, str) and _MODULE.fullmatch(entry):
            modules.add(entry)
        else:
            files.add(_file(record, entry))
    variables = frozenset(_entries(record, "reads_env"))
    for name in variables:
        if not (isinstance(name, str) and _VARIABLE.fullmatch(name)):
            raise PluginError(
                f"reads_env of {record.name!r} must have names of environment variables, "
                f"got {name!r}"
            )
    return Dependencies(frozenset(modules), frozenset(files), variables)


def _entries(record: Any, field: str) -> Iterable[Any]:
    given = getattr(record, field, ())
    if not isinstance(given, list | tuple | set | frozenset):
        raise PluginError(
            f"{field} of {record.name!r} must be a list, got {type(given).__name__}: {given!r}"
        )
    return given


def _file(record: Any, entry: Any) -> str:
    """Return the name of a file, which is the same on every host that has the plugin."""
    text: object = entry
    if isinstance(entry, os.PathLike | Traversable):
        text = os.fspath(entry) if isinstance(entry, os.PathLike) else str(entry)
    if isinstance(text, str):
        package, colon, relative = text.partition(":")
        if Path(text).is_absolute():
            return _in_package(Path(text)) or text
        if isinstance(entry, str) and colon and relative and _MODULE.fullmatch(package):
            return entry
    raise PluginError(
        f"depends of {record.name!r} must have names of modules, files as "
        f'"package:relative/path", or absolute paths, got {entry!r}'
    )


def _in_package(path: Path) -> str:
    """Return ``"package:relative/path"`` of a file; empty where it lies in no package."""
    folder = path.parent
    while not (folder / "__init__.py").is_file():
        if folder == folder.parent:
            return ""
        folder = folder.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    if source_of(folder.name, {}) != folder / "__init__.py":
        return ""
    return f"{folder.name}:{path.relative_to(folder).as_posix()}"

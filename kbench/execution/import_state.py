"""State of the files that an import has loaded, to tell whether it would do the same again."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from kbench.planning.present import variable
from kbench.registry.source import source_of
from kbench.storage.states import State, state_of

_LEFT_OUT = frozenset({"kbench", "__main__"}) | sys.stdlib_module_names
"""Top-level modules whose files change only with the versions of Python and kbench."""


class Recorder(importlib.abc.MetaPathFinder):
    """Finder of modules that reports each one before it is loaded.

    ``report(module, file, state)`` is called; file and state are None where a module was
    not found or has no file.
    """

    def __init__(self, report: Callable[[str, str | None, State | None], None]) -> None:
        self._tell = report

    def install(self) -> None:
        """Become the first finder of this process, and report the modules that it has loaded."""
        sys.meta_path.insert(0, self)
        for name, module in list(sys.modules.items()):
            self._report(name, getattr(module, "__spec__", None))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find."""
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        self._report(fullname, spec)
        return spec

    def _report(self, module: str, spec: ModuleSpec | None) -> None:
        if module.partition(".")[0] not in _LEFT_OUT:
            file = spec.origin if spec is not None and spec.has_location else None
            self._tell(module, file, None if file is None else state_of(file))


@dataclass(frozen=True)
class ImportState:
    """Files that an import has loaded, with their states, and where it found modules.

    `modules` has the file of each top-level module, which another could hide, and None
    for modules that were not found, which could be installed. `variables` has digests of the
    environment variables that it read.
    """

    files: Mapping[str, State | None] = field(default_factory=dict)
    modules: Mapping[str, str | None] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        reported: Iterable[tuple[str, str | None, State | None]],
        recorded: Iterable[Mapping[str, Any]] = (),
    ) -> ImportState:
        """Collect what a `Recorder` and the recording of the process have reported."""
        files: dict[str, State | None] = {}
        modules: dict[str, str | None] = {}
        for module, file, state in reported:
            if file is not None:
                files[file] = state
            if file is None or "." not in module:
                modules[module] = file
        variables: dict[str, str | None] = {}
        for each in recorded:
            files |= {file: state_of(file) for file in each.get("files", {})}
            variables |= each.get("variables", {})
        return cls(files, modules, variables)

    def is_current(self) -> bool:
        """Tell whether the files are as they were, and the modules where they were."""
        known: dict[str, Path | None] = {}
        return (
            all(state_of(file) == state for file, state in self.files.items())
            and all(
                source_of(module, known) == (None if file is None else Path(file))
                for module, file in self.modules.items()
            )
            and all(variable(name) == value for name, value in self.variables.items())
        )


def parsed(line: Any) -> tuple[str, str | None, State | None]:
    """Parse one report, which another process has written.

    ValueError is raised where it is not a report.
    """
    match line:
        case [str(module), str(file), [int(), int(), int(), int(), int()] as state]:
            return module, file, state
        case [str(module), str(file), None]:
            return module, file, None
        case [str(module), None, None]:
            return module, None, None
    raise ValueError("not the report of an import")

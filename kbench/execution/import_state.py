"""State of the files that an import has loaded, to tell whether it would do the same again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbench.planning.present import variable
from kbench.registry.source import source_of
from kbench.storage.states import State, state_of

_LEFT_OUT = frozenset({"kbench", "__main__"}) | sys.stdlib_module_names
"""Top-level modules whose files change only with the versions of Python and kbench."""


@dataclass(frozen=True)
class ImportState:
    """Files that an import has loaded and read, with their states, and where it found modules.

    `modules` has the file of each top-level module, which another could hide, and None
    for modules that were not found, which could be installed. `variables` has digests of the
    environment variables that it read.
    """

    files: Mapping[str, State | None] = field(default_factory=dict)
    modules: Mapping[str, str | None] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, recorded: Iterable[Mapping[str, Any]]) -> ImportState:
        """Collect what a process has reported (see `kbench.execution.recording`)."""
        files: dict[str, State | None] = {}
        modules: dict[str, str | None] = {}
        variables: dict[str, str | None] = {}
        for each in recorded:
            for name, (path, state) in each.get("loaded", {}).items():
                if name.partition(".")[0] not in _LEFT_OUT:
                    files[path] = state
                    modules |= {} if "." in name else {name: path}
            missing = (n for n, (sha, _) in each.get("modules", {}).items() if sha is None)
            modules |= dict.fromkeys(missing)
            files |= {path: state_of(path) for path in each.get("files", {})}
            variables |= each.get("variables", {})
        return cls(files, modules, variables)

    def is_current(self) -> bool:
        """Tell whether the files are as they were, and the modules where they were."""
        known: dict[str, Path | None] = {}
        return (
            all(state_of(file) == state for file, state in self.files.items())
            and all(variable(name) == value for name, value in self.variables.items())
            and all(
                source_of(module, known) == (None if file is None else Path(file))
                for module, file in self.modules.items()
            )
        )

"""Third-party plugins behind results: their distributions, and their modules as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kbench.features import Fingerprinter, Plugin, Registry, content_of, source_of
from kbench_sharing.form import SOURCES
from kbench_sharing.known import Known


def third_party(known: Known, registry: Registry) -> list[Plugin]:
    """Return the third-party plugins whose code computed results, by name."""
    names = {name for cell in known.cells for name in known.planner.plugins_of(cell.cell)}
    return sorted((p for p in registry.plugins if p.name in names), key=lambda p: p.name)


def plugin_lines(plugins: Iterable[Plugin], known: Known) -> list[dict[str, Any]]:
    """Return name, distribution, version and fingerprint of plugins."""
    fingerprint = Fingerprinter(known.planner.packages)
    return [
        {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "fingerprint": fingerprint(_modules(plugin, known)),
        }
        for plugin in plugins
    ]


def plugin_sources(plugins: Sequence[Plugin], known: Known) -> dict[str, bytes]:
    """Return the modules of plugins as files of a bundle; it is never installed by kbench."""
    fingerprint = Fingerprinter(known.planner.packages)
    files: dict[str, bytes] = {}
    found: dict[str, Path | None] = {}
    for plugin in plugins:
        for module in fingerprint.reached(_modules(plugin, known)):
            path = source_of(module, found)
            if not _is_of(plugin, module) or path is None or path.suffix != ".py":
                continue
            parts = module.split(".") + (["__init__"] if path.name == "__init__.py" else [])
            files[f"{SOURCES}{plugin.distribution}/{'/'.join(parts)}.py"] = content_of(path)
    return files


def _modules(plugin: Plugin, known: Known) -> list[str]:
    """Return the module of a plugin, and those that its components name: they load on first use."""
    needed = known.planner.dependencies.modules
    return sorted({plugin.module, *(module for module in needed if _is_of(plugin, module))})


def _is_of(plugin: Plugin, module: str) -> bool:
    return module.partition(".")[0] == plugin.module.partition(".")[0]

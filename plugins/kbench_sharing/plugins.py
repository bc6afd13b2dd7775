"""Third-party plugins behind results: their distributions, and their modules as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kbench.features import Plugin, Registry, content_of, source_of
from kbench.records.canonical import digest
from kbench_sharing.form import SOURCES
from kbench_sharing.known import Known


def third_party(known: Known, registry: Registry) -> list[Plugin]:
    """Return the third-party plugins whose code computed results, by name."""
    names = {name for cell in known.cells for name in known.planner.plugins_of(cell.cell)}
    return sorted((p for p in registry.plugins if p.name in names), key=lambda p: p.name)


def plugin_lines(plugins: Iterable[Plugin], known: Known) -> list[dict[str, Any]]:
    """Return name, distribution, version and fingerprint of plugins.

    The fingerprint is a hash of the modules of a plugin's package that results were made from.
    """
    return [
        {
            "name": plugin.name,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "fingerprint": digest(_modules(plugin, known)),
        }
        for plugin in plugins
    ]


def plugin_sources(plugins: Sequence[Plugin], known: Known) -> dict[str, bytes]:
    """Return the modules of plugins as files of a bundle; it is never installed by kbench."""
    files: dict[str, bytes] = {}
    found: dict[str, Path | None] = {}
    for plugin in plugins:
        for module in _modules(plugin, known):
            path = source_of(module, found)
            if path is None or path.suffix != ".py":
                continue
            parts = module.split(".") + (["__init__"] if path.name == "__init__.py" else [])
            files[f"{SOURCES}{plugin.distribution}/{'/'.join(parts)}.py"] = content_of(path)
    return files


def _modules(plugin: Plugin, known: Known) -> dict[str, str | None]:
    """Return the modules of a plugin's package that results were made from, with their hashes."""
    package = plugin.module.partition(".")[0]
    return {
        module: value
        for manifest in known.used
        for module, value in manifest.modules.items()
        if module.partition(".")[0] == package
    }

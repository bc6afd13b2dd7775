"""Which code computes a cell: a hash of everything that its modules import.

Imports are followed in the source, by `ast`, without running anything: editing
a map, or a helper it imports, changes the hash, and nothing stale is reused.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import metadata
from pathlib import Path

from kbench.registry.source import source_of

NUMERIC = ("numpy", "scipy", "scikit-learn")
"""Distributions whose versions are part of every fingerprint."""


class Fingerprinter:
    """Fingerprints of modules; files are read once in its life.

    Parameters
    ----------
    own : iterable of str
        Top-level packages whose files are hashed, kbench's and the plugins',
        and with them all others of their distributions.
        Of every other distribution, name and version stand for its files.

    Examples
    --------
    >>> of = Fingerprinter(["kbench"])
    >>> of(["kbench.splits"]) == of(["kbench.splits"])
    True
    >>> of(["kbench.splits"]) == of(["kbench.records.canonical"])
    False
    """

    def __init__(self, own: Iterable[str]) -> None:
        self._own = frozenset(own)
        self._sources: dict[str, Path | None] = {}
        self._imports: dict[str, tuple[str, ...]] = {}
        self._digests: dict[Path, str] = {}

    def __call__(self, modules: Iterable[str]) -> str:
        """Return the hash of all code that the modules reach (hex)."""
        lines = sorted(f"{name} {value}" for name, value in self.parts(modules).items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def parts(self, modules: Iterable[str]) -> dict[str, str]:
        """Return what is hashed: digests of files by module, versions by distribution."""
        parts, foreign = {}, set(NUMERIC)
        for module in self._closure(modules):
            if self._is_own(module):
                parts[module] = self._digest(module)
            else:
                reached = self._distributions.get(module.partition(".")[0], ())
                foreign.update(each.metadata["Name"] for each in reached)
        parts |= {name: _version(name) for name in foreign}
        parts["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
        return parts

    def reached(self, modules: Iterable[str]) -> list[str]:
        """List the modules whose files are hashed, for explanations and tests."""
        return sorted(m for m in self._closure(modules) if self._is_own(m))

    def _closure(self, modules: Iterable[str]) -> set[str]:
        seen: set[str] = set()
        waiting = list(modules)
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            if self._is_own(module):
                # importing a.b runs a/__init__.py too
                waiting.extend(_parents(module))
                waiting.extend(self._imported_by(module))
        return seen

    def _is_own(self, module: str) -> bool:
        top = module.partition(".")[0]
        if top in self._own:
            return True
        if top in sys.stdlib_module_names or top in self._distributions:
            return False
        # a module of no distribution: a file beside the plugin, say
        return self._source(top) is not None

    @cached_property
    def _distributions(self) -> dict[str, list[metadata.Distribution]]:
        """Find which distributions install each top-level module that is not our own.

        As `importlib.metadata.packages_distributions`, which parses every line
        of every distribution's metadata and takes half a second for it.
        """
        found: dict[str, list[metadata.Distribution]] = {}
        for each in metadata.distributions():
            tops = _tops(each)
            if self._own.isdisjoint(tops):  # else its other modules are our own too
                for top in tops:
                    found.setdefault(top, []).append(each)
        return found

    def _digest(self, module: str) -> str:
        path = self._source(module)
        if path is None:
            return "absent"
        if path not in self._digests:
            self._digests[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self._digests[path]

    def _source(self, module: str) -> Path | None:
        return source_of(module, self._sources)

    def _imported_by(self, module: str) -> tuple[str, ...]:
        if module not in self._imports:
            path = self._source(module)
            is_source = path is not None and path.suffix == ".py"
            self._imports[module] = (
                tuple(self._statements(module, path)) if path is not None and is_source else ()
            )
        return self._imports[module]

    def _statements(self, module: str, path: Path) -> Iterator[str]:
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in _running(ast.parse(path.read_bytes(), filename=str(path))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    name = "." * node.level + base
                    base = importlib.util.resolve_name(name, package)
                yield base
                for alias in node.names:
                    # `from package import name` may import a module of that name
                    inner = f"{base}.{alias.name}"
                    if self._is_own(base) and self._source(inner) is not None:
                        yield inner


def _tops(distribution: metadata.Distribution) -> set[str]:
    """Return the top-level modules that a distribution says it installs."""
    if declared := (distribution.read_text("top_level.txt") or "").split():
        return set(declared)
    paths = (distribution.read_text("RECORD") or "").splitlines()
    firsts = {path.partition(",")[0].partition("/")[:2] for path in paths}
    names = {first if slash else inspect.getmodulename(first) for first, slash in firsts}
    return {name for name in names if name and name.isidentifier()}


def _parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a module without what is there for type checkers only."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting.extend(node.orelse)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"

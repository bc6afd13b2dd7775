"""Fingerprints of the code that computes a cell: hashes of all that its modules import.

Imports are followed in the source, by `ast`, without running anything: editing
a map, or a helper it imports, changes the hash, and nothing stale is reused.
Docstrings, comments and formatting are not hashed.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path

from kbench.planning.syntax import Syntax, syntax_of
from kbench.registry.source import modules_of, source_of

EVALUATION = "kbench.evaluation"
"""The package that decides numbers: all of it is part of every cell's key."""

NUMERIC = ("numpy", "scipy", "scikit-learn")
"""Distributions whose versions are part of every fingerprint."""

DECIDES_NO_NUMBER = frozenset(
    {
        "kbench",  # public names
        "kbench._version",
        "kbench.errors",
        "kbench.hookspecs",
        "kbench.messages",
        "kbench.parameters",
        # shapes of records; their values are in the key
        "kbench.records",
        # names become code, which is in the key
        "kbench.registry",
        # looks public names up when they are first used
        "lazy_loader",
    }
)
"""Modules, with their submodules, that are left out of every fingerprint.

Every component reaches them. Code that decides a number belongs in
`kbench.evaluation`; values that do belong in a cell's key.
"""


class Fingerprinter:
    """Computes fingerprints of modules, and reads each file once.

    Files are hashed of the top-level packages `own`, kbench's and the plugins', and of all
    others of their distributions. Of every other distribution, name and version stand for
    its files, unless it is installed as editable. Modules in `left_out`, packages of two
    names at most, are not followed.

    Examples
    --------
    >>> of = Fingerprinter(["kbench"])
    >>> of(["kbench.evaluation.splits"]) == of(["kbench.evaluation.splits"])
    True
    >>> of(["kbench.evaluation.splits"]) == of(["kbench.evaluation.timing"])
    False
    """

    def __init__(self, own: Iterable[str], left_out: Collection[str] = DECIDES_NO_NUMBER) -> None:
        self._own = frozenset(own)
        self._left_out = left_out
        self._sources: dict[str, Path | None] = {}
        # each is computed once for each argument
        self._is_followed = cache(self._must_follow)
        self._syntax = cache(_syntax_of_file)
        self._imported_by = cache(self._imports_of)
        self._versions_of = cache(self._find_versions)

    def __call__(self, modules: Iterable[str]) -> str:
        """Return the hash of all code that the modules reach (hex)."""
        lines = sorted(f"{name} {value}" for name, value in self.parts(modules).items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def parts(self, modules: Iterable[str]) -> dict[str, str]:
        """Return the hashed parts: digests of code by module, versions by distribution."""
        parts = dict(self._numeric)
        for module in self._closure(modules):
            if self._is_own(module):
                path = self._source(module)
                parts[module] = "absent" if path is None else self._syntax(path).digest
            else:
                parts |= self._versions_of(module.partition(".")[0])
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
            if module in seen or ".".join(module.split(".")[:2]) in self._left_out:
                continue
            seen.add(module)
            if self._is_own(module):
                # importing a.b runs a/__init__.py too
                waiting.extend(_parents(module))
                waiting.extend(self._imported_by(module))
        return seen

    def _is_own(self, module: str) -> bool:
        return self._is_followed(module.partition(".")[0])

    def _must_follow(self, top: str) -> bool:
        return top in self._own or self._is_source(top)

    def _is_source(self, top: str) -> bool:
        """Tell whether a module's files must be hashed because no version identifies them."""
        if top in sys.stdlib_module_names:
            return False
        owners = self._distributions.get(top, [])
        if owners and not any(map(_is_editable, owners)):
            return False
        # of no distribution: a file beside the plugin, for example, or one that
        # its distribution does not list, as in editable installs
        return self._source(top) is not None

    @cached_property
    def _numeric(self) -> dict[str, str]:
        return {name: _version(name) for name in NUMERIC}

    def _find_versions(self, top: str) -> dict[str, str]:
        """Return the versions of the distributions that install a top-level module."""
        # parsed once: metadata take longer than all of a suite's syntax trees
        names = {owner.metadata["Name"] for owner in self._distributions.get(top, ())}
        return {name: _version(name) for name in names}

    @cached_property
    def _distributions(self) -> dict[str, list[metadata.Distribution]]:
        """Map top-level modules that are not our own to the distributions that install them.

        As `importlib.metadata.packages_distributions`, which parses every line
        of every distribution's metadata and takes half a second for it.
        """
        owners: dict[str, list[metadata.Distribution]] = {}
        for distribution in metadata.distributions():
            tops = _top_level_modules(distribution)
            if self._own.isdisjoint(tops):  # else its other modules are our own too
                for top in tops:
                    owners.setdefault(top, []).append(distribution)
        return owners

    def _source(self, module: str) -> Path | None:
        return source_of(module, self._sources)

    def _imports_of(self, module: str) -> tuple[str, ...]:
        path = self._source(module)
        return () if path is None else tuple(self._names(module, path))

    def _names(self, module: str, path: Path) -> Iterator[str]:
        """Yield the names of the modules that a module's statements import."""
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in self._syntax(path).imports:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
                continue
            base = node.module or ""
            if node.level:
                try:
                    base = importlib.util.resolve_name("." * node.level + base, package)
                except ImportError:  # beyond the top of its package
                    continue
            yield base
            for alias in node.names:
                # `from package import name` may import a module of that name
                inner = f"{base}.{alias.name}"
                if self._is_own(base) and self._source(inner) is not None:
                    yield inner


def _syntax_of_file(path: Path) -> Syntax:
    content = path.read_bytes()
    if path.suffix == ".py":
        return syntax_of(content, str(path))
    return Syntax(hashlib.sha256(content).hexdigest(), ())  # compiled


def evaluation_modules() -> list[str]:
    """List the modules that every cell's key holds: those of `kbench.evaluation`."""
    return modules_of(EVALUATION)


def _is_editable(distribution: metadata.Distribution) -> bool:
    """Tell whether a distribution's files may change while its version stays."""
    with contextlib.suppress(ValueError, AttributeError):
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        return origin.get("dir_info", {}).get("editable") is True
    return False


def _top_level_modules(distribution: metadata.Distribution) -> set[str]:
    """Return the top-level modules that a distribution declares or lists."""
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


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"

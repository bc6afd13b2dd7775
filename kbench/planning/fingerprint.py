"""Fingerprints of the code that computes a cell: hashes of all that its modules import.

Imports are followed in the source, by `ast`, without running anything: editing
a map, or a helper it imports, changes the hash, and nothing stale is reused.
Docstrings, comments and formatting are not hashed. Files and environment variables
that a component declares are hashed too.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property, lru_cache
from importlib import metadata
from pathlib import Path

from kbench.errors import PluginError
from kbench.planning.syntax import Import, Syntax, exports_of, optional_imports, syntax_of
from kbench.registry.source import content_of, folders_of, modules_of, source_of

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


FILE, VARIABLE = "file ", "environment variable "
"""Beginnings of the names of parts that are not modules or distributions."""


class Fingerprinter:
    """Computes fingerprints of modules, and reads each file once.

    Files are hashed of the top-level packages `own`, kbench's and the plugins', and of all
    others of their distributions. Of every other distribution, name and version stand for
    its files, unless it is installed as editable or imported from another place than it is
    installed in. Modules in `left_out`, packages of two names at most, are not followed.

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
        self._is_found = cache(self._can_be_found)
        self._syntax = cache(_syntax_of_file)
        self._imported_by = cache(self._imports_of)
        self._exports = cache(lambda path: exports_of(content_of(path)))
        self.digest_of = cache(self._digest_of)
        self._versions_of = cache(self._find_versions)

    def __call__(
        self, modules: Collection[str], files: Iterable[str] = (), variables: Iterable[str] = ()
    ) -> str:
        """Return the hash of all code that the modules reach, and of `parts` beside it (hex).

        PluginError is raised where a module that is hashed imports another one that
        cannot be found: its code would be missing.
        """
        self._refuse_missing(modules)
        parts = self.parts(modules, files, variables)
        lines = sorted(f"{name} {value}" for name, value in parts.items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def parts(
        self, modules: Iterable[str], files: Iterable[str] = (), variables: Iterable[str] = ()
    ) -> dict[str, str]:
        """Return the hashed parts.

        They are digests of code by module, versions by distribution, digests of files
        (see `digest_of`), and digests of the values of environment variables.
        """
        parts = dict(self._numeric)
        for module in self._closure(modules):
            if self._is_own(module):
                path = self._source(module)
                parts[module] = "absent" if path is None else self._syntax(path).digest
            else:
                parts |= self._versions_of(module.partition(".")[0])
        parts |= {f"{FILE}{file}": self.digest_of(file) or "absent" for file in files}
        parts |= {f"{VARIABLE}{name}": _digest_of_variable(name) for name in variables}
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
            if module in seen or self._is_left_out(module):
                continue
            seen.add(module)
            if self._is_own(module):
                # importing a.b runs a/__init__.py too
                waiting.extend(_parents(module))
                waiting.extend(self._imported_by(module))
        return seen

    def _refuse_missing(self, modules: Collection[str]) -> None:
        """Raise if a module is not found, unless its import is optional."""
        closure = self._closure(modules)
        missing = {each for each in closure if self._is_own(each) and not self._is_found(each)}
        for module in sorted(missing.intersection(modules)):
            raise PluginError(f"there is no module {module!r}")
        for importer in sorted(closure - missing if missing else ()):
            path = self._source(importer)
            if path is None or not self._is_own(importer):
                continue
            for node, name in self._names(importer, path):
                place = (node.lineno, node.col_offset)
                if name in missing and place not in optional_imports(content_of(path)):
                    raise PluginError(
                        f"{importer} imports {name}, which is not found ({path}, line "
                        f"{node.lineno}): its code would not be in the keys of results. Mend the "
                        "import, or catch its ImportError if the module is optional"
                    )

    def _can_be_found(self, module: str) -> bool:
        return self._source(module) is not None or bool(folders_of(module, self._sources))

    def _is_own(self, module: str) -> bool:
        return self._is_followed(module.partition(".")[0])

    def _must_follow(self, top: str) -> bool:
        return top in self._own or self._is_source(top)

    def _is_source(self, top: str) -> bool:
        """Tell whether a module's files must be hashed because no version identifies them."""
        if top in sys.stdlib_module_names:
            return False
        file = self._source(top)
        # a namespace package has folders and no file
        places = [str(file)] if file is not None else folders_of(top, self._sources)
        owners = self._distributions.get(top, [])
        if not owners or any(map(_is_editable, owners)):
            # of no distribution: a file beside the plugin, for example, or one that
            # its distribution does not list, as in editable installs
            return bool(places)
        # a working copy on PYTHONPATH hides what is installed
        roots = [Path(str(owner.locate_file(""))) for owner in owners]
        return not all(any(_lies_in(Path(place), root) for root in roots) for place in places)

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
        return () if path is None else tuple(name for _, name in self._names(module, path))

    def _names(self, module: str, path: Path) -> Iterator[tuple[Import, str]]:
        """Yield the statements of a module with the names of modules that they import."""
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node in self._syntax(path).imports:
            if isinstance(node, ast.Import):
                yield from ((node, alias.name) for alias in node.names)
                continue
            base = node.module or ""
            if node.level:
                try:
                    base = importlib.util.resolve_name("." * node.level + base, package)
                except ImportError:  # beyond the top of its package
                    continue
            yield node, base
            for alias in node.names:
                yield from ((node, inner) for inner in self.exporting(base, alias.name))

    def exporting(self, package: str, name: str = "") -> Iterator[str]:
        """Yield the modules of a package that ``from package import name`` imports."""
        if not self._is_own(package):
            return
        file = self._source(package)
        if file is None and self._is_found(package) and name != "*":
            yield f"{package}.{name}"  # without __init__.py, it has nothing but modules
        elif self._is_found(f"{package}.{name}"):
            yield f"{package}.{name}"
        elif file is not None and file.name == "__init__.py" and not self._is_left_out(package):
            exports = self._exports(file)
            modules = exports.values() if name == "*" else filter(None, [exports.get(name)])
            inner = {f"{package}.{module}" for module in modules}
            yield from sorted(filter(self._is_found, inner))

    def _is_left_out(self, module: str) -> bool:
        return ".".join(module.split(".")[:2]) in self._left_out

    def _digest_of(self, file: str) -> str | None:
        """Return the SHA-256 of a file (hex); None where it cannot be read.

        `file` is ``"package:relative/path"`` or an absolute path.
        """
        path = self.path_of(file)
        try:
            try:
                with path.open("rb") as content:
                    return hashlib.file_digest(content, "sha256").hexdigest()
            except NotADirectoryError:
                return hashlib.sha256(content_of(path)).hexdigest()
        except OSError:
            return None

    def path_of(self, file: str) -> Path:
        """Return the path of a file, which `digest_of` describes."""
        package, _, relative = file.partition(":")
        if Path(file).is_absolute() or not relative:
            return Path(file)
        path = self._source(package)
        folders = [str(path.parent)] if path else folders_of(package, self._sources)
        paths = [Path(folder, relative) for folder in folders]
        return next((each for each in paths if each.exists()), Path(*folders[:1], relative))


def _digest_of_variable(name: str) -> str:
    value = os.environ.get(name)
    return "unset" if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()


def _syntax_of_file(path: Path) -> Syntax:
    content = content_of(path)
    if path.suffix == ".py":
        return _parsed(content, str(path))
    return Syntax(hashlib.sha256(content).hexdigest(), ())  # compiled


# a process that plans several times parses a file again only after an edit
_parsed = lru_cache(maxsize=1024)(syntax_of)


def evaluation_modules() -> list[str]:
    """List the modules that every cell's key holds: those of `kbench.evaluation`."""
    return modules_of(EVALUATION)


def _lies_in(place: Path, root: Path) -> bool:
    # installers link packages into their caches: what a link leads to may lie anywhere
    return place.is_relative_to(root) or place.resolve().is_relative_to(root.resolve())


def _is_editable(distribution: metadata.Distribution) -> bool:
    """Tell whether a distribution's files may change while its version stays."""
    folder = getattr(distribution, "_path", None)
    if folder is not None and folder.suffix == ".egg-info" and "-" not in folder.stem:
        return True  # without a version in its name, it lies in the project's source folder
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

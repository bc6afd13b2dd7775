"""Bundle the source code that an exported model needs as a uniquely named package.

The modules are those of the static import closure. Imports between them become relative, so
that the package works under any name and next to an installed kbench.
"""

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path

from kbench.errors import ExportError
from kbench.features import find_source, read_source
from kbench_tables.export.closure import Import, find_imports, import_closure
from kbench_tables.export.plain_objects import BASE

# Packages of this distribution whose modules are bundled, in addition to those of plugins.
OWN = ("kbench", "kbench_tables")

# Modules that every model needs; plugins import public names of the last two.
ALWAYS = ("kbench_tables.export.predicting", "kbench.records", "kbench.errors")

# Stub replacements for modules that import dynamically or need packages a model lacks.
_REPLACED: Mapping[str, str] = {
    "kbench": '''"""Public names of kbench that the code of this model imports."""

from importlib import import_module


def __getattr__(name):
    for home in ("errors", "records", "hookspecs"):
        module = import_module(f".{home}", __name__)
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
''',
    "kbench.hookspecs": '''"""Hooks are not called here."""


def hookimpl(function=None, **options):
    """Return the function."""
    return function if function is not None else lambda each: each
''',
    "lazy_loader": '''"""Names of a package that are imported on first use."""

from importlib import import_module


def attach(package_name, submodules=None, submod_attrs=None):
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package."""
    homes = {name: home for home, names in (submod_attrs or {}).items() for name in names}
    modules = set(submodules or ())
    names = sorted({*modules, *homes})

    def __getattr__(name):
        if name in modules:
            return import_module(f"{package_name}.{name}")
        if name in homes:
            return getattr(import_module(f"{package_name}.{homes[name]}"), name)
        raise AttributeError(f"module {package_name!r} has no attribute {name!r}")

    return __getattr__, lambda: names, names
''',
}


@dataclass(frozen=True)
class Code:
    """Modules that are bundled with a model."""

    files: Mapping[str, bytes] = field(repr=False)
    """Content by path in the package."""
    needed: tuple[str, ...] = ()
    """Top-level modules of other packages that the code imports, in addition to `BASE`."""
    optional: tuple[str, ...] = ()
    """Those that it imports if they are installed."""
    distributions: tuple[str, ...] = ()
    """Distributions that the modules belong to."""


def collect_code(modules: Iterable[str], packages: Iterable[str]) -> Code:
    """Collect the code that these modules import, in `packages` and in working copies.

    All top-level modules of the distributions of `packages` are collected.
    ExportError is raised for a compiled module, and for one that cannot be read.
    """
    owners = metadata.packages_distributions()
    own = _distributions(packages, owners)
    beside = {top for top, names in owners.items() if not own.isdisjoint(names)}
    names = import_closure([*modules, *ALWAYS], {*packages, *OWN, *beside}, left_out=_REPLACED)
    tops = {name.partition(".")[0] for name in names} | {*OWN, "lazy_loader"}
    files = {
        _path(name, is_package=name == "kbench"): code.encode() for name, code in _REPLACED.items()
    }
    needed: set[str] = set()
    optional: set[str] = set()
    for name in sorted(names):
        path = find_source(name, {})
        if path is None:
            continue  # a folder without __init__.py, or an optional module that is not there
        if path.suffix != ".py":
            raise ExportError(
                f"{name} is compiled ({path.name}): a model folder cannot contain compiled code; "
                "move it to an installed package that the plugin requires"
            )
        module = _Module(name, path.name == "__init__.py", read_source(path))
        files[_path(name, module.is_package)] = module.rewrite(tops)
        for top, may_fail in module.imports_outside(tops):
            (optional if may_fail else needed).add(top)
    needed -= {*BASE, "threadpoolctl", "joblib"}  # the last two come with scikit-learn
    for path_ in list(files):  # folders without __init__.py become packages
        for parent in Path(path_).parents:
            if parent.name:
                files.setdefault(f"{parent.as_posix()}/__init__.py", b"")
    return Code(
        files,
        tuple(sorted(needed)),
        tuple(sorted(optional - needed - {*BASE})),
        tuple(sorted(_distributions(tops - {"lazy_loader"}, owners))),
    )


def _path(module: str, is_package: bool) -> str:
    folders = module.replace(".", "/")
    return f"{folders}/__init__.py" if is_package else f"{folders}.py"


@dataclass(frozen=True)
class _Module:
    """The source of a module."""

    name: str
    is_package: bool
    source: bytes

    @cached_property
    def _statements(self) -> list[tuple[Import, bool]]:
        """Statements, the last one first, and whether each may fail or may not run."""
        # calls of import_module stand for statements, and have no text to replace
        texts = self.source.decode("utf-8").splitlines()
        nodes = [
            (node, may_fail)
            for node, may_fail in find_imports(self.source)
            if texts[node.lineno - 1].encode()[node.col_offset :].startswith((b"import ", b"from "))
        ]
        return sorted(nodes, key=lambda each: (each[0].lineno, each[0].col_offset), reverse=True)

    def imports_outside(self, tops: Collection[str]) -> Iterator[tuple[str, bool]]:
        """Yield the top-level modules of other packages, and whether they may be missing.

        kbench's functions for tables import pandas and pydantic when called; a model does not call
        these.
        """
        for node, may_fail in self._statements:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            if isinstance(node, ast.ImportFrom) and node.level:
                continue
            for name in names:
                top = str(name).partition(".")[0]
                if top in tops or top in sys.stdlib_module_names:
                    continue
                if self.name.partition(".")[0] not in OWN or node.col_offset == 0:
                    yield top, may_fail

    def rewrite(self, tops: Collection[str]) -> bytes:
        """Return the source with relative imports of the modules in `tops`."""
        lines = self.source.decode("utf-8").splitlines(keepends=True)
        level = self.name.count(".") + (1 if self.is_package else 0) + 1
        for node, _ in self._statements:  # rewrite from the end, so that earlier offsets stay valid
            first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            if written := "; ".join(map(ast.unparse, _relative(node, level, tops))):
                before = lines[first].encode()[: node.col_offset]
                after = lines[last].encode()[node.end_col_offset :]
                lines[first : last + 1] = [(before + written.encode() + after).decode()]
        return "".join(lines).encode()


def _relative(node: Import, level: int, tops: Collection[str]) -> Iterator[Import]:
    if isinstance(node, ast.ImportFrom):
        if not node.level and str(node.module).partition(".")[0] in tops:
            yield ast.ImportFrom(node.module, node.names, level)
        return
    are_bundled = [alias.name.partition(".")[0] in tops for alias in node.names]
    for alias, is_own_ in zip(node.names, are_bundled, strict=True):
        parent, _, last = alias.name.rpartition(".")
        if not is_own_:
            if any(are_bundled):
                yield ast.Import([alias])
        elif alias.asname or not parent:
            yield ast.ImportFrom(parent or None, [ast.alias(last, alias.asname)], level)
        else:
            yield ast.ImportFrom(None, [ast.alias(alias.name.partition(".")[0])], level)
            yield ast.ImportFrom(parent, [ast.alias(last, "_")], level)


def _distributions(tops: Iterable[str], owners: Mapping[str, list[str]]) -> set[str]:
    return {owner for top in tops for owner in owners.get(top, ())} | {"kbench-core"}


def license_files(distribution: str) -> dict[str, bytes]:
    """Return the licence files of a distribution by their names."""
    try:
        package = metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return {}
    names = [name.upper() for name in ("licen", "copying", "notice", "authors")]
    files = [
        file
        for file in package.files or ()
        if file.name.upper().startswith(tuple(names)) and ".dist-info" in file.as_posix()
    ]
    texts = {}
    for file in files:
        path = Path(str(package.locate_file(file)))
        if path.is_file():
            texts[path.name] = path.read_bytes()
    return texts


def license_expression(distribution: str) -> str:
    """Return the licence expression in the metadata of a distribution."""
    try:
        about = metadata.metadata(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"
    declared = next(
        (each for name in ("License-Expression", "License") for each in about.get_all(name) or ()),
        "",
    )
    classifiers = [c for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    return " ".join(declared.split())[:80] or "; ".join(classifiers) or "unknown"

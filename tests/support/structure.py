"""Count what crosses: imports from the core to features, between features, between packages.

Run it from the root of a checkout::

    python tests/support/structure.py

`OWNERS` assigns each package to the core, to a feature (verbs) or to a plugin (nouns).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OWNERS = {
    "kbench": "core",
    **dict.fromkeys(
        (
            "kbench_claims",
            "kbench_compare",
            "kbench_costs",
            "kbench_dask",
            "kbench_leakage",
            "kbench_listing",
            "kbench_mlflow",
            "kbench_reporting",
            "kbench_rescoring",
            "kbench_sharing",
            "kbench_tables",
            "kbench_testing",
        ),
        "feature",
    ),
    **dict.fromkeys(
        (
            "kbench_balcan",
            "kbench_baselines",
            "kbench_dashboards",
            "kbench_datasets",
            "kbench_files",
            "kbench_learned",
            "kbench_learners",
            "kbench_nbcs",
            "kbench_openml",
            "kbench_suites",
            "kbench_zero_one",
        ),
        "plugin",
    ),
}

HOOKS = ("kbench_dashboards", "kbench_datasets", "kbench_learners", "kbench_suites")
"""Hooks of plugins that have the names of packages of kbench's own."""

Import = tuple[str, str]
"""The module that imports, and the module that is imported."""


@cache
def modules(root: Path) -> dict[str, Path]:
    """Return the files of all modules of the product, by name."""
    found = {}
    for folder in (root, root / "plugins", root / "suites", root / "dashboards"):
        for package in OWNERS:
            for path in sorted((folder / package).rglob("*.py")):
                if "templates" in path.parts:
                    continue
                parts = path.relative_to(folder).with_suffix("").parts
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def imports(root: Path, also_types: bool = True) -> tuple[Import, ...]:
    """Return the imports between modules of the product, those in functions included."""
    return tuple(_read_imports(root, also_types))


def _read_imports(root: Path, also_types: bool) -> Iterator[Import]:
    for name, module in _contents(root).items():
        for target, for_types in module.imports:
            if also_types or not for_types:
                yield name, target


@dataclass(frozen=True)
class Contents:
    """What the counts need of a module, which is parsed once for all of them."""

    imports: list[tuple[str, bool]]
    """The modules that it imports, and whether all it imports of one is for types only."""
    strings: list[str]


@cache
def _contents(root: Path) -> dict[str, Contents]:
    known = modules(root)
    found = {}
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for_types = set(_for_types(tree))
        imported: dict[str, bool] = {}
        strings = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.append(node.value)
            for target in _targets(node, package):
                module, _, _ = target.rpartition(".")
                inner = target if target in known else module if module in known else ""
                if inner and inner != name:
                    imported[inner] = imported.get(inner, True) and node in for_types
        found[name] = Contents([*imported.items()], strings)
    return found


def _for_types(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from ast.walk(node)


def _targets(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*base, *filter(None, [node.module])])
        yield from (f"{module}.{alias.name}" for alias in node.names)


def owner(module: str) -> str:
    """Return the kind of the package that has a module."""
    return OWNERS[module.partition(".")[0]]


def from_core(root: Path) -> list[Import]:
    """Return the imports from the core to features and plugins."""
    return [pair for pair in imports(root) if owner(pair[0]) == "core" and owner(pair[1]) != "core"]


def between_packages(root: Path) -> list[Import]:
    """Return the imports from one feature or plugin to another."""
    return [
        (a, b)
        for a, b in imports(root)
        if "core" not in (owner(a), owner(b)) and a.partition(".")[0] != b.partition(".")[0]
    ]


def named_packages(root: Path) -> list[tuple[str, str]]:
    """Return the packages of features and plugins that the core names in a string."""
    return [
        (name, value)
        for name, module in _contents(root).items()
        if owner(name) == "core"
        for value in module.strings
        if value.partition(".")[0].partition(":")[0] in OWNERS
        and owner(value.partition(":")[0]) != "core"
        and value not in HOOKS
    ]


def arrows(root: Path) -> set[Import]:
    """Return the relations between packages (folders) of the core, without those for types."""
    rooms = {path.name for path in (root / "kbench").iterdir() if (path / "__init__.py").exists()}

    def room(module: str) -> str:
        return module.split(".")[1] if "." in module else ""

    return {
        (room(a), room(b))
        for a, b in imports(root, also_types=False)
        if owner(a) == owner(b) == "core" and room(a) != room(b) and {room(a), room(b)} <= rooms
    }


def floors(relations: set[Import]) -> int:
    """Return the number of floors: the longest path along the arrows; -1 for a circle."""
    below: dict[str, set[str]] = {}
    for a, b in relations:
        below.setdefault(a, set()).add(b)
    heights: dict[str, int] = {}

    def height(room: str, above: tuple[str, ...] = ()) -> int:
        if room in above:
            raise RecursionError(room)
        if room not in heights:
            inner = [height(each, (*above, room)) for each in below.get(room, ())]
            heights[room] = 1 + max(inner, default=0)
        return heights[room]

    try:
        return max(map(height, list(below)), default=0)
    except RecursionError:
        return -1


def lines(root: Path, folder: str = "kbench") -> int:
    """Return the lines of Python in a folder, with docstrings."""
    return sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted((root / folder).rglob("*.py"))
    )


def main() -> None:
    """Print all counts of the checkout in the current folder."""
    root = Path.cwd()
    relations = arrows(root)
    runner = {b for a, b in imports(root) if a.startswith("kbench.runner")}
    for what, found in (
        ("imports from the core to features and plugins", from_core(root)),
        ("imports between features and plugins", between_packages(root)),
        ("packages of features and plugins named in the core", named_packages(root)),
    ):
        print(f"{what}: {len(found)}")
        for pair in found:
            print("   ", " -> ".join(pair))
    print(f"lines in kbench/: {lines(root):,}; in kbench/runner/: {lines(root, 'kbench/runner')}")
    print(f"arrows between packages of kbench/: {len(relations)}, floors: {floors(relations)}")
    outside = {name for name in runner if not name.startswith("kbench.runner")}
    print(f"modules that kbench/runner/ imports: {len(outside)}")


if __name__ == "__main__":
    sys.exit(main())

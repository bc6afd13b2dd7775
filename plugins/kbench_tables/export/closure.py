"""The static import closure of modules, read in their source without running anything."""

import ast
import contextlib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kbench.features import find_folders, find_source, is_installed, read_source

Import = ast.Import | ast.ImportFrom


def import_closure(
    modules: Iterable[str], packages: Iterable[str], left_out: Collection[str] = ()
) -> set[str]:
    """Return the modules that these import, directly or not, and themselves.

    Followed are those of the top-level packages `packages`, and of all that lies outside of
    ``site-packages``: in a working copy, for example of an editable install. Modules in `left_out`
    are not followed; a name of two parts stands for its submodules too.

    Examples
    --------
    >>> "kbench.errors" in import_closure(["kbench.parameters"], ["kbench"])
    True
    >>> import_closure(["kbench.parameters"], ["kbench"], left_out={"kbench", "kbench.errors"})
    {'kbench.parameters'}
    """
    sources = _Sources(packages, left_out)
    closure: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in closure and sources.is_followed(module):
            closure.add(module)
            waiting += sources.imported_by(module)
    return closure


def find_imports(source: bytes) -> Iterator[tuple[Import, bool]]:
    """Yield the import statements of a module, and whether each may fail or may not run.

    Those may that stand below an ``if``, or where an ImportError is caught. Calls of
    ``import_module`` with a literal name come as statements in their place; what is for type
    checkers only is left out.

    Examples
    --------
    >>> [(ast.unparse(each), optional) for each, optional in find_imports(b"import a.b as c")]
    [('import a.b as c', False)]
    """
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:
        node, is_optional = waiting.pop()
        if isinstance(node, Import):
            yield node, is_optional
        elif isinstance(node, ast.Call):
            if (statement := _find_call(node)) is not None:
                yield statement, is_optional
        elif isinstance(node, ast.If) and _dotted(node.test) == "TYPE_CHECKING":
            node.body = []
        is_optional = is_optional or isinstance(node, ast.If) or _catches_import_errors(node)
        waiting += [(child, is_optional) for child in ast.iter_child_nodes(node)]


class _Sources:
    """Modules by name; each file is read once."""

    def __init__(self, packages: Iterable[str], left_out: Collection[str]) -> None:
        self._packages = frozenset(packages)
        self._left_out = left_out
        self._files: dict[str, Path | None] = {}
        self._is_source = cache(self._lies_in_source)
        self._is_found = cache(
            lambda module: self._file(module) is not None or find_folders(module, self._files)
        )
        self._exports = cache(lambda path: _read_exports(read_source(path)))

    def is_followed(self, module: str) -> bool:
        return self._is_own(module) and not self._is_left_out(module)

    def imported_by(self, module: str) -> Iterator[str]:
        """Yield the modules that a module imports; some may not exist."""
        parent = module.rpartition(".")[0]
        if parent:
            yield parent  # importing a.b runs a/__init__.py too
        path = self._file(module)
        if path is None or path.suffix != ".py":
            return
        package = module if path.name == "__init__.py" else parent
        for node, _ in find_imports(read_source(path)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif base := _resolve_name("." * node.level + (node.module or ""), package):
                yield base
                for alias in node.names:
                    yield from self._exporting(base, alias.name)

    def _exporting(self, package: str, name: str) -> Iterator[str]:
        """Yield the modules of a package that ``from package import name`` imports."""
        if not self._is_own(package):
            return
        file = self._file(package)
        if file is None and self._is_found(package) and name != "*":
            yield f"{package}.{name}"  # without __init__.py, it has nothing but modules
        elif self._is_found(f"{package}.{name}"):
            yield f"{package}.{name}"
        elif file is not None and file.name == "__init__.py" and not self._is_left_out(package):
            exports = self._exports(file)
            modules = exports.values() if name == "*" else filter(None, [exports.get(name)])
            yield from filter(self._is_found, {f"{package}.{module}" for module in modules})

    def _file(self, module: str) -> Path | None:
        return find_source(module, self._files)

    def _is_left_out(self, module: str) -> bool:
        return ".".join(module.split(".")[:2]) in self._left_out

    def _is_own(self, module: str) -> bool:
        top = module.partition(".")[0]
        return top in self._packages or self._is_source(top)

    def _lies_in_source(self, top: str) -> bool:
        """Tell whether a top-level module lies where no installer has put it."""
        if top in sys.stdlib_module_names:
            return False
        file = self._file(top)
        # a namespace package has folders and no file
        places = find_folders(top, self._files) if file is None else [str(file)]
        return not all(map(is_installed, places))


def _resolve_name(name: str, package: str) -> str:
    """Return the absolute name of a module; empty where it would lie beyond the top."""
    with contextlib.suppress(ImportError):
        return importlib.util.resolve_name(name, package)
    return ""


def _find_call(call: ast.Call) -> Import | None:
    """Return the statement that a call of ``import_module`` with a literal stands for."""
    name = getattr(call.args[0], "value", None) if call.args else None
    if _dotted(call.func) not in ("import_module", "__import__"):
        return None
    if not isinstance(name, str) or not name.strip("."):
        return None
    level = len(name) - len(name.lstrip("."))
    arguments = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "package")]
    package = getattr(arguments[0], "value", None) if arguments else None
    if level and not isinstance(package, str):  # __package__, or what only a run knows
        statement: Import = ast.ImportFrom(name[level:], [], level)
    else:
        statement = ast.Import([ast.alias(_resolve_name(name, str(package)))])
    return ast.copy_location(statement, call)


def _catches_import_errors(node: ast.AST) -> bool:
    caught: list[ast.AST] = []
    if isinstance(node, ast.Try):
        if any(handler.type is None for handler in node.handlers):
            return True
        caught = [handler.type for handler in node.handlers if handler.type]
    elif isinstance(node, ast.With):
        calls = [item.context_expr for item in node.items]
        caught = [c for c in calls if isinstance(c, ast.Call) and _dotted(c.func) == "suppress"]
    names = {_dotted(part) for each in caught for part in ast.walk(each)}
    return not names.isdisjoint(
        ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
    )


def _read_exports(source: bytes) -> dict[str, str]:
    """Return the submodule of each name that a package exports without importing it itself.

    Names in a literal ``__all__`` may be submodules; ``lazy_loader.attach`` says which
    submodule has a name.
    """
    exports: dict[str, str] = {}
    for node in ast.parse(source).body:
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and _dotted(value.func) == "attach":
            args = dict(zip(("package", "submodules", "submod_attrs"), value.args, strict=False))
            args |= {k.arg: k.value for k in value.keywords if k.arg}
            for name, names in _evaluate(args.get("submod_attrs"), {}).items():
                exports |= dict.fromkeys(names, name)
            exports |= {name: name for name in _evaluate(args.get("submodules"), ())}
        elif any(_dotted(target) == "__all__" for target in getattr(node, "targets", ())):
            exports |= {name: name for name in _evaluate(value, ()) if isinstance(name, str)}
    return exports


def _evaluate(node: ast.expr | None, default: object) -> Any:
    """Evaluate a literal; `default` if it is not one of that type."""
    with contextlib.suppress(ValueError, TypeError):
        value = ast.literal_eval(node) if node is not None else default
        if isinstance(value, dict if isinstance(default, dict) else list | tuple | set):
            return value
    return default


def _dotted(node: ast.AST) -> str:
    return str(node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", ""))

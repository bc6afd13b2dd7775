"""Syntax of a module: its digest without docstrings and comments, and its imports."""

from __future__ import annotations

import ast
import contextlib
import hashlib
from dataclasses import dataclass
from typing import Any

Import = ast.Import | ast.ImportFrom

_FIELDS = {
    node: tuple(name for name in node._fields if name not in ("ctx", "kind"))
    for node in vars(ast).values()
    if isinstance(node, type) and issubclass(node, ast.AST)
}
"""Fields of each class of nodes, except ``ctx`` (it follows from a node's place) and
``kind`` (the ``u`` before a string)."""


@dataclass(frozen=True)
class Syntax:
    """The parts of a module's source that fingerprints need.

    `digest` is the SHA-256 of the syntax tree (hex). Comments, formatting and positions
    do not count, nor do docstrings and other statements that are just a string, nor code
    for type checkers only. `imports` are the import statements that may run, those in
    functions included, and calls of ``import_module`` with a literal name as statements.
    """

    digest: str
    imports: tuple[Import, ...]


def syntax_of(source: bytes, name: str) -> Syntax:
    r"""Parse a module's source; `name` is the file, for warnings.

    Of a source that does not parse, all bytes count: nothing can import it,
    and a correction is an edit of code.

    Examples
    --------
    >>> plain = syntax_of(b"x = 1", "plain.py")
    >>> plain == syntax_of(b"'''A constant.'''\nx = (1)  # one", "explained.py")
    True
    >>> plain == syntax_of(b"x = 1.0", "changed.py")
    False
    """
    try:
        tree = ast.parse(source, filename=name)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Syntax(hashlib.sha256(source).hexdigest(), ())
    imports: list[Import] = []
    text = "\n".join(_serialized(tree, imports))
    return Syntax(hashlib.sha256(text.encode()).hexdigest(), tuple(imports))


def _serialized(tree: ast.Module, imports: list[Import]) -> list[str]:
    """Serialize a tree unambiguously and collect its imports.

    `ast.dump` takes three times as long, and every command that plans waits for it.
    """
    written: list[str] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is ast.Import or kind is ast.ImportFrom:
            imports.append(node)
        elif kind is ast.Call:
            if (called := _imported_by_call(node)) is not None:
                imports.append(called)
        elif kind is ast.If and _is_type_checking(node.test):
            node.body = []
        written.append(kind.__name__)
        for field in _FIELDS[kind]:
            written.append(field)
            value = getattr(node, field)
            for child in value if type(value) is list else (value,):
                if not isinstance(child, ast.AST):
                    written.append(_literal(child))
                elif type(child) is not ast.Expr or not _is_text(child.value):
                    written.append("*")  # a node, which is written when its turn comes
                    waiting.append(child)
    return written


def _literal(value: Any) -> str:
    # Python refuses to write a very large integer in decimal digits
    return hex(value) if type(value) is int else repr(value)


def _is_text(value: ast.expr) -> bool:
    """Tell whether a statement of this value is just a string, as a docstring is."""
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _imported_by_call(call: ast.Call) -> Import | None:
    """Return the statement that a call of ``import_module`` with a literal stands for."""
    if _name_of(call.func) not in ("import_module", "__import__") or not call.args:
        return None
    name = getattr(call.args[0], "value", None)
    if not isinstance(name, str) or not name.strip("."):
        return None
    level = len(name) - len(name.lstrip("."))
    statement: Import = ast.Import([ast.alias(name)])
    if level:
        package = next((k.value for k in call.keywords if k.arg == "package"), None)
        package = call.args[1] if len(call.args) > 1 else package
        base = getattr(package, "value", None)
        if isinstance(base, str):
            for _ in range(level - 1):
                base = base.rpartition(".")[0]
            statement = ast.Import([ast.alias(f"{base}{name[level - 1 :]}")])
        else:  # __package__, or what is not known before it runs
            statement = ast.ImportFrom(name[level:], [], level)
    return ast.copy_location(statement, call)


def optional_imports(source: bytes) -> set[tuple[int, int]]:
    """Return the places (line, column) of imports that may fail or may not run.

    They stand below an ``if``, or where an ImportError is caught.
    """
    places: set[tuple[int, int]] = set()
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:
        node, is_optional = waiting.pop()
        if is_optional and isinstance(node, Import | ast.Call):
            places.add((node.lineno, node.col_offset))
        is_optional = is_optional or isinstance(node, ast.If) or _catches_import_errors(node)
        waiting += [(child, is_optional) for child in ast.iter_child_nodes(node)]
    return places


def _catches_import_errors(node: ast.AST) -> bool:
    caught: list[ast.AST] = []
    if isinstance(node, ast.Try):
        if any(handler.type is None for handler in node.handlers):
            return True
        caught = [handler.type for handler in node.handlers if handler.type]
    elif isinstance(node, ast.With):
        calls = [item.context_expr for item in node.items]
        caught = [c for c in calls if isinstance(c, ast.Call) and _name_of(c.func) == "suppress"]
    names = {_name_of(part) for each in caught for part in ast.walk(each)}
    return not names.isdisjoint(
        ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
    )


def exports_of(source: bytes) -> dict[str, str]:
    """Return the submodule of each name that a package exports without importing it itself.

    Names in a literal ``__all__`` may be submodules; ``lazy_loader.attach`` says which
    submodule has a name.
    """
    exports: dict[str, str] = {}
    if b"__all__" not in source and b"attach" not in source:
        return exports
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.parse(source).body:
            value = getattr(node, "value", None)
            if isinstance(value, ast.Call) and _name_of(value.func) == "attach":
                given = dict(
                    zip(("package", "submodules", "submod_attrs"), value.args, strict=False)
                )
                given |= {k.arg: k.value for k in value.keywords if k.arg}
                for name, names in _evaluated(given.get("submod_attrs"), {}).items():
                    exports |= dict.fromkeys(names, name)
                exports |= {name: name for name in _evaluated(given.get("submodules"), ())}
            elif any(_name_of(target) == "__all__" for target in getattr(node, "targets", ())):
                exports |= {name: name for name in _evaluated(value, ()) if isinstance(name, str)}
    return exports


def _evaluated(node: ast.expr | None, default: Any) -> Any:
    """Evaluate a literal; `default` if it is not one of that type."""
    with contextlib.suppress(ValueError, TypeError):
        value = ast.literal_eval(node) if node is not None else default
        is_mapping = isinstance(default, dict)
        if isinstance(value, dict if is_mapping else list | tuple | set):
            return value
    return default


def _name_of(node: ast.AST) -> str:
    """Return the last name of a dotted name; else an empty string."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return str(name)


def _is_type_checking(test: ast.expr) -> bool:
    return _name_of(test) == "TYPE_CHECKING"

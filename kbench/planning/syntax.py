"""Digest of a module's source, without docstrings, comments and formatting."""

from __future__ import annotations

import ast
import hashlib
import threading
from collections.abc import Collection, Iterator
from typing import Any

_FIELDS = {
    node: tuple(name for name in node._fields if name not in ("ctx", "kind", "type_comment"))
    for node in vars(ast).values()
    if isinstance(node, type) and issubclass(node, ast.AST)
}
"""Fields of each class of nodes, except ``ctx`` (it follows from a node's place), ``kind``
(the ``u`` before a string) and comments."""


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_parsing = threading.Lock()
"""Python 3.11 counts the depth of a tree for all threads together: SystemError."""


def syntax_digest(source: bytes) -> str:
    r"""Return the SHA-256 of a module's syntax tree (hex).

    Comments, formatting and positions do not count, nor do docstrings and other statements
    that are just a string, annotations of functions without decorators, the bodies of hook
    implementations that only return records, and code for type checkers only. Annotations of
    classes count: they make the fields of dataclasses. Of a source that does not parse, all
    bytes count: nothing can import it, and a correction is an edit of code.

    Examples
    --------
    >>> plain = syntax_digest(b"x = 1")
    >>> plain == syntax_digest(b"'''A constant.'''\nx = (1)  # one")
    True
    >>> plain == syntax_digest(b"x = 1.0")
    False
    """
    try:
        with _parsing:
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return hashlib.sha256(source).hexdigest()
    # `ast.dump` takes three times as long, and planning waits for it
    return hashlib.sha256("\n".join(_serialized(tree)).encode("utf-8", "replace")).hexdigest()


def _serialized(tree: ast.Module) -> list[str]:
    """Serialize a tree unambiguously."""
    for_types, makers = _names_of_type_checking(tree), _makers(tree)
    written: list[str] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is ast.If and for_types:
            if isinstance(node.test, ast.Name | ast.Attribute):
                node.body = [] if ast.unparse(node.test) in for_types else node.body
        elif kind in _FUNCTIONS and not node.decorator_list:
            node.returns = None
            for argument in _arguments(node.args):
                argument.annotation = None
        elif kind is ast.FunctionDef and _only_returns_records(node, makers):
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


_HOMES = ("kbench", "kbench.records", "functools")


def _only_returns_records(function: ast.FunctionDef, known: Collection[str]) -> bool:
    """Tell whether a function is the implementation of a hook that does nothing else.

    The records that it returns are in the keys of cells, with all arguments. It may call what
    `known` names, which makes records and partials: what else it called could return other
    code under the same name.
    """
    if not function.name.startswith("kbench_"):
        return False
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in known:
            return False
        if isinstance(node, ast.Lambda | ast.NamedExpr | ast.Await | ast.Yield):
            return False
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            return False  # it changes something else
    return all(
        isinstance(each, ast.Import | ast.ImportFrom | ast.Return | ast.Assign)
        or _is_docstring(each)
        for each in function.body
    ) and all(ast.unparse(each).endswith("hookimpl") for each in function.decorator_list)


def _makers(tree: ast.Module) -> set[str]:
    """Return the names that a module imports from where records and partials come from."""
    found = {"list", "tuple", "dict"}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in _HOMES and not node.level:
            found |= {alias.name for alias in node.names if alias.asname is None}
    bound = {node.name for node in ast.walk(tree) if isinstance(node, (*_FUNCTIONS, ast.ClassDef))}
    return found - bound


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and _is_text(statement.value)


def _literal(value: Any) -> str:
    # Python refuses to write a very large integer in decimal digits
    return hex(value) if type(value) is int else repr(value)


def _is_text(value: ast.expr) -> bool:
    """Tell whether a statement of this value is just a string, as a docstring is."""
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _arguments(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from filter(None, (args.vararg, args.kwarg))


def _names_of_type_checking(tree: ast.Module) -> set[str]:
    """Return how a module names `typing.TYPE_CHECKING`, unless it binds such a name itself."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "typing" and not node.level:
            names |= {alias.name for alias in node.names if alias.asname is None}
        elif isinstance(node, ast.Import):
            names |= {f"{a.name}.TYPE_CHECKING" for a in node.names if a.name == "typing"}
    names &= {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    if names and any(
        isinstance(node, ast.Name | ast.Attribute)
        and not isinstance(node.ctx, ast.Load)
        and "TYPE_CHECKING" in (getattr(node, "id", ""), getattr(node, "attr", ""))
        for node in ast.walk(tree)
    ):
        return set()
    return names

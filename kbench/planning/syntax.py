"""Syntax of a module: its digest without docstrings and comments, and its imports."""

from __future__ import annotations

import ast
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
    functions included.
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


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"

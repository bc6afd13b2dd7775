"""Digests of files, kept by the states of the files; of sources, those of their syntax trees."""

import ast
import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kbench.records.canonical import JsonObject
from kbench.registry.dependencies import read_source
from kbench.storage.files import PARSING, file_digest, may_lie, read_state, write_file
from kbench.storage.journal import state_folder

MOST = 20_000  # files whose digests are kept; with more, all are computed again


class Digests:
    """Digests of files, each computed again once the state of its file has changed."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or state_folder() / "digests.json"
        self._kept: dict[str, Any] = {}
        self._of_content: dict[str, str] = {}
        self._is_changed = False
        with contextlib.suppress(OSError, ValueError):
            stored = read_kept(self._file)
            if 0 < len(stored["files"]) <= MOST:
                self._kept, self._of_content = dict(stored["files"]), dict(stored["contents"])

    def hash_file(self, path: str | Path) -> str | None:
        """Return the SHA-256 of a file (hex), one in an archive included; None for none."""
        if (state := read_state(path)) is None:
            with contextlib.suppress(OSError, ValueError, StopIteration, KeyError):
                return hashlib.sha256(read_source(Path(path))).hexdigest()
            return None
        if not Path(path).is_file():  # a pipe would wait for a writer
            return ""
        return self.look_up(f"bytes {path}", state, lambda: file_digest(path))

    def hash_content(self, path: str | Path, digest: Callable[[bytes], str]) -> str | None:
        """Return a digest that a function computes from the content of a file; None for none."""
        if (sha := self.hash_file(path)) is None:
            return None
        if sha not in self._of_content:
            self._of_content[sha] = digest(read_source(Path(path)))
            self._is_changed = True
        return self._of_content[sha]

    def look_up(self, name: str, state: Any, compute: Callable[[], str | None]) -> str | None:
        """Return what was computed for a state of something, or compute it."""
        reliable = not (len(state) == 5 and may_lie(state))
        stored = self._kept.get(name)
        if reliable and stored is not None and stored[0] == state:
            return str(stored[1])
        value = compute()
        if reliable and value is not None:
            self._kept[name] = [state, value]
            self._is_changed = True
        return value

    def save(self) -> None:
        """Keep the digests for the next process; one that cannot be written computes them."""
        if self._is_changed:
            with contextlib.suppress(OSError):
                write_kept(self._file, {"files": self._kept, "contents": self._of_content})
        self._is_changed = False


def read_kept(path: Path) -> JsonObject:
    """Read what `write_kept` wrote; raises ValueError if it is damaged."""
    checksum, _, body = path.read_bytes().partition(b"\n")
    if int(checksum, 16) != zlib.crc32(body):
        raise ValueError(f"{path} is damaged")
    return dict(json.loads(body))


def write_kept(path: Path, values: JsonObject) -> None:
    """Keep values as JSON with their checksum."""
    body = json.dumps(values, separators=(",", ":")).encode("ascii")
    write_file(path, b"%08x\n" % zlib.crc32(body) + body, 0o600, flush=False)


_FIELDS = {
    node: tuple(name for name in node._fields if name not in ("ctx", "kind", "type_comment"))
    for node in vars(ast).values()
    if isinstance(node, type) and issubclass(node, ast.AST)
}
"""Fields of each class of nodes, except ``ctx`` (it follows from a node's place), ``kind``
(the ``u`` before a string) and comments."""


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def syntax_digest(source: bytes) -> str:
    r"""Return the SHA-256 of a module's syntax tree (hex).

    Comments, formatting and positions do not count, nor do docstrings and other statements
    that are just a string, annotations of functions without decorators, and the bodies of hook
    implementations that return literal records. Annotations of classes count: they make the
    fields of dataclasses. Of a source that does not parse, all bytes count: nothing can import
    it, and a correction is an edit of code.

    Examples
    --------
    >>> plain = syntax_digest(b"x = 1")
    >>> plain == syntax_digest(b"'''A constant.'''\nx = (1)  # one")
    True
    >>> plain == syntax_digest(b"x = 1.0")
    False
    """
    try:
        with PARSING:
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return hashlib.sha256(source).hexdigest()
    # `ast.dump` takes three times as long, and planning waits for it
    return hashlib.sha256("\n".join(_serialize(tree)).encode("utf-8", "replace")).hexdigest()


def _serialize(tree: ast.Module) -> list[str]:
    written: list[str] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind in _FUNCTIONS and not node.decorator_list:
            node.returns = None
            for argument in _arguments(node.args):
                argument.annotation = None
        elif kind is ast.FunctionDef and _only_returns_records(node, tree):
            node.body = []
        written.append(kind.__name__)
        for field in _FIELDS[kind]:
            written.append(field)
            value = getattr(node, field)
            for child in value if type(value) is list else (value,):
                if not isinstance(child, ast.AST):
                    # Python refuses to write a very large integer in decimal digits
                    written.append(hex(child) if type(child) is int else repr(child))
                elif type(child) is not ast.Expr or not _is_text(child.value):
                    written.append("*")  # a node, which is written when its turn comes
                    waiting.append(child)
    return written


_HOMES = ("kbench", "kbench.records")


_LITERAL = (
    *(ast.Return, ast.List, ast.Tuple, ast.Dict, ast.Constant, ast.Call, ast.keyword, ast.Name),
    *(ast.Load, ast.UnaryOp, ast.USub, ast.Expr),
)


def _only_returns_records(function: ast.FunctionDef, tree: ast.Module) -> bool:
    """Return whether a function implements a hook that returns literal records; keys have them.

    A name could stand for other code, so that there is none but those of `_makers`.
    """
    if not function.name.startswith("kbench_"):
        return False
    nodes = [node for each in function.body for node in ast.walk(each)]
    return (
        all(ast.unparse(each).endswith("hookimpl") for each in function.decorator_list)
        and all(isinstance(node, _LITERAL) for node in nodes)
        and {node.id for node in nodes if isinstance(node, ast.Name)} <= _makers(tree)
    )


def _makers(tree: ast.Module) -> set[str]:
    """Return the names that a module imports from where records come from."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in _HOMES and not node.level:
            names |= {alias.name for alias in node.names if alias.asname is None}
    for each in ast.walk(tree):
        if isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
            names.discard(each.name)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            names.discard(each.id)
    return names


def _is_text(value: ast.expr) -> bool:
    """Return whether a statement of this value is just a string, as a docstring is."""
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _arguments(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from filter(None, (args.vararg, args.kwarg))

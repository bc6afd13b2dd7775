"""Counts of the product's source: lines, code, files, `Any`, names that repeat, long signatures."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

FOLDERS = ("kbench", "plugins", "suites", "dashboards")

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass
class Size:
    """What a tree has; `code` leaves out docstrings, comments and blank lines."""

    files: int = 0
    lines: int = 0
    code: int = 0
    statements: int = 0
    nodes: int = 0
    any: int = 0
    dict_any: int = 0


def sources(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((root / folder).rglob("*.py"))


def measured(root: Path) -> Size:
    """Count the product below a folder."""
    counts = [asdict(_counts(path)[0]) for path in sources(root)]
    return Size(**{name: sum(each[name] for each in counts) for name in asdict(Size())})


def same_names(folder: Path) -> dict[str, list[Path]]:
    """Return the modules of a folder that share their name with another one."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in folder.rglob("*.py"):
        if path.stem not in ("__init__", "__main__"):
            found[path.stem].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def long_signatures(root: Path, most: int) -> Iterator[str]:
    """Yield the functions with more than `most` parameters, as ``module.py:name``."""
    for path in sources(root):
        for name, n in _counts(path)[1]:
            if n > most:
                yield f"{path.relative_to(root).as_posix()}:{name}"


@cache
def _counts(path: Path) -> tuple[Size, list[tuple[str, int]]]:
    """Return the size of a module, and its functions with the numbers of their parameters."""
    text = path.read_text()
    nodes = list(ast.walk(ast.parse(text)))
    size = Size(
        files=1,
        lines=len(text.splitlines()),
        code=len(_lines_of_tokens(text) - _lines_of_docstrings(nodes)),
        statements=sum(isinstance(node, ast.stmt) for node in nodes),
        nodes=len(nodes),
        any=sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes),
        dict_any=text.count("dict[str, Any]"),
    )
    functions = [
        (node.name, sum(map(len, (node.args.posonlyargs, node.args.args, node.args.kwonlyargs))))
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return size, functions


def _lines_of_tokens(text: str) -> set[int]:
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _lines_of_docstrings(nodes: list[ast.AST]) -> set[int]:
    """Return the lines of strings that stand alone: docstrings, also of attributes."""
    lines = set[int]()
    for node in nodes:
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return lines


if __name__ == "__main__":
    print(measured(Path(__file__).parents[2]))

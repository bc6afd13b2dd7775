"""What a component is, in one sentence: its docstring's first, read without importing it.

A list of everything must not import everything, scikit-learn to begin with, so
the sentence is looked up in the source, by `ast`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

from kbench.registry.source import source_of

_END = re.compile(r"(?<=[^\s.][^\s.][.!?])\s+(?=[A-Z])")
"""Between two sentences; what follows an initial or an "e.g." is no new one."""


class Summaries:
    """Summaries of what records name; each file is read once in its life.

    Examples
    --------
    >>> Summaries().of("kbench.kernels:Gaussian")
    'k(x, z) = exp(-||x - z||_2^2 / (2 bandwidth^2)).'
    """

    def __init__(self) -> None:
        self._files: dict[str, Path | None] = {}
        self._trees: dict[str, ast.Module | None] = {}

    def of(self, make: Any) -> str:
        """Return the first sentence on a class or function.

        Parameters
        ----------
        make : callable or "module:name"

        Returns
        -------
        str
            Empty where there is no docstring, or no source to read it from.
        """
        if not isinstance(make, str):
            # a partial's docstring would be that of functools
            target = make.func if isinstance(make, functools.partial) else make
            # its own: a class without one would get that of scikit-learn's base
            return first_sentence(inspect.cleandoc(target.__doc__ or ""))
        module, _, name = make.partition(":")
        return first_sentence(self._docstring(module, name, set()))

    def of_module(self, module: str) -> str:
        """Return the first sentence on a module; empty where there is none."""
        tree = self._tree(module)
        return first_sentence(ast.get_docstring(tree) or "") if tree else ""

    def _docstring(self, module: str, name: str, seen: set[tuple[str, str]]) -> str:
        tree = None if (module, name) in seen else self._tree(module)
        seen.add((module, name))
        if tree is None:
            return ""
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return ast.get_docstring(node) or ""
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._docstring(self._imported(module, node), alias.name, seen)
            if isinstance(node, ast.Assign) and _is_named(node, name):
                preset = _preset(node.value)
                return self._docstring(module, preset, seen) if preset else ""
        return ""

    def _tree(self, module: str) -> ast.Module | None:
        if module not in self._trees:
            path = source_of(module, self._files)
            self._trees[module] = None
            if path is not None and path.suffix == ".py":
                # whoever uses it is told what is wrong with it
                with contextlib.suppress(OSError, SyntaxError, ValueError):
                    self._trees[module] = ast.parse(path.read_bytes())
        return self._trees[module]

    def _imported(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        path = self._files[module]
        assert path is not None
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        with contextlib.suppress(ImportError):  # beyond the top of its package
            return importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        return ""


def _is_named(node: ast.Assign, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in node.targets)


def _preset(value: ast.expr) -> str:
    """Return what ``functools.partial(Name, ...)`` presets parameters of."""
    if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Name):
        called = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        if called == "partial" or getattr(value.func, "id", "") == "partial":
            return value.args[0].id
    return ""


def of_suite(text: str) -> str:
    r"""Return the first sentence of a suite's description, or of the comment it begins with.

    Examples
    --------
    >>> of_suite("# Small sets, for a look\n# in 20 seconds. Not more.\nname = 'x'")
    'Small sets, for a look in 20 seconds.'
    """
    with contextlib.suppress(tomllib.TOMLDecodeError):
        described = tomllib.loads(text).get("description")
        if isinstance(described, str) and described:
            return first_sentence(described)
    comment = []
    for line in text.splitlines():
        if not line.startswith("#") or not line.strip("# "):
            break
        comment.append(line.lstrip("#"))
    return first_sentence("\n".join(comment))


def first_sentence(text: str) -> str:
    r"""Return the first sentence of a docstring, as one line that a terminal can show.

    Examples
    --------
    >>> first_sentence("Features of A. Rahimi\nand B. Recht. They are random.")
    'Features of A. Rahimi and B. Recht.'
    """
    paragraph = " ".join(text.strip().partition("\n\n")[0].split()).replace("``", "")
    printable = "".join(each for each in paragraph if each.isprintable())
    return _END.split(printable, maxsplit=1)[0]

"""Summaries of components: first sentences of docstrings, read without importing.

Listing everything must not import everything, scikit-learn to begin with, so the
sentence is looked up in the source, by `ast`.
"""

import ast
import contextlib
import functools
import importlib.util
import inspect
import re
from pathlib import Path

from kbench.registry.callables import Reference
from kbench.registry.dependencies import find_source

# Between two sentences; no sentence begins after an initial or an "e.g.".
_END = re.compile(r"(?<=[^\s.][^\s.][.!?])\s+(?=[A-Z])")


class Summaries:
    """Makes summaries of components, and reads each file once.

    Examples
    --------
    >>> Summaries().summarise("kbench.kernels:Gaussian")
    'k(x, z) = exp(-||x - z||_2^2 / (2 bandwidth^2)).'
    """

    def __init__(self) -> None:
        self._files: dict[str, Path | None] = {}
        self._tree = functools.cache(self._parse)

    def summarise(self, make: object) -> str:
        """Return the first sentence on a class or function, empty if there is none to read."""
        if isinstance(make, Reference):
            return self.summarise(make.target) if make.summary is None else make.summary
        if not isinstance(make, str):
            # a partial's docstring would be that of functools
            target = make.func if isinstance(make, functools.partial) else make
            # its own: a class without one would get that of scikit-learn's base
            summary = first_sentence(inspect.cleandoc(target.__doc__ or ""))
            preset = make.keywords if isinstance(make, functools.partial) else {}
            return _add_preset(
                summary,
                {
                    key: repr(value)
                    for key, value in preset.items()
                    if isinstance(value, bool | int | float | str)
                },
            )
        module, _, name = make.partition(":")
        return self._summary(module, name, set())

    def summarise_module(self, module: str) -> str:
        """Return the first sentence on a module; empty if there is none."""
        return first_sentence(ast.get_docstring(self._tree(module)) or "")

    def _summary(self, module: str, name: str, seen: set[tuple[str, str]]) -> str:
        if (module, name) in seen:
            return ""
        seen.add((module, name))
        for node in self._tree(module).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return first_sentence(ast.get_docstring(node) or "")
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._summary(self._follow_import(module, node), alias.name, seen)
            targets = [getattr(each, "id", "") for each in getattr(node, "targets", ())]
            if isinstance(node, ast.Assign) and name in targets:
                target, preset = _partial(node.value)
                return _add_preset(self._summary(module, target, seen), preset) if target else ""
        return ""

    def _parse(self, module: str) -> ast.Module:
        """Parse a module; empty if that fails: importing it reports the error."""
        path = find_source(module, self._files)
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            if path is not None and path.suffix == ".py":
                return ast.parse(path.read_bytes())
        return ast.Module([], [])

    def _follow_import(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        path = self._files[module]
        assert path is not None
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        with contextlib.suppress(ImportError):  # beyond the top of its package
            return importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        return ""


def _add_preset(summary: str, preset: dict[str, str]) -> str:
    """Add preset parameters to a summary: components that differ in nothing else need them.

    >>> _add_preset("Nystroem approximation.", {"landmarks": "'kmeans'"})
    "Nystroem approximation (landmarks='kmeans')."
    """
    if not summary or not preset:
        return summary
    listed = ", ".join(f"{key}={value}" for key, value in preset.items())
    return f"{summary.removesuffix('.')} ({listed}){'.' if summary.endswith('.') else ''}"


def _partial(value: ast.expr) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters of ``functools.partial(Name, ...)``, else nothing."""
    if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Name):
        called = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        if called == "partial" or getattr(value.func, "id", "") == "partial":
            preset = {
                key.arg: repr(key.value.value)
                for key in value.keywords
                if key.arg and isinstance(key.value, ast.Constant)
            }
            return value.args[0].id, preset
    return "", {}


def first_sentence(docstring: str) -> str:
    r"""Return the first sentence of a docstring, as one line that a terminal can show.

    Examples
    --------
    >>> first_sentence("Features of A. Rahimi\nand B. Recht. They are random.")
    'Features of A. Rahimi and B. Recht.'
    """
    paragraph = " ".join(docstring.strip().partition("\n\n")[0].split()).replace("``", "")
    return _END.split("".join(sign for sign in paragraph if sign.isprintable()), maxsplit=1)[0]

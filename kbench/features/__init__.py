"""What features may use: the records, steps and words of the core, under one roof.

A feature implements hooks (`kbench.hookspecs`, the second part), and imports what it needs
from here::

    from kbench.features import hookimpl

    @hookimpl
    def kbench_result(run, cell, result):
        ...

Names are loaded on first use; ``__init__.pyi`` lists them with their homes.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """Return module and name of each public name, as the stub of this module imports them."""
    stub = (files(__name__) / "__init__.pyi").read_text(encoding="utf-8")
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def __getattr__(name: str) -> Any:
    if name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _homes()[name]
    member = getattr(import_module(module), attribute, None)
    value = import_module(f"{module}.{attribute}") if member is None else member
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_homes())

"""What features may use: the records, steps and words of the core, under one roof.

A feature implements hooks (`kbench.hookspecs`, the second part), and imports what it needs
from here::

    from kbench.features import hookimpl

    @hookimpl
    def kbench_result(run, cell, result):
        ...

Names are loaded on first use; ``__init__.pyi`` lists them with their homes.
"""

from importlib import import_module
from typing import Any

from kbench import _homes


def __getattr__(name: str) -> Any:
    if name not in _homes(__name__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _homes(__name__)[name]
    member = getattr(import_module(module), attribute, None)
    value = import_module(f"{module}.{attribute}") if member is None else member
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_homes(__name__))

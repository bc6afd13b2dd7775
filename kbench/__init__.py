"""Benchmark explicit feature maps and kernel methods under one evaluation protocol.

Authors of plugins import everything from here::

    from kbench import FeatureMap, hookimpl

    @hookimpl
    def kbench_feature_maps():
        grid = {"bandwidth_factor": [0.5, 1.0, 2.0]}
        return [FeatureMap("my-map", make="my_plugin._map:MyMap", grid=grid)]

`run_suite`, `load_results` and `evaluate` are the commands as functions; features add others,
such as `recommend`. All names are imported on first use; ``__init__.pyi`` has their homes.
"""

import sys
from functools import cache
from importlib import import_module
from typing import Any

from kbench._version import __version__ as __version__


@cache
def _homes(package: str) -> dict[str, tuple[str, str]]:
    """Return module and name of each public name of a package, as its stub imports them."""
    import ast
    from importlib.resources import files

    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.parse((files(package) / "__init__.pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes(__name__))
    if name in _homes(__name__):
        # by name, for an import statement would make hosts of a cluster compare all of kbench
        module, attribute = _homes(__name__)[name]
        return getattr(import_module(module), attribute)
    if name in ("errors", "hookspecs", "records"):
        return import_module(f"kbench.{name}")
    if not name.startswith("_"):
        function = import_module("kbench.registry.features").function(name)
        if function is not None:
            return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*_homes(__name__), *import_module("kbench.registry.features").functions()]


class _Provided:
    """Finds ``kbench.NAME`` where a feature provides a module of that name."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        if not name.startswith("kbench.") or name == "kbench.registry.features":
            return None
        return import_module("kbench.registry.features").module_spec(name)


sys.meta_path.append(_Provided())

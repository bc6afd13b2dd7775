"""Benchmark explicit feature maps and kernel methods under one evaluation protocol.

Authors of plugins import everything from here::

    from kbench import FeatureMap, hookimpl

    @hookimpl
    def kbench_feature_maps():
        grid = {"bandwidth_factor": [0.5, 1.0, 2.0]}
        return [FeatureMap("my-map", make="my_plugin._map:MyMap", grid=grid)]

`run_suite`, `load_results` and `evaluate` are the commands as functions; features add others,
such as `recommend`. All names are imported on first use.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kbench._version import __version__

if TYPE_CHECKING:
    from kbench.api.functions import evaluate, load_results, run_suite
    from kbench.api.result_set import Results
    from kbench.errors import (
        BundleError,
        ClusterError,
        DatasetError,
        DatasetParameterError,
        ExportError,
        FeatureError,
        JournalError,
        KbenchError,
        PluginError,
        SourceUnreachableError,
        StoreError,
        SuiteError,
    )
    from kbench.hookspecs import hookimpl
    from kbench.records import (
        BANDWIDTH_FACTORS,
        Block,
        Cell,
        Dataset,
        DatasetSource,
        FeatureMap,
        Figure,
        KernelSpec,
        Learner,
        Limits,
        Metric,
        Protocol,
        Published,
        Ref,
        Result,
        Split,
        Suite,
        Task,
        Tune,
    )

__all__ = [
    "BANDWIDTH_FACTORS",
    "Block",
    "BundleError",
    "Cell",
    "ClusterError",
    "Dataset",
    "DatasetError",
    "DatasetParameterError",
    "DatasetSource",
    "ExportError",
    "FeatureError",
    "FeatureMap",
    "Figure",
    "JournalError",
    "KbenchError",
    "KernelSpec",
    "Learner",
    "Limits",
    "Metric",
    "PluginError",
    "Protocol",
    "Published",
    "Ref",
    "Result",
    "Results",
    "SourceUnreachableError",
    "Split",
    "StoreError",
    "Suite",
    "SuiteError",
    "Task",
    "Tune",
    "__version__",
    "evaluate",
    "hookimpl",
    "load_results",
    "run_suite",
]


_HOMES = ("kbench.errors", "kbench.records", "kbench.hookspecs", "kbench.api.functions")
"""Where the public names of the core are, the lightest first."""


def __getattr__(name: str) -> Any:
    if f"kbench.{name}" in _HOMES:
        return import_module(f"kbench.{name}")
    if name in __all__:
        # by name, for an import statement would make hosts of a cluster compare all of kbench
        for home in map(import_module, _HOMES):
            if hasattr(home, name):
                return getattr(home, name)
    if not name.startswith("_"):
        function = import_module("kbench.registry.features").function(name)
        if function is not None:
            return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *import_module("kbench.registry.features").functions()]


class _Provided:
    """Finds ``kbench.NAME`` where a feature provides a module of that name."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        if not name.startswith("kbench.") or name == "kbench.registry.features":
            return None
        return import_module("kbench.registry.features").module_spec(name)


sys.meta_path.append(_Provided())

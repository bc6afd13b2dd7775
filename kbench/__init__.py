"""Benchmarks of explicit feature maps and kernels, under one fair protocol.

A plugin author imports everything from here::

    from kbench import FeatureMap, hookimpl

    @hookimpl
    def kbench_feature_maps():
        return [FeatureMap("my-map", make="my_plugin._map:MyMap", grid={"gamma": [0.1, 1.0]})]
"""

from kbench.errors import (
    DatasetError,
    KbenchError,
    PluginError,
    SourceUnreachable,
    StoreError,
    SuiteError,
)
from kbench.hookspecs import hookimpl
from kbench.records import (
    Block,
    Cell,
    Dataset,
    DatasetSource,
    FeatureMap,
    Figure,
    KernelSpec,
    Learner,
    Limits,
    Protocol,
    Published,
    Ref,
    Result,
    Search,
    Split,
    Suite,
    Task,
)

__all__ = [
    "Block",
    "Cell",
    "Dataset",
    "DatasetError",
    "DatasetSource",
    "FeatureMap",
    "Figure",
    "KbenchError",
    "KernelSpec",
    "Learner",
    "Limits",
    "PluginError",
    "Protocol",
    "Published",
    "Ref",
    "Result",
    "Search",
    "SourceUnreachable",
    "Split",
    "StoreError",
    "Suite",
    "SuiteError",
    "Task",
    "hookimpl",
]
__version__ = "0.1.0"

"""Functions that import one third-party plugin, in a sandboxed process.

They are called by name with plain JSON values.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from kbench.errors import PluginError
from kbench.execution import recording
from kbench.registry.collecting import collect
from kbench.registry.dependencies import Dependencies
from kbench.registry.described import description_of
from kbench.registry.installed import Plugin, installed
from kbench.registry.registry import build, why_left_out


def describe(payload: Mapping[str, str]) -> dict[str, Any]:
    """Describe the records of a plugin.

    The payload has the names of its ``distribution`` and ``plugin``. The answer has
    ``records``, or the ``reason`` why there are none. What is loaded and read is reported at
    once: the import may end this process.
    """
    plugin = _plugin(payload)
    # Python would take the bytecode of this second for that of an edit in the same second
    sys.dont_write_bytecode = True
    recording.begin(Dependencies(frozenset({plugin.module})))
    recording.audit()
    try:
        return {"reason": "", "records": description_of(collect(plugin))}
    except (Exception, SystemExit) as error:
        return {"reason": why_left_out(error, plugin.distribution), "records": []}


def call(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function of kbench with a callable of a plugin and an argument.

    The payload has the names of the plugin, as for `describe`, ``kind``, ``name`` and
    ``field`` of the callable, ``function`` (``"module:name"``) and ``argument``. The
    answer has the ``value``, or an ``error`` in the plugin.
    """
    registry = build([_plugin(payload)])
    (plugin,) = registry.plugins
    if plugin.reason:
        return {"error": plugin.reason}
    make = getattr(registry.get(payload["kind"], payload["name"]), payload["field"])
    module, _, name = payload["function"].partition(":")
    try:
        return {"value": getattr(importlib.import_module(module), name)(make, payload["argument"])}
    except PluginError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _plugin(names: Mapping[str, str]) -> Plugin:
    wanted = (names["distribution"], names["plugin"])
    return next(each for each in installed() if (each.distribution, each.name) == wanted)

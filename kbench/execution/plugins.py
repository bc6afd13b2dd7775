"""Registries of the installed plugins: described for a command, or imported.

Plugins of kbench itself are always imported. A third-party plugin is imported by processes
that run its code, and only if a sandboxed process has imported it before.
"""

import sys
from collections.abc import Iterable
from dataclasses import replace

from kbench.messages import did_you_mean
from kbench.registry.collecting import Record, collect
from kbench.registry.features import features
from kbench.registry.installed import DISABLED, HOST, Plugin, list_disabled, list_plugins
from kbench.registry.registry import Registry, build, explain_failure


def load_registry() -> Registry:
    """Return the registry of a command: it imports no third-party plugin.

    Callables of third-party plugins are references (`kbench.registry.callables`).
    Unknown names in `DISABLED` are reported on standard error.
    """
    plugins = list_plugins()
    if unknown := set(list_disabled()) - (names := {plugin.name for plugin in plugins}):
        names |= {feature.name for feature in features()}
        for name in sorted(unknown - names):
            hint = did_you_mean(name, names)
            print(f"kbench: {DISABLED}: no plugin is named {name!r}{hint}", file=sys.stderr)
    return build(plugins, _describe)


def import_registry() -> Registry:
    """Return a registry for a process that runs the code of all plugins by itself."""
    return build(importable(list_plugins()))


def importable(plugins: Iterable[Plugin]) -> list[Plugin]:
    """Return plugins, with a reason where a sandboxed process could not import one."""

    def tried(plugin: Plugin) -> Plugin:
        try:
            _describe(plugin)
        except Exception as error:
            return replace(plugin, reason=explain_failure(error, plugin.distribution))
        return plugin

    return [tried(each) if _is_third_party(each) else each for each in plugins]


def add_known_failures(plugins: Iterable[Plugin]) -> list[Plugin]:
    """Return plugins, with a reason where it is known that one cannot be imported.

    Sandboxed processes use it: they import the plugins themselves.
    """

    def known(plugin: Plugin) -> Plugin:
        from kbench.execution.descriptions import read_description

        description = read_description(plugin)
        return replace(plugin, reason=description.reason) if description else plugin

    return [known(each) if _is_third_party(each) else each for each in plugins]


def _describe(plugin: Plugin) -> list[Record]:
    if not _is_third_party(plugin):
        return collect(plugin)
    from kbench.execution import descriptions

    return descriptions.describe_plugin(plugin)


def _is_third_party(plugin: Plugin) -> bool:
    return bool(plugin.entry) and plugin.distribution != HOST and not plugin.reason

"""Callables of plugins that this process has not imported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

from kbench.errors import PluginError
from kbench.registry.identity import Identity


@dataclasses.dataclass(frozen=True)
class Reference:
    """A callable of a third-party plugin: a field of one of its records.

    Only sandboxed processes import such a plugin, so that nothing that its code does
    befalls the command.

    Parameters
    ----------
    plugin, distribution : str
        The plugin's entry point and distribution.
    kind, name, field : str
        The record and its field.
    target : str
        The callable as ``"module:name"``.
    summary : str or None
        First sentence of its docstring; None where that is read from the target's source.
    identity : Identity
        What enters keys for it.
    ask : callable
        ``ask(reference, function, argument)`` returns what `call` returns.
    """

    plugin: str
    distribution: str
    kind: str
    name: str
    field: str
    target: str
    summary: str | None
    identity: Identity
    ask: Callable[[Reference, str, Any], Any] = dataclasses.field(compare=False, repr=False)

    def call(self, function: str, argument: Any = None) -> Any:
        """Return ``function(callable, argument)``, computed in a sandboxed process.

        `function` is ``"module:name"`` of kbench. Argument and result are plain JSON
        values; what comes back is as trustworthy as the plugin.

        Raises
        ------
        PluginError
            The plugin's code failed.
        """
        return self.ask(self, function, argument)

    def __call__(self, *args: Any, **params: Any) -> NoReturn:
        """Refuse to run the plugin's code in this process."""
        raise PluginError(
            f"{self.field} of {self.kind} {self.name!r} runs in sandboxed processes only: "
            f"plugin {self.plugin!r} is not imported here"
        )

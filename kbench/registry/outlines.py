"""Outlines of components: what their signatures and docstrings say."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kbench.errors import PluginError
from kbench.messages import printable
from kbench.records import Make
from kbench.registry.callables import Reference, resolve, target_of

_DOC_CHARACTERS = 100_000
_DEFAULT_CHARACTERS = 1000


@dataclass(frozen=True)
class Parameter:
    """A keyword parameter; `default` is written as in Python, None where there is none."""

    name: str
    default: str | None

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is None

    @property
    def is_number(self) -> bool:
        """Whether its default is a number; a bool is not."""
        try:
            float(self.default or "")
        except ValueError:
            return False
        return True


@dataclass(frozen=True)
class Outline:
    """The defining ``module.name`` of a component, its docstring and its keyword parameters.

    `takes_any` tells whether it has ``**params`` too.
    """

    source: str
    doc: str
    parameters: tuple[Parameter, ...]
    takes_any: bool


def outline(make: Make) -> Outline:
    """Return the outline of a class or function.

    PluginError is raised where it cannot be imported, or has no signature.
    """
    if isinstance(make, Reference):
        return _parsed(make.call(f"{__name__}:outlined"))
    target = resolve(make)
    # a partial's docstring would be that of functools; its signature has the preset values
    source = target.func if isinstance(target, functools.partial) else target
    try:
        parameters = inspect.signature(target).parameters.values()
    except (ValueError, TypeError) as error:
        raise PluginError(f"{target_of(make)} has no signature: {error}") from error
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return Outline(
        source=f"{source.__module__}.{getattr(source, '__qualname__', type(source).__qualname__)}",
        doc=inspect.getdoc(source) or "",
        parameters=tuple(
            Parameter(each.name, None if each.default is each.empty else repr(each.default))
            for each in parameters
            if each.kind in kinds
        ),
        takes_any=any(each.kind is each.VAR_KEYWORD for each in parameters),
    )


def outlined(make: Callable[..., Any], argument: None) -> dict[str, Any]:
    """Return the outline of a callable as JSON, where its plugin is imported."""
    return asdict(outline(make))


def _parsed(given: Any) -> Outline:
    """Parse what a plugin's process answers: names and texts that a terminal can show."""
    try:
        parameters = tuple(
            Parameter(
                printable(str(each["name"])),
                None
                if each["default"] is None
                else printable(str(each["default"]), _DEFAULT_CHARACTERS),
            )
            for each in given["parameters"]
        )
        lines = str(given["doc"])[:_DOC_CHARACTERS].splitlines()
        doc = "\n".join(map(printable, lines))
        return Outline(printable(str(given["source"])), doc, parameters, bool(given["takes_any"]))
    except (KeyError, TypeError) as error:
        raise PluginError(f"a plugin's process gave a wrong answer: {error!r}") from error


def parameters_of(make: Make) -> Mapping[str, Parameter] | None:
    """Return the keyword parameters of a component, or None where it takes any.

    PluginError is raised where it cannot be imported, or has no signature.
    """
    known = outline(make)
    return None if known.takes_any else {each.name: each for each in known.parameters}

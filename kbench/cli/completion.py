"""What a shell may complete: names of suites, components, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbench.registry.collecting import Kind

Complete = Callable[[str], list[str]]


def suites(incomplete: str) -> list[str]:
    """Return the installed suites that begin so."""
    from kbench.execution.plugins import load_registry
    from kbench.planning.raw import runnable

    return _beginning(incomplete, runnable(load_registry()))


def components(kind: Kind) -> Complete:
    """Return the function that completes names of components of a kind."""

    def complete(incomplete: str) -> list[str]:
        from kbench.execution.plugins import load_registry

        return _beginning(incomplete, load_registry().all(kind))

    return complete


def tables(incomplete: str) -> list[str]:
    """Return the tables of a report that begin so."""
    from kbench.report.tables import TABLES

    return _beginning(incomplete, ["list", *TABLES])


def pictures(incomplete: str) -> list[str]:
    """Return the built-in pictures and those of plugins that begin so."""
    from kbench.execution.plugins import load_registry
    from kbench.report.figures import KINDS

    return _beginning(incomplete, [*KINDS, *load_registry().all("figure")])


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]

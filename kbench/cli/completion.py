"""What a shell may complete: names of suites, components and metrics.

If nothing fits, the shells complete names of files.
"""

import contextlib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

from kbench.errors import KbenchError

if TYPE_CHECKING:
    from kbench.registry.collecting import Kind
    from kbench.registry.registry import Registry

Complete = Callable[[str], list[str]]

# Names that shells take for words: zsh evaluates what it is offered, bash splits it at spaces.
_PLAIN = re.compile(r"[\w.@%+=,/-]+")


def suites(incomplete: str) -> list[str]:
    """Return the installed suites that begin so."""
    from kbench.planning.component_refs import runnable

    return _beginning(incomplete, runnable(_load_registry()))


def complete_stored_suites(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the suites that begin so and have runs in the store, else those installed."""
    from kbench.registry.features import working

    names = {
        name
        for feature in working()
        if (target := feature.metadata.completions.get("stored"))
        for name in feature.load(target)(ctx.params.get("store"))
    }
    return _beginning(incomplete, sorted(names)) or suites(incomplete)


def datasets(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the datasets of the suite on the line that begin so, or those installed."""
    from kbench.planning.suite_file import find, read

    registry = _load_registry()
    names = set(registry.all("dataset"))
    # the words of a line whose last option has no value yet are not parsed
    name = ctx.params.get("suite") or next(iter(ctx.args), "")
    with contextlib.suppress(KbenchError):
        names = {ref.label for ref in read(*find(name, registry), registry).datasets}
    return _beginning(incomplete, sorted(names))


def components(kind: "Kind") -> Complete:
    """Return the function that completes names of components of a kind."""
    return lambda incomplete: _beginning(incomplete, _load_registry().all(kind))


def metrics(incomplete: str) -> list[str]:
    """Return the metrics that begin so."""
    from kbench.results.rows import METRICS

    return _beginning(incomplete, [*METRICS, *sorted(_load_registry().all("metric"))])


def complete_from(names: Iterable[str]) -> Complete:
    """Return the function that completes names known at this place."""
    return lambda incomplete: _beginning(incomplete, names)


def _load_registry() -> "Registry":
    from kbench.execution.plugins import load_registry

    return load_registry()


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]

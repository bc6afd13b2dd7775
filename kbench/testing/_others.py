"""Checks of plugins, suites and figures."""

from __future__ import annotations

from dataclasses import replace

from kbench.errors import PluginError, SuiteError
from kbench.planning.cells import cells
from kbench.planning.raw import has_rules, parsed
from kbench.planning.sized import Size, read_for
from kbench.planning.suite_file import read
from kbench.records import Cell, Ref
from kbench.registry.registry import resolve
from kbench.testing._component import Component


def check_loads(component: Component) -> None:
    """The plugin loads, and its records keep the rules of the hooks."""
    if component.record:
        raise component.fail(f"is left out: {component.record}")


def check_suite(component: Component) -> None:
    """The suite file has no mistake and plans at least one cell."""
    try:
        planned = _planned(component)
    except SuiteError as error:
        raise component.fail(str(error)) from error
    if not planned:
        raise component.fail("plans no cell; give it datasets, feature_maps and learners")


def _planned(component: Component) -> list[Cell]:
    """Return all cells of a suite; where it has rules on size, those that do not hold too."""
    text = component.record.read_text(encoding="utf-8")
    name, registry = component.name, component.registry
    if not has_rules(parsed(text, name)):
        return cells(read(text, name, registry), registry)
    size = Size(rows=1000, features=10, sparse=False)
    sized = read_for(Ref("data"), size, text, name, registry)
    every = replace(sized.suite, blocks=(*sized.suite.blocks, *sized.left_out))
    return cells(every, registry)


def check_draw(component: Component) -> None:
    """What draws the figure exists."""
    try:
        resolve(component.record.draw)
    except PluginError as error:
        raise component.fail(f"cannot be drawn: {error}") from error

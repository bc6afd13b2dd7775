"""Checks of plugins, suites and figures."""

from __future__ import annotations

from kbench.errors import PluginError, SuiteError
from kbench.planning.cells import cells
from kbench.planning.suite_file import read
from kbench.registry.registry import resolve
from kbench.testing._component import Component


def check_loads(component: Component) -> None:
    """The plugin loads, and its records keep the rules of the hooks."""
    if component.record:
        raise component.fail(f"is left out: {component.record}")


def check_suite(component: Component) -> None:
    """The suite file has no mistake and plans at least one cell."""
    text = component.record.read_text(encoding="utf-8")
    try:
        planned = cells(read(text, component.name, component.registry), component.registry)
    except SuiteError as error:
        raise component.fail(str(error)) from error
    if not planned:
        raise component.fail("plans no cell; give it datasets, feature_maps and learners")


def check_draw(component: Component) -> None:
    """What draws the figure exists."""
    try:
        resolve(component.record.draw)
    except PluginError as error:
        raise component.fail(f"cannot be drawn: {error}") from error

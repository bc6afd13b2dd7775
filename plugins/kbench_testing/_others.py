"""Checks of plugins, suites and figures."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.errors import PluginError, SuiteError
from kbench.features import Verbs, cells, has_rules, parse_toml, read, resolve
from kbench.records import Cell
from kbench_testing._subject import Subject


def check_loads(subject: Subject) -> None:
    """The plugin loads, and its records keep the rules of the hooks."""
    if subject.record:
        raise subject.fail(f"is left out: {subject.record}")


def check_suite(subject: Subject) -> None:
    """The suite file has no error and plans at least one cell."""
    with subject.failing(kind=SuiteError):
        planned = _plan(subject)
    if not planned:
        raise subject.fail("plans no cell; give it datasets, feature_maps and learners")


def _plan(subject: Subject) -> Sequence[Cell]:
    """Return all cells of a suite, also those of blocks whose rules on size do not hold."""
    source = subject.record.read_text(encoding="utf-8")
    name, registry = subject.name, subject.registry
    if not has_rules(parse_toml(source, name)):
        return cells(read(source, name, registry), registry)
    sized: Sequence[Cell] | None = Verbs().one(
        "kbench_sized_cells", text=source, name=name, registry=registry
    )
    if sized is None:
        raise subject.skip("has rules on the size of data, which no installed feature supports")
    return sized


def check_draw(subject: Subject) -> None:
    """The function that draws the figure exists."""
    with subject.failing("cannot be drawn: {error}", PluginError):
        resolve(subject.record.draw)

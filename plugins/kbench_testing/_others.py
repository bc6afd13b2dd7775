"""Checks of plugins, suites and figures."""

from __future__ import annotations

from dataclasses import replace

from kbench.errors import PluginError, SuiteError
from kbench.features import Size, cells, has_rules, parsed, read, read_for, resolve
from kbench.records import Cell, Ref
from kbench_testing._subject import Subject


def check_loads(subject: Subject) -> None:
    """The plugin loads, and its records keep the rules of the hooks."""
    if subject.record:
        raise subject.fail(f"is left out: {subject.record}")


def check_suite(subject: Subject) -> None:
    """The suite file has no mistake and plans at least one cell."""
    try:
        planned = _planned(subject)
    except SuiteError as error:
        raise subject.fail(str(error)) from error
    if not planned:
        raise subject.fail("plans no cell; give it datasets, feature_maps and learners")


def _planned(subject: Subject) -> list[Cell]:
    """Return all cells of a suite, also those of blocks whose rules on size do not hold."""
    text = subject.record.read_text(encoding="utf-8")
    name, registry = subject.name, subject.registry
    if not has_rules(parsed(text, name)):
        return cells(read(text, name, registry), registry)
    size = Size(rows=1000, features=10, sparse=False)
    sized = read_for(Ref("data"), size, text, name, registry)
    every = replace(sized.suite, blocks=(*sized.suite.blocks, *sized.left_out))
    return cells(every, registry)


def check_draw(subject: Subject) -> None:
    """The function that draws the figure exists."""
    try:
        resolve(subject.record.draw)
    except PluginError as error:
        raise subject.fail(f"cannot be drawn: {error}") from error

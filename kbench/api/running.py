"""Runs of a suite with their progress shown: the one path of all commands and functions."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.api import progress
from kbench.api.inputs import notices
from kbench.records import Suite
from kbench.registry.registry import Registry
from kbench.runner import Options, Report, Runner


def run_shown(
    suite: Suite,
    registry: Registry,
    options: Options,
    *,
    as_json: bool = False,
    quiet: bool = False,
    dry_run: bool = False,
    further_notices: Sequence[str] = (),
) -> Report:
    """Run a suite, or only plan it (`dry_run`), and show notices and progress.

    Raises
    ------
    KbenchError
        The suite or the cluster is wrong; nothing has run.
    """
    options = options.of_suite(suite)
    display = progress.choose(as_json, quiet, options.jobs)
    for text in (*notices(registry, options.store), *further_notices):
        display.notice(text)
    runner = Runner(suite, registry, options, display)
    if dry_run:
        return runner.plan()
    with display:
        return runner.run()

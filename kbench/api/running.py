"""Runs of a suite with their progress shown: the one path of all commands and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbench.api import progress
from kbench.api.inputs import notices
from kbench.planning.schedule import Schedule
from kbench.records import Result, Suite
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
    schedule: Schedule | None = None,
    foreign: Mapping[str, Mapping[int, Result]] | None = None,
) -> Report:
    """Run a suite, or only plan it (`dry_run`), and show notices and progress.

    A `schedule` decides which tasks the time of the options is for. Cells of which `foreign`
    has all splits, by key, are not computed.

    Raises
    ------
    KbenchError
        The suite or the cluster is wrong; nothing has run.
    """
    options = options.of_suite(suite)
    display = progress.choose(as_json, quiet, options.jobs)
    for text in (*notices(registry, options.store), *further_notices):
        display.notice(text)
    runner = Runner(suite, registry, options, display, schedule=schedule, foreign=foreign)
    with display:
        return runner.plan() if dry_run else runner.run()

"""Runs of a suite with their progress shown: the one path of all commands and functions."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.api import progress
from kbench.api.inputs import notices
from kbench.records import Suite
from kbench.registry.registry import Registry
from kbench.runner import Options, Report, Run, execute, preview


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
        The suite, an option or the cluster is wrong; nothing has run.
    """
    shown = notices(registry, options)
    run = Run(suite, registry, options)
    run.watch = display = progress.choose(as_json, quiet, run.options.jobs)
    for text in (*shown, *further_notices):
        display.notice(text)
    with display:
        return preview(run) if dry_run else execute(run)

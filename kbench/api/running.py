"""Runs of a suite with their progress shown: the one path of all commands and functions."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.api import progress
from kbench.api.inputs import notices
from kbench.records import Suite
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
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
    """Run a suite, or only plan it (`dry_run`), and show notices and progress."""
    early: list[str] = []
    verbs = Verbs(early.append)
    early += notices(registry, options, verbs)
    run = Run(suite, registry, options, verbs=verbs)
    run.watch = display = progress.choose(as_json, quiet, run.options.jobs)
    verbs.notice = display.notice
    for text in (*early, *further_notices):
        display.notice(text)
    with display:
        return preview(run) if dry_run else execute(run)

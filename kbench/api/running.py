"""A suite is run with its progress shown: the one path of all commands and functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kbench.api import progress
from kbench.api.inputs import notices, options_of
from kbench.records import Suite
from kbench.registry.registry import Registry
from kbench.runner import Report, plan, run


def run_shown(
    suite: Suite,
    registry: Registry,
    *,
    store: str | None = None,
    jobs: int | None = None,
    as_json: bool = False,
    quiet: bool = False,
    dry_run: bool = False,
    told: Sequence[str] = (),
    **options: Any,
) -> Report:
    """Run a suite and show what happens.

    Parameters
    ----------
    suite : Suite
    registry : Registry
    store : str, optional
        MLflow store; ``MLFLOW_TRACKING_URI`` or ``mlflow.db`` here by default.
    jobs : int, optional
        Tasks at a time; physical cores by default, or what a cluster has.
    as_json : bool, default False
        Print one JSON line per event.
    quiet : bool, default False
        Show notices only.
    dry_run : bool, default False
        Only say what would be computed.
    told : sequence of str, optional
        Further notices, shown first.
    **options
        Further fields of `kbench.runner.Options`.

    Raises
    ------
    KbenchError
        The suite, an option or the cluster is wrong; nothing has run.
    """
    how = options_of(store, jobs, **options)
    watcher = progress.choose(as_json=as_json, quiet=quiet, jobs=how.jobs, measure=suite.measure)
    for text in (*notices(registry, store), *told):
        watcher.notice(text)
    if dry_run:
        return plan(suite, registry, how, watcher)
    with watcher:
        return run(suite, registry, how, watcher)

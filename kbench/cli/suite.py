"""`kbench suite`: reads, filters and runs a suite, and prints its results."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.cli import completion
from kbench.cli.echo import echo
from kbench.cli.options import (
    Data,
    Datasets,
    FeatureMaps,
    Fresh,
    JsonEvents,
    Learners,
    Offline,
    Quiet,
    Store,
)
from kbench.errors import SuiteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbench.runner import Report
    from kbench.sharing.form import Bundle


class Timing(StrEnum):
    """Whether other kbench runs may compute on this machine meanwhile."""

    shared = "shared"
    exclusive = "exclusive"


def suite(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of an installed suite, or path of a suite file.",
            autocompletion=completion.suites,
        ),
    ] = None,
    list_suites: Annotated[bool, typer.Option("--list", help="List the installed suites.")] = False,
    dataset: Datasets = None,
    feature_map: FeatureMaps = None,
    learner: Learners = None,
    splits: Annotated[
        int | None, typer.Option(min=1, help="Number of splits, instead of the suite's.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Wall-clock limit of one task.")
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option(metavar="MB", help="Memory limit of one task.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Tasks at a time; default: physical cores, or the threads of a cluster.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Compute on the Dask cluster with this scheduler, such as "
            "tcp://host:8786; needs the extra `dask`: kbench-core[dask].",
        ),
    ] = None,
    data: Data = None,
    store: Store = None,
    fresh: Fresh = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Compute failed tasks again.")
    ] = False,
    offline: Offline = False,
    timing: Annotated[
        Timing,
        typer.Option(
            help="exclusive: one task at a time, and none of your other kbench processes computes "
            "on this machine."
        ),
    ] = Timing.shared,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show the plan, with predicted memory and times, and run no task."
        ),
    ] = False,
    reuse: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Take the accuracies of cells with equal keys from this bundle of somebody else, "
            "or from a kept one by its id; repeatable.",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("--all", help="Print all cells, not only the best five of each dataset."),
    ] = False,
    as_json: JsonEvents = False,
    quiet: Quiet = False,
) -> None:
    """Run a suite: measure every cell and log it to MLflow.

    A cell is a dataset with a feature map and a learner. Results that are known already are
    not computed again.
    """
    from kbench.execution.plugins import load_registry
    from kbench.planning.raw import runnable

    registry = load_registry()
    if list_suites:
        echo("\n".join(runnable(registry)))
        return
    if name is None:
        raise SuiteError(f"SUITE is missing; there are: {', '.join(runnable(registry))}")
    from kbench.api.inputs import chosen_suite
    from kbench.api.running import run_shown
    from kbench.cli import show
    from kbench.cli.focus import print_beside
    from kbench.cli.plan import print_plan
    from kbench.machine import cluster_id, machine_id
    from kbench.runner import Options
    from kbench.sharing.reuse import reusable

    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    chosen = chosen_suite(
        name,
        registry,
        dataset or [],
        feature_map or [],
        learner or [],
        splits=splits,
        time_s=time_limit,
        memory_mb=memory_limit,
        data=data,
    )
    if fresh and reuse:
        raise SuiteError("--fresh computes everything again; leave out --reuse")
    bundles = _bundles(reuse or ())
    foreign = reusable(bundles) if bundles else None
    options = Options(store, jobs, scheduler or "", fresh, retry_failed, offline, timing.value)
    report = run_shown(
        chosen, registry, options, as_json=as_json, quiet=quiet, dry_run=dry_run, foreign=foreign
    )
    if dry_run:
        print_plan(report, as_json=as_json, every=every)
        return
    filters = {"--dataset": dataset, "--feature-map": feature_map, "--learner": learner}
    others = {
        "--splits": splits,
        "--time-limit": time_limit,
        "--memory-limit": memory_limit,
        "--scheduler": scheduler,
        "--data": data,
        "--store": store,
    }
    given = [(option, value) for option, values in filters.items() for value in values or ()]
    limits = [f"{word}" for pair in others.items() if pair[1] is not None for word in pair]
    again = [name, *(word for pair in given for word in pair), *limits]
    whole_again = [name, *(w for value in dataset or () for w in ("--dataset", value)), *limits]
    of_methods = bool(feature_map or learner)

    def beside() -> None:
        if report.foreign:
            show.print_origins(report)
        elif bundles and not of_methods:
            echo(
                "nothing was reused: no cell that lacks results here has the key of one in a bundle"
            )
        if of_methods and not report.interrupted:
            whole = chosen_suite(name, registry, dataset or [], data=data)
            place = cluster_id() if scheduler else machine_id()
            print_beside(report, whole, registry, place, ["kbench", "suite", *whole_again], foreign)

    show.print_report(
        report,
        again,
        beside,
        as_json=as_json,
        filtered=bool(given),
        ranked=not of_methods,
        with_store=bool(store),
        every=every,
    )
    raise typer.Exit(_exit_code(report))


def _bundles(names: Sequence[str]) -> list[Bundle]:
    """Read the bundles to reuse; name the versions that keep one from being reused."""
    if not names:
        return []
    from kbench.sharing.kept import SHORT, find
    from kbench.sharing.reuse import same_environment
    from kbench.sharing.verifying import other_versions

    bundles = [find(name) for name in names]
    for bundle in bundles:
        if reason := other_versions(bundle):
            name = f"bundle {bundle.id[:SHORT]}"
            echo(f"kbench: {name}: {reason}; cells with other keys are not reused", err=True)
            echo(f"kbench: the same versions: {same_environment(bundle)}", err=True)
    return bundles


def _exit_code(report: Report) -> int:
    if report.interrupted:
        return 130
    sys.stdout.flush()
    undelivered = report.delivered is not None and bool(report.delivered.problem)
    return 1 if report.failed or undelivered else 0

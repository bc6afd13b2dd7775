"""`kbench suite`: reads, filters and runs a suite, and prints its results."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.cli import completion
from kbench.cli.command_options import (
    Data,
    Datasets,
    FeatureMaps,
    Fresh,
    JsonEvents,
    Learners,
    Offline,
    Quiet,
    as_words,
    given,
)
from kbench.cli.echo import echo, with_flags
from kbench.errors import SuiteError

if TYPE_CHECKING:
    from kbench.runner import Report


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
    data: Data = None,
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
    from kbench.planning.lines import runnable

    registry = load_registry()
    if list_suites:
        echo("\n".join(runnable(registry)))
        return
    if name is None:
        raise SuiteError(f"SUITE is missing; there are: {', '.join(runnable(registry))}")
    from kbench.api.inputs import chosen_suite
    from kbench.api.running import run_shown
    from kbench.cli import show
    from kbench.cli.one_method import print_beside
    from kbench.cli.plan import print_plan
    from kbench.runner import Options

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
    options = Options(jobs, fresh, retry_failed, offline, timing.value, given=given())
    report = run_shown(
        chosen,
        registry,
        options,
        as_json=as_json,
        quiet=quiet,
        dry_run=dry_run,
        words=with_flags,
    )
    if dry_run:
        print_plan(report, as_json=as_json, every=every)
        return
    filters = {"--dataset": dataset, "--feature-map": feature_map, "--learner": learner}
    others = {
        "--splits": splits,
        "--time-limit": time_limit,
        "--memory-limit": memory_limit,
        "--data": data,
    }
    named = [(option, value) for option, values in filters.items() for value in values or ()]
    limits = [f"{word}" for pair in others.items() if pair[1] is not None for word in pair]
    limits += as_words()
    again = [name, *(word for pair in named for word in pair), *limits]
    whole_again = [name, *(w for value in dataset or () for w in ("--dataset", value)), *limits]
    of_methods = bool(feature_map or learner)

    def beside() -> None:
        if report.foreign:
            show.print_origins(report)
        if of_methods and not report.interrupted:
            whole = chosen_suite(name, registry, dataset or [], data=data)
            print_beside(report, whole, registry, options, ["kbench", "suite", *whole_again])

    show.print_report(
        report,
        again,
        beside,
        as_json=as_json,
        filtered=bool(named),
        ranked=not of_methods,
        every=every,
    )
    raise typer.Exit(_exit_code(report))


def _exit_code(report: Report) -> int:
    if report.interrupted:
        return 130
    sys.stdout.flush()
    return 1 if report.failed or report.undelivered else 0

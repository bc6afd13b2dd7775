"""`kbench suite`: reads, filters and runs a suite, and prints its results."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from kbench.cli import completion
from kbench.cli.command_options import JsonEvents, Quiet, as_words, given, options_from
from kbench.cli.echo import echo, with_flags
from kbench.errors import SuiteError


@options_from("run_suite")
def suite(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of an installed suite, or path of a suite file.",
            autocompletion=completion.suites,
        ),
    ] = None,
    list_suites: Annotated[bool, typer.Option("--list", help="List the installed suites.")] = False,
    dataset: list[str] | None = None,
    feature_map: list[str] | None = None,
    learner: list[str] | None = None,
    splits: int | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    jobs: int | None = None,
    data: str | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    offline: bool = False,
    timing: Literal["shared", "exclusive"] = "shared",
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
    from kbench.planning.component_refs import runnable

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
        memory_mib=memory_limit,
        data=data,
    )
    options = Options(jobs, fresh, retry_failed, offline, timing, given=given())
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
    limits = {"splits": splits, "time_limit": time_limit, "memory_limit": memory_limit}
    others = {**limits, "data": data, **given()}
    filters = {"dataset": dataset, "feature_map": feature_map, "learner": learner}
    again = [name, *as_words({**filters, **others})]
    whole_again = ["kbench", "suite", name, *as_words({"dataset": dataset, **others})]
    of_methods = bool(feature_map or learner)

    def beside() -> None:
        if report.foreign:
            show.print_origins(report)
        if of_methods and not report.interrupted:
            whole = chosen_suite(name, registry, dataset or [], data=data)
            print_beside(report, whole, registry, options, whole_again)

    show.print_report(
        report,
        again,
        beside,
        as_json=as_json,
        filtered=any(filters.values()),
        ranked=not of_methods,
        every=every,
    )
    if report.interrupted:
        raise typer.Exit(130)
    sys.stdout.flush()
    raise typer.Exit(1 if report.failed or report.undelivered else 0)

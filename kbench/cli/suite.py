"""`kbench suite`: reads, filters and runs a suite, and prints its results."""

import os
import sys
from typing import Annotated, Literal

import typer

from kbench.cli.command_options import JsonEvents, Quiet, format_options, get_given, options_from
from kbench.cli.echo import put_flags


@options_from("run_suite")
def suite(
    suite: str,
    dataset: list[str] | None = None,
    feature_map: list[str] | None = None,
    learner: list[str] | None = None,
    add_datasets: list[str] | None = None,
    add_feature_maps: list[str] | None = None,
    add_learners: list[str] | None = None,
    n_splits: int | None = None,
    task_timeout: float | None = None,
    memory_limit: float | None = None,
    device: Literal["cpu", "torch-cpu", "cuda"] | None = None,
    jobs: int | None = None,
    data: str | None = None,
    recompute: bool = False,
    retry_failed: bool = False,
    offline: bool = False,
    timing: Literal["shared", "exclusive"] = "shared",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would run, with predicted memory and times; run nothing."
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Print all cells, not only the best five of each dataset.")
    ] = False,
    as_json: JsonEvents = False,
    quiet: Quiet = False,
) -> None:
    """Run a suite: evaluate every cell and log it to MLflow.

    A cell is a dataset with a feature map and a learner. Cached results are not computed again.
    """
    from kbench.api.inputs import select_suite
    from kbench.api.running import run_shown
    from kbench.cli import show
    from kbench.cli.one_method import print_beside
    from kbench.cli.plan import print_plan
    from kbench.execution.plugins import load_registry
    from kbench.runner import Options

    registry = load_registry()
    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    chosen = select_suite(
        suite,
        registry,
        *(dataset, feature_map, learner),
        add=(add_datasets, add_feature_maps, add_learners),
        n_splits=n_splits,
        time_s=task_timeout,
        memory_mib=memory_limit,
        data=data,
        device=device,
    )
    options = Options(jobs, recompute, retry_failed, offline, timing, given=get_given())
    report = run_shown(
        chosen, registry, options, as_json=as_json, quiet=quiet, dry_run=dry_run, words=put_flags
    )
    if dry_run:
        print_plan(report, as_json=as_json, every=every)
        return
    limits = {"n_splits": n_splits, "task_timeout": task_timeout, "memory_limit": memory_limit}
    further = {"add_datasets": add_datasets, **limits, "data": data, "device": device}
    further |= get_given()
    filters = {"dataset": dataset, "feature_map": feature_map, "learner": learner}
    added = {"add_feature_maps": add_feature_maps, "add_learners": add_learners}
    again = [suite, *format_options({**filters, **added, **further})]
    whole_again = ["kbench", "suite", suite, *format_options({"dataset": dataset, **further})]
    of_methods = bool(feature_map or learner)
    new = [*(add_feature_maps or []), *(add_learners or [])]

    def beside() -> None:
        if report.foreign:
            show.print_origins(report)
        if (of_methods or new) and not report.interrupted:
            whole = select_suite(
                suite, registry, dataset, add=(add_datasets, (), ()), data=data, device=device
            )
            print_beside(report, whole, registry, options, whole_again, new)

    show.print_report(
        report,
        again,
        beside,
        as_json=as_json,
        filtered=any(filters.values()),
        ranked=not of_methods,
        every=every,
        new=new,
    )
    if report.interrupted:
        raise typer.Exit(130)
    sys.stdout.flush()
    raise typer.Exit(1 if report.failed or report.undelivered else 0)

"""`kbench results`: the results of an experiment, in one of several forms."""

from functools import partial
from typing import Annotated

import typer

from kbench.cli import command_options
from kbench.cli.command_options import Datasets, Form, Format, Highlight, get_given, options_from
from kbench.cli.echo import echo, put_flags
from kbench.errors import StoreError, SuiteError
from kbench.messages import plural, printable_json


@options_from("load_results")
def results(
    suite: Annotated[
        str, command_options.stored_suite(help="Name of a suite, or of its MLflow experiment.")
    ],
    form: Format = Form.table,
    machine: str | None = None,
    outdated: bool = False,
    highlight: Highlight = None,
    leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Print one row per method.")
    ] = False,
    columns: Annotated[
        str,
        typer.Option(
            "--columns", metavar="A,B,...", help="Columns of --leaderboard, in this order."
        ),
    ] = "",
    families: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="NAME",
            help="Show only methods of this family in --leaderboard; repeatable.",
        ),
    ] = None,
    dataset: Datasets = None,
    max_fit_time: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Show only methods that fit within this many seconds, best first per dataset.",
        ),
    ] = None,
) -> None:
    """Print the results of a suite, read back from MLflow: one row per cell.

    With --leaderboard, one row per method: its rank and verdict, means over the
    datasets that all methods finished, times, size, and the number of candidates it searched.
    """
    from kbench.api import inputs
    from kbench.cli import one_method, printing, show
    from kbench.execution.plugins import load_registry
    from kbench.report import paper, tables, write
    from kbench.results.rows import columns as columns_of
    from kbench.results.rows import find_row_task
    from kbench.results.stored import Query

    if (columns or families) and not leaderboard:
        raise SuiteError(f"--{'columns' if columns else 'family'} is for --leaderboard")
    view = "--leaderboard" if leaderboard else "--highlight"
    if machine == "all" and (leaderboard or highlight):
        raise SuiteError(f"{view} compares the runs of one machine; name it with --machine")
    notice = partial(echo, err=True)
    try:
        stored = inputs.read_results(
            Query(suite, get_given(), machine, outdated=outdated, notice=notice)
        )
    except (StoreError, SuiteError):
        if (
            leaderboard
            or highlight
            or not one_method.print_imported_alone(suite, form, dataset or [], notice)
        ):
            raise
        return
    rows, metric = stored.rows, stored.metric
    read_others = partial(inputs.read_imported, stored.name, metric, notice)
    if dataset or max_fit_time is not None:
        if leaderboard or highlight:
            raise SuiteError(
                f"--{'dataset' if dataset else 'max-fit-time'} selects cells; leave out {view}"
            )
        rows = one_method.filter_rows(rows, dataset or [], max_fit_time, metric)
    chosen = paper.select_methods(rows, highlight, "highlight") if highlight else ()
    if leaderboard:
        one_method.print_leaderboard(
            rows, metric, form, paper.split_names(columns), families or (), chosen
        )
    elif highlight:
        if form is not Form.table:
            raise SuiteError("--highlight prints no table; leave out --format")
        one_method.print_focus(printing.console(), rows, chosen, metric)
    elif form is Form.table:
        registry = load_registry()
        show.print_rows(rows, columns_of(metric, find_row_task(rows)))
        show.print_published(rows, inputs.read_suite_or_empty(suite, registry).published, metric)
        fewer = sum(row.n_splits_done < row.n_splits for row in rows)
        echo(
            f"\n{plural(len(rows), 'cell')}"
            + (f", {fewer} of them over fewer splits than planned" if fewer else "")
        )
        for row in rows:
            if row.status == "skipped" and row.error:
                name = f"{row.feature_map} + {row.learner} on {row.dataset}"
                echo(put_flags(f"skipped: {name}: {row.error}"))
        beside = one_method.match_imported(rows, read_others(), dataset or [], metric)
        show.print_imported(beside, metric)
        if machine != "all" and (plugin_methods := inputs.find_plugin_methods(rows, registry)):
            one_method.print_focus(printing.console(), rows, plugin_methods, metric)
    elif form is Form.json:
        # with all fields, so that `kbench compare` can read it back
        full = [row.to_json(metric) for row in rows]
        beside = one_method.match_imported(rows, read_others(), dataset or [], metric)
        echo(printable_json([*full, *(each.to_json(metric) for each in beside)], indent=1))
    else:
        echo(write(tables.cells(rows, metric), form.value))

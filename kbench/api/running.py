"""Runs of a suite with their progress shown, next to cached results."""

from collections.abc import Callable, Sequence

from kbench.api import progress
from kbench.api.inputs import collect_notices
from kbench.planning.planned import PlannedCell, set_aside
from kbench.records import Suite
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
from kbench.results.row_builders import make_full_row
from kbench.results.rows import Row, complete_metric
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
    words: Callable[[str], str] = str,
) -> Report:
    """Run or only plan a suite, and show progress; `words` writes options that a notice names."""
    early: list[str] = []
    verbs = Verbs(early.append)
    early += collect_notices(registry, options, verbs)
    run = Run(suite, registry, options, verbs=verbs)
    run.watch = display = progress.choose(as_json, quiet, run.options.jobs)
    display.words = words
    verbs.notice = display.notice
    for notice in (*early, *further_notices):
        display.notice(notice)
    with display:
        return preview(run) if dry_run else execute(run)


def collect_rows(
    whole: Suite, report: Report, registry: Registry, options: Options
) -> tuple[list[Row], list[Row], int]:
    """Return rows of a run, of the suite's other methods, and how many of these are unknown.

    The others are cells of its datasets whose results hold for today's code, data and protocol, or
    that features know. Nothing is computed. The machine of rows from elsewhere names their author.
    """
    run = Run(whole, registry, options)
    ran = (*report.cells, *report.foreign)
    run.plan.datasets |= {
        cell.cell.dataset.label: cell.dataset for cell in ran if cell.dataset is not None
    }
    ours = {cell.cell.labels for cell in ran}
    run.plan.settle_metric()
    planned = [
        cell
        for cell in run.plan.cells()[0]
        if cell.cell.dataset.label in run.plan.datasets and cell.cell.labels not in ours
    ]
    metric = complete_metric(report.suite.compared)
    of_here, imported = set_aside(planned, run.results_from_elsewhere(planned))
    stored = [cell for cell in of_here if cell.is_finished and cell.done] + imported
    elsewhere = {id(cell) for cell in (*report.foreign, *imported)}

    def row(cell: PlannedCell) -> Row:
        machine = cell.done[0].machine if id(cell) in elsewhere else run.place
        return make_full_row(cell, machine, metric)

    return [row(cell) for cell in ran], [row(cell) for cell in stored], len(planned) - len(stored)

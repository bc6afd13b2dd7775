"""`kbench run`: compares methods on the user's own data and recommends one."""

from __future__ import annotations

import math
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench.cli.echo import echo
from kbench.cli.options import Delimiter, Fresh, Ignore, JsonEvents, Nominal, Quiet, Store, Target
from kbench.errors import SuiteError
from kbench.messages import counted

if TYPE_CHECKING:
    from kbench.api.own_data import Look
    from kbench.records import DatasetFacts
    from kbench.registry.registry import Registry
    from kbench.report.page import Lead
    from kbench.report.recommendation import Advice
    from kbench.results.rows import Row
    from kbench.runner import Report

COLUMNS = (
    "feature_map",
    "learner",
    "status",
    "accuracy",
    "accuracy_sd",
    "fit_time_s",
    "predict_time_s",
    "n_components",
)


def run(
    file: Annotated[
        str, typer.Argument(help="A .csv, .tsv, .parquet, .arff, .svmlight or .libsvm file.")
    ],
    target: Target = None,
    feature_map: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Try this feature map; repeatable.")
    ] = None,
    learner: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Try this learner; repeatable.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Limit of the whole comparison; methods that do not fit into it are reported "
            "as skipped.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write a report as HTML too."),
    ] = None,
    ignore: Ignore = None,
    nominal: Nominal = None,
    delimiter: Delimiter = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Tasks at a time; default: physical cores."),
    ] = None,
    store: Store = None,
    fresh: Fresh = False,
    as_json: JsonEvents = False,
    quiet: Quiet = False,
) -> None:
    """Compare feature maps and learners on your own data, and recommend one.

    Columns of text become indicator columns. Missing values are imputed inside each split.
    Results are journalled and logged to MLflow under the file's name,
    and the same command continues where it stopped.
    """
    from kbench.api.inputs import check_limit
    from kbench.api.own_data import prepared, suite_for
    from kbench.api.running import run_shown
    from kbench.execution.plugins import load_registry
    from kbench.report.page import Lead
    from kbench.report.recommendation import advise
    from kbench.runner import Options

    started = time.monotonic()
    if time_limit is not None:
        check_limit(time_limit, "--time-limit")
    if output is not None and not output.absolute().parent.is_dir():
        raise SuiteError(f"-o {output}: there is no folder {output.absolute().parent}")
    registry = load_registry()
    own = {"target": target, "ignore": ignore, "nominal": nominal, "delimiter": delimiter}
    ref, looked, known = prepared(file, registry, **own)
    suite = suite_for(ref, known, registry, feature_map or (), learner or (), time_limit)
    left = math.inf if time_limit is None else time_limit - (time.monotonic() - started)
    left_out = looked.notices() if looked else []
    report = run_shown(
        suite,
        registry,
        Options(store, jobs, fresh=fresh, total_s=left),
        as_json=as_json,
        quiet=quiet,
        further_notices=left_out,
    )
    rows = _rows(report, time_limit)
    refs = [planned.cell.learner for planned in report.cells]
    learners = {ref.label: registry.get("learner", ref.name) for ref in refs}
    advice = advise(
        rows,
        [label for label, learner in learners.items() if learner.kernelized],
        [label for label, learner in learners.items() if learner.baseline],
    )
    given = own | {"ignore": ref.params.get("ignore", ())}
    export = _export(file, given, report, advice) if advice else ""
    data = _data(known, looked)
    answer = _answer(rows, advice, time_limit)
    if as_json:
        _print_json(report, rows, advice, export)
    else:
        _print((ref.label, data), report, rows, advice, Lead(answer, (), export))
    if output is not None:
        _write_page(output, report, rows, registry, Lead(answer, (data, *left_out), export))
        if not as_json:
            echo(f"report:  {output}")
    if report.interrupted:
        raise typer.Exit(130)
    failed = any(row.status not in ("ok", "skipped") for row in rows)
    raise typer.Exit(1 if failed or advice is None else 0)


def _data(known: DatasetFacts, looked: Look | None) -> str:
    """Describe the data: rows, columns before and after encoding, classes, missing values."""
    n, width = known.n_samples, known.n_features
    columns = counted(width, "column")
    if looked is not None and looked.n_columns != width:
        columns = f"{counted(looked.n_columns, 'column')}, {width:,} after encoding"
    parts = [counted(n, "row"), columns, counted(known.n_classes, "class", "classes")]
    if known.n_missing:
        parts.append(counted(known.n_missing, "missing value"))
    if looked is not None and looked.n_unlabelled:
        parts.append(f"{counted(looked.n_unlabelled, 'row')} without a label left out")
    return ", ".join(parts)


def _answer(
    rows: Sequence[Row], advice: Advice | None, time_limit: float | None
) -> tuple[str, ...]:
    """Return the answer of a run, in sentences."""
    sentences = advice.sentences if advice else ("No method was measured in full.",)
    if time_limit is None or not any(row.status == "skipped" for row in rows):
        return sentences
    begun = any(row.n_splits_done for row in rows)
    before = "all was measured" if begun else "anything was measured"
    return (
        *sentences,
        f"The time limit of {time_limit:g} s ended before {before}: give a larger one, say "
        f"--time-limit {max(60, math.ceil(4 * time_limit))}; finished results are kept.",
    )


def _rows(report: Report, time_limit: float | None) -> list[Row]:
    """Return the rows of a report with all fields of a run in MLflow, best first."""
    from kbench.machine import machine_id
    from kbench.results.sources import of_cell_in_full

    rows = []
    for planned in report.cells:
        row = of_cell_in_full(planned, machine_id(), report.suite.compared)
        if row.status == "skipped" and not row.error and time_limit is not None:
            done, n_splits = row.n_splits_done, row.n_splits
            when = f"after {done} of {n_splits} splits" if done else "before its first split"
            row = replace(row, error=f"the time limit of {time_limit:g} s ended {when}")
        rows.append(row)
    return sorted(rows, key=lambda row: (row.status != "ok", -row.measures.get("accuracy", 0.0)))


def _export(file: str, given: Mapping[str, Any], report: Report, advice: Advice) -> str:
    """Return the command that exports the recommended method."""
    chosen = (advice.chosen.feature_map, advice.chosen.learner)
    cell = next(
        planned.cell
        for planned in report.cells
        if (planned.cell.feature_map.label, planned.cell.learner.label) == chosen
    )
    words = ["kbench", "export", file]
    for name, value in given.items():
        for item in [value] if isinstance(value, str) else value or ():
            words += [f"--{name}", item]
    words += ["--feature-map", cell.feature_map.name, "--learner", cell.learner.name, "-o", "model"]
    return shlex.join(words)


def _print_json(report: Report, rows: Sequence[Row], advice: Advice | None, export: str) -> None:
    from kbench.cli import printing
    from kbench.results.rows import COLUMNS as ALL

    printing.print_end_event(
        report,
        [
            {name: row.value(name) for name in (*ALL, "model_floats")} | {"error": row.error}
            for row in rows
        ],
        recommended=advice and {name: advice.chosen.value(name) for name in ALL[:3]},
        sentences=list(advice.sentences) if advice else [],
        export=export,
    )


def _print(
    heading: tuple[str, str], report: Report, rows: Sequence[Row], advice: Advice | None, lead: Lead
) -> None:
    """Print the table, the recommendation, and the next commands."""
    from rich.markup import escape

    from kbench.cli import printing
    from kbench.report import shown
    from kbench.report.recommendation import size

    console = printing.console()
    label, data = map(escape, heading)
    console.print(f"[bold]{label}[/bold]: {data}\n", soft_wrap=True)
    headings = {name: name not in COLUMNS[:3] for name in (*COLUMNS, "size", "splits")}
    lines = []
    for row in rows:
        floats = row.measures.get("model_floats")
        style = "bold" if advice and row is advice.chosen else "" if row.status == "ok" else "dim"
        values = [shown(name, row.value(name)) for name in COLUMNS]
        values += [size(floats) if floats else "", f"{row.n_splits_done}/{row.n_splits}"]
        lines.append((values, style))
    printing.print_table(console, headings, lines)
    for row in rows:
        if row.status not in ("ok", "skipped") and row.error:
            name = f"{row.feature_map} + {row.learner}"
            printing.print_failure(console, row.status, name, row.error)
    reasons = Counter(row.error for row in rows if row.status == "skipped" and row.error)
    for reason, n in reasons.items():
        console.print(f"skipped: {counted(n, 'method')}: {escape(reason)}")
    console.print()
    for sentence in lead.sentences:
        console.print(escape(sentence), soft_wrap=True)
    if report.interrupted:
        console.print("Interrupted: finished results are kept, the same command continues.")
    delivered = report.delivered
    assert delivered is not None
    printing.print_undelivered(console, delivered, "run")
    name = shlex.quote(delivered.experiment)
    commands = [lead.command] if lead.command else []
    commands += [f"kbench report {name} --open", f"kbench ui {name}"]
    printing.print_next(console, [(command, "") for command in commands])


def _write_page(
    path: Path, report: Report, rows: Sequence[Row], registry: Registry, lead: Lead
) -> None:
    from kbench.cli.printing import write_file
    from kbench.cli.report import machine_facts
    from kbench.report.content import ReportData
    from kbench.report.page import page

    assert report.delivered is not None
    content = ReportData(
        report.suite.name,
        list(rows),
        machine=machine_facts(rows[0].machine),
        store=report.delivered.uri,
    )
    write_file(path, page(content, registry, lead).encode())

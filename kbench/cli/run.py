"""`kbench run`: which method for a file of one's own."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        list[str] | None,
        typer.Option(metavar="NAME", help="Try this feature map; repeatable."),
    ] = None,
    learner: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Try this learner; repeatable.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="For the whole; what does not fit is reported as skipped."
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

    Text becomes indicator columns, missing values are imputed, each inside the
    split. Results are journalled and logged to MLflow under the file's name,
    so that the same command goes on where it stopped.
    """
    from rich.markup import escape

    from kbench.api.own_data import fetched, look, source_of, suite_for, without_texts
    from kbench.api.running import run_shown
    from kbench.registry.registry import build, installed
    from kbench.report.page import Lead
    from kbench.report.recommendation import advise

    started = time.monotonic()
    if time_limit is not None and not time_limit > 0:
        raise SuiteError(f"--time-limit must be positive; found {time_limit:g}")
    if output is not None and not output.absolute().parent.is_dir():
        raise SuiteError(f"-o {output}: there is no folder {output.absolute().parent}")
    registry = build(installed())
    ref = source_of(file, target, ignore or (), nominal or (), delimiter, registry=registry)
    looked = look(ref, registry)
    ref = without_texts(ref, looked)
    known = fetched(ref, registry)
    suite = suite_for(ref, known, registry, feature_map or (), learner or (), time_limit)
    left = math.inf if time_limit is None else time_limit - (time.monotonic() - started)
    left_out = looked.notices() if looked else []
    report = run_shown(
        suite,
        registry,
        store=store,
        jobs=jobs,
        as_json=as_json,
        quiet=quiet,
        told=left_out,
        fresh=fresh,
        total_s=left,
    )
    rows = _rows(report, time_limit)
    refs = [planned.cell.learner for planned in report.cells]
    learners = {ref.label: registry.get("learner", ref.name) for ref in refs}
    advice = advise(
        rows,
        [label for label, learner in learners.items() if learner.kernelized],
        [label for label, learner in learners.items() if learner.baseline],
    )
    given = {
        "target": target,
        "ignore": ref.params.get("ignore", ()),
        "nominal": nominal,
        "delimiter": delimiter,
    }
    export = _export(file, given, report, advice) if advice else ""
    data = _data(known, looked)
    answer = _answer(rows, advice, time_limit)
    if as_json:
        _print_json(report, rows, advice, export)
    else:
        _print(
            f"[bold]{escape(ref.label)}[/bold]: {escape(data)}",
            report,
            rows,
            advice,
            answer,
            export,
        )
    if output is not None:
        _write_page(output, report, rows, registry, Lead(answer, (data, *left_out), export))
        if not as_json:
            typer.echo(f"report:  {output}")
    if report.interrupted:
        raise typer.Exit(130)
    failed = any(row.status not in ("ok", "skipped") for row in rows)
    raise typer.Exit(1 if failed or advice is None else 0)


def _data(known: DatasetFacts, looked: Look | None) -> str:
    """Say what is compared on: rows, columns before and after encoding, classes, holes."""
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
    """Return what a run found, in sentences."""
    found = advice.sentences if advice else ("No method was measured in full.",)
    if time_limit is None or not any(row.status == "skipped" for row in rows):
        return found
    begun = any(row.n_splits_done for row in rows)
    before = "all was measured" if begun else "anything was measured"
    return (
        *found,
        f"The time limit of {time_limit:g} s ended before {before}: give a larger one, say "
        f"--time-limit {max(60, math.ceil(4 * time_limit))}; what is done is kept.",
    )


def _rows(report: Report, time_limit: float | None) -> list[Row]:
    """Return the rows of a report with all that MLflow would tell of them, best first."""
    from kbench.machine import machine_id
    from kbench.results.sources import of_cell_in_full

    rows = []
    for each in report.cells:
        row = of_cell_in_full(each, machine_id(), report.suite.measure)
        if row.status == "skipped" and not row.error and time_limit is not None:
            done, planned = row.n_splits_done, row.n_splits
            when = f"after {done} of {planned} splits" if done else "before its first split"
            row = replace(row, error=f"the time limit of {time_limit:g} s ended {when}")
        rows.append(row)
    return sorted(rows, key=lambda row: (row.status != "ok", -row.measures.get("accuracy", 0.0)))


def _export(file: str, given: Mapping[str, Any], report: Report, advice: Advice) -> str:
    """Return the command that exports the recommended method."""
    chosen = (advice.chosen.feature_map, advice.chosen.learner)
    cell = next(
        each.cell
        for each in report.cells
        if (each.cell.feature_map.label, each.cell.learner.label) == chosen
    )
    words = ["kbench", "export", file]
    for name, value in given.items():
        for each in [value] if isinstance(value, str) else value or ():
            words += [f"--{name}", each]
    words += ["--feature-map", cell.feature_map.name, "--learner", cell.learner.name, "-o", "model"]
    return shlex.join(words)


def _print_json(report: Report, rows: Sequence[Row], advice: Advice | None, export: str) -> None:
    from kbench.results.rows import COLUMNS as ALL

    assert report.delivered is not None
    end = {
        "event": "interrupted" if report.interrupted else "done",
        "rows": [
            {name: row.value(name) for name in (*ALL, "model_floats")} | {"error": row.error}
            for row in rows
        ],
        "recommended": advice and {name: advice.chosen.value(name) for name in ALL[:3]},
        "sentences": list(advice.sentences) if advice else [],
        "export": export,
        "store": report.delivered.uri,
        "experiment": report.delivered.experiment,
        "problem": report.delivered.problem,
        "seconds": report.seconds,
    }
    print(json.dumps(end), flush=True)


def _print(
    heading: str,
    report: Report,
    rows: Sequence[Row],
    advice: Advice | None,
    answer: Sequence[str],
    export: str,
) -> None:
    """Print the table, the recommendation, and what to type next."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from kbench.report import shown
    from kbench.report.recommendation import size

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    console.print(heading + "\n", soft_wrap=True)
    drawn = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in (*COLUMNS, "size", "splits"):
        words = name in COLUMNS[:3]
        drawn.add_column(name, justify="left" if words else "right", overflow="fold")
    for row in rows:
        floats = row.measures.get("model_floats")
        style = "bold" if advice and row is advice.chosen else "" if row.status == "ok" else "dim"
        drawn.add_row(
            *(escape(shown(name, row.value(name))) for name in COLUMNS),
            size(floats) if floats else "",
            f"{row.n_splits_done}/{row.n_splits}",
            style=style,
        )
    console.print(drawn)
    for row in rows:
        if row.status not in ("ok", "skipped") and row.error:
            last = row.error.strip().splitlines()[-1]
            name = f"{row.feature_map} + {row.learner}"
            console.print(f"[red]{row.status}[/red]: {escape(name)}: {escape(last)}")
    reasons = Counter(row.error for row in rows if row.status == "skipped" and row.error)
    for reason, n in reasons.items():
        console.print(f"skipped: {counted(n, 'method')}: {escape(reason)}")
    console.print()
    for sentence in answer:
        console.print(escape(sentence), soft_wrap=True)
    if report.interrupted:
        console.print("Interrupted: what is done is kept, the same command goes on.")
    delivered = report.delivered
    assert delivered is not None
    if delivered.problem:
        console.print(f"[red]not all runs are in the store: {escape(delivered.problem)}[/red]")
    console.print("\nnext:")
    if export:
        console.print(f"  {escape(export)}", soft_wrap=True)
    name = shlex.quote(delivered.experiment)
    console.print(f"  kbench report {escape(name)} --open", soft_wrap=True)
    console.print(f"  kbench ui {escape(name)}", soft_wrap=True)


def _write_page(
    path: Path, report: Report, rows: Sequence[Row], registry: Registry, lead: Lead
) -> None:
    from kbench.cli.report import machine_facts, write_file
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

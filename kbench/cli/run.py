"""`kbench run`: compares methods on the user's own data and recommends one."""

from __future__ import annotations

import math
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench.cli.echo import echo
from kbench.cli.options import (
    Date,
    Decimal,
    Delimiter,
    Encoding,
    Fresh,
    Ignore,
    JsonEvents,
    Keep,
    MeasureName,
    Missing,
    Nominal,
    Proba,
    Quiet,
    Sheet,
    Store,
    Target,
    Task,
    Thousands,
)
from kbench.errors import SuiteError
from kbench.messages import counted, listed, number

if TYPE_CHECKING:
    from kbench.api.own_data import OwnData
    from kbench.records import Measure
    from kbench.registry.registry import Registry
    from kbench.report.page import Lead
    from kbench.report.recommendation import Advice
    from kbench.results.rows import Row
    from kbench.runner import Report

LABELS = ("feature_map", "learner", "status")
COSTS = ("fit_time_s", "predict_time_s", "n_components")


def run(
    file: Annotated[
        str, typer.Argument(help="A .csv, .tsv, .parquet, .arff, .svmlight or .libsvm file.")
    ],
    target: Target = None,
    task: Task = None,
    measure: MeasureName = None,
    proba: Proba = False,
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
    keep: Keep = None,
    date: Date = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
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

    The target may be classes or numbers; the output says for which it is taken, how the
    file is read, and what becomes of each column. Results are journalled and logged to MLflow
    under the file's name, and the same command continues where it stopped.
    """
    from kbench.api.inputs import check_limit
    from kbench.api.own_data import prepared, suite_for
    from kbench.api.own_measure import comparison
    from kbench.api.running import run_shown
    from kbench.execution.plugins import load_registry
    from kbench.report.fates import COLUMNS, fate_lines
    from kbench.report.page import Lead
    from kbench.report.recommendation import advise
    from kbench.runner import Options

    started = time.monotonic()
    if time_limit is not None:
        check_limit(time_limit, "--time-limit")
    if output is not None and not output.absolute().parent.is_dir():
        raise SuiteError(f"-o {output}: there is no folder {output.absolute().parent}")
    registry = load_registry()
    own = {
        "target": target,
        "task": task,
        "ignore": ignore,
        "nominal": nominal,
        "keep": keep,
        "date": date,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
        "encoding": encoding,
        "missing": missing,
        "sheet": sheet,
    }
    data = prepared(file, registry, **own)
    by = comparison(measure, proba, data.facts, registry)
    suite = suite_for(
        data.ref, data.facts, registry, feature_map or (), learner or (), time_limit, by
    )
    _show_columns(data, as_json)
    left = math.inf if time_limit is None else time_limit - (time.monotonic() - started)
    report = run_shown(
        suite,
        registry,
        Options(store, jobs, fresh=fresh, total_s=left),
        as_json=as_json,
        quiet=quiet,
        further_notices=data.doubts,
    )
    rows = _rows(report, time_limit)
    refs = [planned.cell.learner for planned in report.cells]
    learners = {ref.label: registry.get("learner", ref.name) for ref in refs}
    advice = advise(
        rows,
        [label for label, learner in learners.items() if learner.kernelized],
        [label for label, learner in learners.items() if learner.baseline],
        report.suite.compared,
        data.facts.task,
    )
    given = {**own, "measure": measure}
    export = _export(file, given, report, advice, proba) if advice else ""
    facts = (_shape(data), data.target, *filter(None, [by.sentence]))
    answer = (
        *_answer(rows, advice, time_limit),
        *_without_measure(rows, report.suite.compared),
    )
    if as_json:
        _print_json(report, rows, advice, export, data)
    else:
        _print(data.ref.label, report, rows, advice, Lead(answer, facts, export))
    if output is not None:
        sentence = (data.look.sentence,) if data.look and data.look.sentence else ()
        lines = fate_lines(data.look.fates) if data.look else ()
        lead = Lead(answer, (*facts, *sentence, *data.doubts), export, COLUMNS, lines)
        _write_page(output, report, rows, registry, lead)
        if not as_json:
            echo(f"report:  {output}")
    if report.interrupted:
        raise typer.Exit(130)
    failed = any(row.status not in ("ok", "skipped") for row in rows)
    raise typer.Exit(1 if failed or advice is None else 0)


def _show_columns(data: OwnData, as_json: bool) -> None:
    """Print how the file is read and what becomes of each column, before anything runs."""
    from rich.markup import escape

    from kbench.cli import printing
    from kbench.report.fates import COLUMNS, fate_lines

    if data.look is None:
        return
    if as_json:
        fates = [asdict(fate) for fate in data.look.fates]
        printing.print_event("columns", file=data.look.sentence, columns=fates)
        return
    console = printing.console()
    if data.look.sentence:
        console.print(f"{data.ref.label}: {escape(data.look.sentence)}", soft_wrap=True)
    headings = {name: name == "columns out" for name in COLUMNS}
    printing.print_table(console, headings, [(line, "") for line in fate_lines(data.look.fates)])
    console.print()


def _shape(data: OwnData) -> str:
    """Describe the data: rows, columns before and after encoding, target, missing values."""
    from kbench.api.own_measure import shares_of

    facts, looked = data.facts, data.look
    columns = counted(facts.n_features, "column")
    if looked is not None and looked.n_columns != facts.n_features:
        before = counted(looked.n_columns, "column")
        columns = f"{before}, {facts.n_features:,} after encoding"
    parts = [counted(facts.n_samples, "row"), columns]
    if facts.target_mean is not None and facts.target_sd is not None:
        parts.append(
            f"target with mean {number(facts.target_mean)} and standard deviation "
            f"{number(facts.target_sd)}"
        )
    else:
        parts.append(f"{counted(facts.n_classes, 'class', 'classes')} ({shares_of(facts)})")
    if facts.n_missing:
        parts.append(counted(facts.n_missing, "missing value"))
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

    rows, measure = [], report.suite.compared
    for planned in report.cells:
        row = of_cell_in_full(planned, machine_id(), measure)
        if row.status == "skipped" and not row.error and time_limit is not None:
            done, n_splits = row.n_splits_done, row.n_splits
            when = f"after {done} of {n_splits} splits" if done else "before its first split"
            row = replace(row, error=f"the time limit of {time_limit:g} s ended {when}")
        rows.append(row)

    def order(row: Row) -> tuple[bool, float]:
        value = row.measures.get(measure.name)
        return row.status != "ok", math.inf if value is None else -measure.gain(value)

    return sorted(rows, key=order)


def _without_measure(rows: Sequence[Row], measure: Measure) -> list[str]:
    """Say which methods were measured, but do not have the measure."""
    lacking = [row for row in rows if row.status == "ok" and measure.name not in row.measures]
    if not lacking:
        return []
    names = listed([f"{row.feature_map} + {row.learner}" for row in lacking], 3)
    return [f"No {measure.words} for {names}: the learner does not predict what it needs."]


def _export(
    file: str, given: Mapping[str, Any], report: Report, advice: Advice, proba: bool
) -> str:
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
    words += ["--proba"] if proba else []
    words += ["--feature-map", cell.feature_map.name, "--learner", cell.learner.name, "-o", "model"]
    return shlex.join(words)


def _print_json(
    report: Report, rows: Sequence[Row], advice: Advice | None, export: str, data: OwnData
) -> None:
    from kbench.cli import printing
    from kbench.results.rows import LABELS as NAMES
    from kbench.results.rows import columns

    names = (*columns(report.suite.compared), "model_floats")
    printing.print_end_event(
        report,
        [{name: row.value(name) for name in names} | {"error": row.error} for row in rows],
        task=data.facts.task,
        target=data.target,
        measure=report.suite.compared.name,
        classes=dict(zip(data.facts.target_names, data.facts.class_counts, strict=False)),
        recommended=advice and {name: advice.chosen.value(name) for name in NAMES},
        sentences=list(advice.sentences) if advice else [],
        export=export,
    )


def _columns(rows: Sequence[Row], measure: Measure) -> tuple[str, ...]:
    """Return the columns of the table: labels, what is compared, costs."""
    compared = [measure.name, measure.sd]
    beside = ["r2"] if measure.task == "regression" else ["roc_auc", "accuracy"]
    if measure.name != "accuracy":
        compared += [name for name in beside if any(name in row.measures for row in rows)]
    return (*LABELS, *compared, *COSTS)


def _print(
    label: str, report: Report, rows: Sequence[Row], advice: Advice | None, lead: Lead
) -> None:
    """Print the table, the recommendation, and the next commands."""
    from rich.markup import escape

    from kbench.cli import printing
    from kbench.report import shown
    from kbench.report.recommendation import size

    console = printing.console()
    shape, *others = map(escape, lead.facts)
    console.print(f"[bold]{escape(label)}[/bold]: {shape}", soft_wrap=True)
    for fact in others:
        console.print(fact, soft_wrap=True)
    console.print()
    columns = _columns(rows, report.suite.compared)
    headings = {name: name not in LABELS for name in (*columns, "size", "splits")}
    lines = []
    for row in rows:
        floats = row.measures.get("model_floats")
        style = "bold" if advice and row is advice.chosen else "" if row.status == "ok" else "dim"
        values = [shown(name, row.value(name)) for name in columns]
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
        measure=report.suite.compared,
        machine=machine_facts(rows[0].machine),
        store=report.delivered.uri,
        budget=report.suite.budget,
    )
    write_file(path, page(content, registry, lead).encode())

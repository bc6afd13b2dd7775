"""`kbench recommend`: compares methods on the user's data and recommends one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench import features
from kbench.messages import plural

if TYPE_CHECKING:
    from kbench_tables.recommend.advice import Advice
    from kbench_tables.recommend.compared_methods import ComparedMethods
    from kbench_tables.recommend.user_data import UserData

FIRST = ("feature_map", "learner", "status")
COSTS = ("fit_time_s", "predict_time_s", "n_components")


# Options that say how a file is written.
READING = ("delimiter", "decimal", "thousands", "encoding", "na_values", "sheet", "header_row")

# Options that say what the columns of a table are, and how its file is written.
COLUMNS = (
    *("target", "task", "drop", "categorical", "keep", "date"),
    *(*READING, "keep_totals", "group", "time_column"),
)

# Lines that are printed after the columns, of which at most some have one, and minimum number of
# methods: 25 lines in all.
MAX_LINES, MAX_COLUMNS, MIN_METHODS = 17, 5, 3

# Values of these options, None if one is not given.
Given = Mapping[str, Any]


@features.options_from("recommend", COLUMNS)
def recommend(
    file: Annotated[str, typer.Argument(help="A CSV, TSV, Excel, Parquet, ARFF or svmlight file.")],
    *,
    own: Given,
    metric: str | None = None,
    probabilities: bool = False,
    feature_map: list[str] | None = None,
    learner: list[str] | None = None,
    time_limit: float | None = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write a report as HTML."),
    ] = None,
    explain: bool = False,
    jobs: int | None = None,
    recompute: bool = False,
    as_json: features.JsonEvents = False,
    quiet: features.Quiet = False,
) -> None:
    """Compare feature maps and learners on your table, and recommend one.

    The target may be categorical or numeric. kbench prints how it parsed the file, the columns, the
    recommendation with its reasons, and the best methods; the report has all columns and methods.
    Results are stored under the file's name; repeat an interrupted command to continue. The exit
    code is 1 if a method failed, or was skipped for a reason other than the time limit.
    """
    from kbench_tables.recommend.compared_methods import OUT_OF_TIME, Start, compare

    started = Start()
    from kbench_tables.recommend.metric import comparison
    from kbench_tables.recommend.recommendation_page import build_lead, build_page
    from kbench_tables.recommend.timed_suite import rounds_for
    from kbench_tables.recommend.user_data import prepare_data, start_parents

    if time_limit is not None:
        features.check_limit(time_limit, "time_limit")
    if output is not None and not output.absolute().parent.is_dir():
        raise features.SuiteError(f"-o {output}: there is no folder {output.absolute().parent}")
    registry = features.load_registry()
    given = features.get_given() | {"parents": start_parents(registry)}
    data = _with_flags(prepare_data(file, registry, **own))
    by = comparison(metric, probabilities, data.facts, registry)
    rounds = rounds_for(
        data.ref, data.facts, registry, feature_map or (), learner or (), time_limit, by
    )
    _show_columns(data, as_json)
    compared = compare(
        data,
        rounds,
        registry,
        options=features.Options(jobs, recompute=recompute, given=given),
        time_limit=time_limit,
        started=started,
        as_json=as_json,
        quiet=quiet,
        explains=explain,
        has_page=output is not None,
        words=features.put_flags,
    )
    report, rows, advice = compared.report, compared.rows, compared.advice
    export = _export(file, {**own, "metric": metric}, compared, probabilities) if advice else ""
    lead = build_lead(compared, data, by, time_limit, export)
    lead = replace(
        lead,
        sentences=tuple(map(features.put_flags, lead.sentences)),
        facts=tuple(map(features.put_flags, lead.facts)),
    )
    if as_json:
        _print_json(report, rows, compared, lead, data)
    else:
        _print(data.ref.label, report, rows, advice, lead)
    if output is not None:
        features.write_output(output, build_page(compared, data, lead, registry).encode())
        if not as_json:
            features.echo(f"report:  {output}")
    if report.interrupted:
        raise typer.Exit(130)
    failed = advice is None or any(
        row.status not in ("ok", "unavailable") and not row.error.startswith(OUT_OF_TIME)
        for row in rows
    )
    raise typer.Exit(1 if failed or report.undelivered else 0)


def _with_flags(data: UserData) -> UserData:
    preview = data.preview
    if preview is not None:
        roles = tuple(replace(role, note=features.put_flags(role.note)) for role in preview.roles)
        preview = replace(
            preview, roles=roles, warnings=tuple(map(features.put_flags, preview.warnings))
        )
    return replace(data, preview=preview, target=features.put_flags(data.target))


def _show_columns(data: UserData, as_json: bool) -> None:
    """Print how the file is parsed and how its columns are encoded, before anything runs.

    Of many columns those with a note are shown.
    """
    from rich.markup import escape

    from kbench_tables.recommend.recommendation_page import COLUMNS, column_rows

    if data.preview is None:
        return
    roles = data.preview.roles
    if as_json:
        features.print_event("columns", file=data.preview.sentence, columns=[*map(asdict, roles)])
        return
    console = features.printing.console()
    if data.preview.sentence:
        console.print(f"{data.ref.label}: {escape(data.preview.sentence)}", soft_wrap=True)
    columns = [features.Column(name, numeric=name == "n features") for name in COLUMNS]
    lines = column_rows(roles)
    if len(lines) > MAX_COLUMNS:
        lines = [line for line in lines if line[-1]][: MAX_COLUMNS - 1]
        counts = Counter(role.read_as for role in roles).most_common()
        kinds = ", ".join(f"{kind}: {n:,}" for kind, n in counts)
        console.print(f"{plural(len(roles), 'column')} ({escape(kinds)})", soft_wrap=True)
    if lines:
        features.printing.print_table(console, features.Table.make("columns", columns, lines))
    console.print()


def _export(
    file: str, reading: Mapping[str, Any], compared: ComparedMethods, probabilities: bool
) -> str:
    assert compared.chosen is not None
    cell = compared.chosen.cell
    method = {"feature_map": cell.feature_map.name, "learner": cell.learner.name}
    settings = [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in compared.settings.items()
    ]
    options = {**reading, "probabilities": probabilities or None, **method, "params": settings}
    return shlex.join(["kbench", "export", file, *features.format_options(options), "-o", "model"])


def _print_json(
    report: features.Report,
    rows: Sequence[features.Row],
    compared: ComparedMethods,
    lead: features.Lead,
    data: UserData,
) -> None:

    advice, explanation = compared.advice, compared.explanation
    names = (*features.columns(report.suite.compared), "n_train", "n_stored_floats")
    features.printing.print_end_event(
        report,
        [{name: row.value(name) for name in names} | {"error": row.error} for row in rows],
        task=data.facts.task,
        target=data.target,
        metric=report.suite.compared.name,
        classes=dict(zip(data.facts.target_names, data.facts.class_counts, strict=False)),
        recommended=advice and {name: advice.chosen.value(name) for name in features.LABELS},
        sentences=lead.sentences,
        export=lead.command,
        importances={each.column: each.mean for each in explanation.importances}
        if explanation
        else {},
    )


def _columns(rows: Sequence[features.Row], metric: features.Metric) -> tuple[str, ...]:
    compared = [metric.name, metric.sd]
    beside = ["r2"] if metric.task == "regression" else ["roc_auc", "accuracy"]
    if metric.name != "accuracy":
        compared += [name for name in beside if any(name in row.metrics for row in rows)]
    return tuple(dict.fromkeys((*FIRST, *compared, *COSTS)))


def _print(
    label: str,
    report: features.Report,
    rows: Sequence[features.Row],
    advice: Advice | None,
    lead: features.Lead,
) -> None:
    from rich.markup import escape

    from kbench_tables.recommend.compared_methods import OUT_OF_TIME

    console = features.printing.console()
    for number, sentence in enumerate(lead.sentences):
        console.print(escape(sentence), soft_wrap=True, style="" if number else "bold")
    console.print()
    console.print(f"{escape(label)}: {escape('; '.join(lead.facts))}", soft_wrap=True)
    reasons = Counter(row.error for row in rows if row.status == "skipped" and row.error)
    notes = [
        f"skipped: {plural(n, 'method')}: {reason}"
        for reason, n in reasons.items()
        if not reason.startswith(OUT_OF_TIME)
    ]
    failed = [row for row in rows if row.status not in ("ok", "skipped") and row.error]
    commands = [lead.command] if lead.command else []
    commands.append(f"kbench report {shlex.quote(report.suite.name)} --open")
    n_others = len(lead.sentences) + len(notes) + len(failed) + len(commands) + 6
    _print_methods(report, rows, advice, max(MIN_METHODS, MAX_LINES - n_others))
    for row in failed:
        name = f"{row.feature_map} + {row.learner}"
        features.printing.print_failure(console, row.status, name, row.error)
    for note in notes:
        console.print(escape(note), soft_wrap=True)
    if report.interrupted:
        console.print("Interrupted. Finished results are stored; run the same command to continue.")
    for delivered in report.deliveries:
        features.printing.print_problem(console, delivered)
    features.printing.print_next(console, [(command, "") for command in commands])


def _print_methods(
    report: features.Report, rows: Sequence[features.Row], advice: Advice | None, n_shown: int
) -> None:
    from kbench_tables.recommend.advice import n_train, size

    columns = _columns(rows, report.suite.compared)
    made = [
        features.Column(name, numeric=name not in FIRST)
        for name in (*columns, "size", "rows", "splits")
    ]
    shown = list(rows if len(rows) <= n_shown else rows[: n_shown - 1])
    if advice and advice.chosen not in shown:
        shown[-1] = advice.chosen
    lines, styles = [], []
    for row in shown:
        floats = row.metrics.get("n_stored_floats")
        is_chosen = advice and row is advice.chosen
        styles.append("bold" if is_chosen else "" if row.status == "ok" else "dim")
        values = [features.write_cell(name, row.value(name)) for name in columns]
        values += [size(floats) if floats else "", f"{n_train(row):,.0f}" if n_train(row) else ""]
        lines.append([*values, f"{row.n_splits_done}/{row.n_splits}"])
    console = features.printing.console()
    features.printing.print_table(console, features.Table.make("methods", made, lines, styles))
    if n := len(rows) - len(shown):
        command = f"kbench results {shlex.quote(report.suite.name)}"
        console.print(f"{plural(n, 'further method')}: {command}", soft_wrap=True, style="dim")

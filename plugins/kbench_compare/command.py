"""`kbench compare`: two sets of results cell by cell, so that CI can reject regressions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbench import features
from kbench.features import Datasets, Form, Format, SuiteError, echo, stored_suite
from kbench.messages import mask, plural
from kbench.parameters import check_choice, check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kbench.features import Labels, Metric, Row, StoredResults, Table
    from kbench_compare.comparison import Change, Comparison

_SIDE = (
    "SUITE, SUITE@STORE, SUITE@KEY=VALUE,...[,STORE], a file of `kbench results --format json`, "
    "or a bundle. Keys: version (of kbench), machine (id), until (a date or time), "
    "author (of imported bundles). STORE is a URI or a .db file."
)
_KEYS = ("version", "machine", "until", "author")
_BUNDLES = (".zip", ".jsonl")
_FAIL_ON = ("metric", "time", "missing")


def compare(
    a: Annotated[str, stored_suite(metavar="A", help=f"The older results. {_SIDE}")],
    b: Annotated[str, stored_suite(metavar="B", help="The newer results, in the same form.")],
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Exit with 1 if B is worse in one of these, separated by commas: `metric` (that "
            "of the suite), `time`, `missing` (ok in A, absent or unavailable in B); or `none`.",
        ),
    ] = "metric,missing",
    dataset: Datasets = None,
    alpha: Annotated[
        float, typer.Option(help="Level of the tests, over all cells together (Holm).")
    ] = 0.05,
    time_factor: Annotated[
        float, typer.Option(help="Report a change of a time only if the ratio exceeds this.")
    ] = 2.0,
    time_noise: Annotated[
        float, typer.Option(help="Relative standard deviation of a cell's time from run to run.")
    ] = 0.1,
    form: Format = Form.table,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Store of a side that names none; default: $MLFLOW_TRACKING_URI, else "
            "mlflow.db in this folder.",
        ),
    ] = None,
) -> None:
    """Compare two suites, stores, versions or machines on the same splits.

    The metric of the suite is compared by its difference, with an interval of the corrected
    resampled t-test (accuracies on a single split: by the binomial error of its test rows).
    Times are compared as ratios, normalised by a speed benchmark of each machine. No verdict is
    given if times are not comparable.
    """
    from kbench_compare.comparison import Noise, comparable
    from kbench_compare.comparison import compare as compared

    wanted = [] if fail_on == "none" else [name.strip() for name in fail_on.split(",")]
    for name in wanted:
        check_choice(name, "--fail-on", _FAIL_ON, otherwise="none alone", error=SuiteError)
    check_number(time_factor, "--time-factor", least=1, error=SuiteError)
    check_number(time_noise, "--time-noise", least=0, error=SuiteError)
    check_number(alpha, "--alpha", above=0, below=1, error=SuiteError)
    of_a, of_b = _side(a, store), _side(b, store)
    if (metric := of_a.metric) != of_b.metric:
        raise SuiteError(
            f"A compares {metric.name} ({metric.better} is better), B {of_b.metric.name} "
            f"({of_b.metric.better} is better): they are not comparable"
        )
    rows_a, rows_b = _only(of_a.rows, dataset or [], a), _only(of_b.rows, dataset or [], b)
    if of_a.is_imported or of_b.is_imported:
        rows_a, rows_b, reasons = comparable(rows_a, rows_b)
        for reason, count in reasons.items():
            echo(f"kbench: not compared: {plural(count, 'cell')}: {reason}", err=True)
    noise = Noise(alpha=alpha, time_factor=time_factor, time_noise=time_noise)
    comparison = compared(rows_a, rows_b, metric, noise)
    regressions = comparison.regressions(wanted)
    if form is Form.table:
        _print(comparison, regressions, wanted)
    else:
        echo(features.write(_table(comparison), form.value))
    raise typer.Exit(1 if regressions else 0)


# -- sides


def _side(value: str, store: str | None) -> StoredResults:
    """Read one side: a file, a bundle, imported rows, or runs of a store."""
    path = Path(value)
    if path.suffix == ".json":
        return _read_results_file(path)
    is_file = path.suffix in _BUNDLES or (path.is_dir() and "@" not in value)
    suite, options = ("", dict[str, str]()) if is_file else _parse_side(value)
    if store and "author" not in options:
        options.setdefault("store", store)
    if "author" in options:
        return _read_author_rows(suite, options, value)
    if options.get("machine") == "all":
        raise SuiteError(f"{mask(value)!r}: machine must be the id of a single machine, got 'all'")
    version, until = options.get("version", ""), options.get("until")
    earlier = bool(version or until)
    query = features.Query(
        value if is_file else suite,
        {name: options[name] for name in ("store",) if name in options},
        options.get("machine"),
        superseded=earlier,
        file=value if is_file else "",
        notice=lambda notice: echo(f"{mask(value)}: {notice}", err=True),
    )
    try:
        stored = features.read_results(query)
    except SuiteError as error:
        if is_file or path.suffix == ".toml" or not path.is_file():
            raise
        # not the name of an experiment of `kbench recommend`, which is that of a file too
        raise SuiteError(
            f"{error}; {value} is a file, and those of results are .json, as "
            "`kbench results SUITE --format json` writes them"
        ) from error
    if stored.is_imported:
        return stored
    rows = stored.rows
    if earlier:
        rows = features.newest(rows, version, None if until is None else _moment(until, value))
        if not rows:
            versions = sorted({name for row in stored.rows for name in row.version.split(", ")})
            hint = f"; versions: {', '.join(filter(None, versions))}" if version else ""
            raise SuiteError(f"{mask(value)!r} matches no run{hint}")
    checked = _check_rows([row.to_json(stored.metric) for row in rows], mask(value))
    rows = features.sort_by_dataset([row for row, _ in checked])
    return features.StoredResults(rows, stored.name, stored.metric)


def _read_author_rows(suite: str, options: Mapping[str, str], side: str) -> StoredResults:
    """Read the rows of an author whose bundles were added."""
    if excluded := [name for name in options if name != "author"]:
        raise SuiteError(f"{mask(side)!r}: author= excludes {excluded[0]}=: stores hold no bundles")
    experiment = features.get_experiment(suite)
    imported = features.read_imported(experiment, notice=partial(echo, err=True))
    if not (rows := [each for each in imported if each.author == options["author"]]):
        names = ", ".join(sorted({each.author for each in imported}))
        hint = f"there are rows by: {names}" if names else "`kbench bundle add FILE` adds a bundle"
        raise SuiteError(f"no rows of {suite!r} by {options['author']!r} were added; {hint}")
    return features.make_side(rows, suite, rows[0].metric)


def _parse_side(text: str) -> tuple[str, dict[str, str]]:
    """Split ``SUITE@KEY=VALUE,...,STORE``; the store comes last and may hold any sign.

    >>> _parse_side("uci@version=0.1.0,postgresql://me@host/db")
    ('uci', {'version': '0.1.0', 'store': 'postgresql://me@host/db'})
    """
    suite, _, rest = text.partition("@")
    if not suite:
        raise SuiteError(
            f"{mask(text)!r}: the name of a suite comes first, as in uci@version=0.1.0"
        )
    options: dict[str, str] = {}
    while rest:
        key, sign, _ = rest.partition("=")
        if key in _KEYS and sign:
            value, _, rest = rest[len(key) + 1 :].partition(",")
            if not value:
                raise SuiteError(f"{mask(text)!r}: {key} has no value")
            options[key] = value
            continue
        where = rest.removeprefix("store=")
        if "://" not in where and not where.endswith(".db"):
            raise SuiteError(
                f"{mask(text)!r}: {mask(where)!r} is neither a store (a URI, or a .db file) "
                f"nor one of {', '.join(f'{name}=' for name in _KEYS)}"
            )
        options["store"] = where
        rest = ""
    return suite, options


def _moment(value: str, side: str) -> int:
    """Return a date's end, or a time, in milliseconds since 1970."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        today = date.today().isoformat()
        raise SuiteError(
            f"{mask(side)!r}: until must be a date or a time, such as {today} or {today}T15:00, "
            f"got {value}"
        ) from error
    return int((moment + timedelta(days=(len(value) == len("2026-01-31")))).timestamp() * 1000)


def _read_results_file(path: Path) -> StoredResults:
    """Read rows that `kbench results --format json` wrote, without those of others."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{path} is not JSON: {error}") from error
    if isinstance(rows, list):
        rows = [row for row in rows if not (isinstance(row, dict) and "author" in row)]
    if not isinstance(rows, list) or not rows:
        raise SuiteError(f"{path} has no results; `kbench results SUITE --format json` makes it")
    advice = "; `kbench results SUITE --format json` of this version writes all required fields"
    checked = _check_rows(rows, str(path), advice)
    metrics = {metric for _, metric in checked}
    if len(metrics) > 1:
        names = " and ".join(sorted(f"{each.name} ({each.better} is better)" for each in metrics))
        raise SuiteError(f"{path}: all rows must compare one metric, got {names}")
    return features.StoredResults([row for row, _ in checked], path.stem, metrics.pop())


def _check_rows(rows: Sequence[object], where: str, advice: str = "") -> list[tuple[Row, Metric]]:
    """Parse rows; refuse those that kbench did not write, or that were edited."""
    from kbench_compare.outside import parse_outside_row

    checked = []
    for i, row in enumerate(rows):
        try:
            checked.append(parse_outside_row(row))
        except ValueError as error:
            raise SuiteError(f"{where}, row {i}{_format_cell(row)}: {error}{advice}") from None
    return checked


def _format_cell(row: object) -> str:
    """Name the cell of a row in brackets, as far as it has names that can be printed."""
    names = ("dataset", "feature_map", "learner")
    labels = [row.get(name) for name in names] if isinstance(row, dict) else []
    if not labels or not all(isinstance(label, str) and label.isprintable() for label in labels):
        return ""
    return " ({1:.40} + {2:.40} on {0:.40})".format(*labels)


def _only(rows: Sequence[Row], patterns: Sequence[str], side: str) -> list[Row]:
    if not patterns:
        return list(rows)
    if not (matches := [row for row in rows if any(fnmatchcase(row.dataset, p) for p in patterns)]):
        names = ", ".join(dict.fromkeys(row.dataset for row in rows))
        raise SuiteError(f"--dataset {' '.join(patterns)} matches none of {mask(side)}: {names}")
    return matches


# -- output


def _table(comparison: Comparison) -> Table:
    """Return the comparison as a table of a report."""
    from kbench.features import TIMES, Column, Table, p_value, write_cell, write_signed
    from kbench_compare.comparison import columns

    made = {
        name: Column(name, wide=name in ("side", "status_a", "status_b", "warnings"))
        for name in columns(comparison.metric)
    }
    for about in (comparison.metric.name, *TIMES):
        value = partial(write_cell, about)
        change = "{:.3g}".format if about in TIMES else partial(write_signed, written=value)
        for part in ("a", "b", "change", "low", "high", "p"):
            name, is_change = f"{about}_{part}", part in ("change", "low", "high")
            written = p_value if part == "p" else change if is_change else value
            made[name] = Column(name, written=written, numeric=True, wide=not is_change)
    columns_, rows = list(made.values()), comparison.rows()
    return Table("compare", "Two sets of results", columns_, rows, by="dataset")


def _print(
    comparison: Comparison, regressions: Sequence[tuple[Labels, str]], wanted: Sequence[str]
) -> None:
    """Print the cells, their changes, and the verdict."""
    from rich.markup import escape

    from kbench.features import LABELS, TIMES, Column, Table, printing, write_cell, write_signed

    metric, console = comparison.metric, printing.console()
    written = partial(write_signed, written=partial(write_cell, metric.name))
    titles = ("B - A", *(f"{name.removesuffix('_s').replace('_', ' ')} B / A" for name in TIMES))
    changed = (metric.name, *TIMES)
    columns = [
        *map(Column, LABELS),
        *(Column(f"{title} value", title, numeric=True) for title in (f"{metric.name} A", "B")),
        *(Column(name, title, numeric=True) for name, title in zip(changed, titles, strict=True)),
    ]
    lines: list[list[str]] = []
    marks: dict[tuple[int, str], str] = {}
    for i, cell in enumerate(comparison.cells):
        change = cell.changes[metric.name]
        of_a = write_cell(metric.name, change.a) or cell.status_a
        of_b = write_cell(metric.name, change.b) or cell.status_b
        times = [_format_number(cell.changes[name], "{:.2f}".format) for name in TIMES]
        lines.append([*cell.labels, of_a, of_b, _format_number(change, written), *times])
        marks |= {(i, name): cell.changes[name].verdict for name in changed}
    printing.print_table(console, replace(Table.make("compare", columns, lines), marks=marks))
    say = partial(console.print, soft_wrap=True)
    for side, only in (("A", comparison.only_a), ("B", comparison.only_b)):
        if only:
            say(f"\nonly in {side}: {plural(len(only), 'cell')}")
            for labels in list(only)[:20]:
                say(f"  {escape(_format_name(labels))}")
            if len(only) > 20:
                say(f"  and {len(only) - 20} more")
    say()
    for note in comparison.notes:
        say(escape(note))
    for name in (metric.name, *TIMES):
        counts = comparison.count(name)
        words = {
            "same": "no significant change",
            "better": "better" if name == metric.name else "faster",
            "worse": "worse" if name == metric.name else "slower",
            "unknown": "no verdict (?)",
        }
        verdicts = [f"{counts[v]} {label}" for v, label in words.items() if counts[v]]
        direction = f" ({metric.better} is better)" if name == metric.name else ""
        say(f"{escape(name)}{direction}: {', '.join(verdicts)}")
    for reason, count in _reasons(comparison).most_common(5):
        say(f"  ? {plural(count, 'cell')}: {escape(reason)}")
    untested = Counter(
        change.untested
        for cell in comparison.cells
        if (change := cell.changes[metric.name]).untested and change.verdict != "unknown"
    )
    for reason, count in untested.items():
        say(f"{plural(count, 'cell')}: {reason}")
    for labels, name in regressions:
        say(f"[bold]regression[/bold] {escape(name)}: {escape(_format_name(labels))}")
    if wanted:
        kinds = [metric.name if name == "metric" else name for name in wanted]
        say(
            f"{plural(len(regressions), 'regression')} of {escape(' and '.join(kinds))} in "
            f"{plural(len(comparison.cells), 'cell')} that both sides have"
        )


def _format_name(labels: Sequence[str]) -> str:
    dataset, feature_map, learner = labels
    return f"{feature_map} + {learner} on {dataset}"


def _reasons(comparison: Comparison) -> Counter[str]:
    """Count the cells with changes that are not judged, by reason: of either side, in short."""
    return Counter(
        reason
        for cell in comparison.cells
        for reason in {
            # "a: the machine was loaded: 2 slots on 1 core": the JSON has it all
            doubt.removeprefix("a: ").removeprefix("b: ").partition(": ")[0]
            for change in cell.changes.values()
            if change.verdict == "unknown"
            for doubt in change.doubts
        }
    )


def _format_number(change: Change, written: Callable[[float], str]) -> str:
    """Write a change with its interval."""
    number = "" if change.change is None else written(change.change)
    doubt = " ?" if change.verdict == "unknown" and number else ""
    if change.low is not None and change.high is not None:
        number += f" [{written(change.low)}, {written(change.high)}]"
    return number + doubt

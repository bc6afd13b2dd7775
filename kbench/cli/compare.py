"""`kbench compare`: two sets of results cell by cell, so that a CI can refuse a regression."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbench.cli.options import Form, Format
from kbench.errors import SuiteError
from kbench.messages import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbench.records import Measure
    from kbench.report.text import Table
    from kbench.results.comparison import Change, Comparison
    from kbench.results.rows import Row
    from kbench.tracking import StoredRun

_SIDE = (
    "SUITE, SUITE@STORE, SUITE@KEY=VALUE,...[,STORE], or a file of `kbench results --format json`. "
    "Keys: version (of kbench), machine (id), until (a date or time). STORE is a URI or a .db file."
)
_KEYS = ("version", "machine", "until")
_FAIL_ON = ("accuracy", "time", "missing")


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=f"The older results. {_SIDE}")],
    b: Annotated[str, typer.Argument(metavar="B", help="The newer results, in the same form.")],
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Exit with 1 if B is worse: `accuracy` (what the suite compares), `time`, "
            "`missing` (ok in A, without data or not there in B), several with a comma, or `none`.",
        ),
    ] = "accuracy,missing",
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only these datasets (label or glob); repeatable."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Level of the tests, over all cells together (Holm).")
    ] = 0.05,
    time_factor: Annotated[
        float, typer.Option(help="How many times slower a cell must be, at least.")
    ] = 2.0,
    time_noise: Annotated[
        float,
        typer.Option(help="Relative standard deviation of a cell's time from run to run."),
    ] = 0.1,
    form: Format = Form.table,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Where a side names no store; default: $MLFLOW_TRACKING_URI, else mlflow.db here.",
        ),
    ] = None,
) -> None:
    """Compare two suites, stores, versions or machines on the same splits.

    Accuracies: difference with an interval by the corrected resampled t-test, on one split by the
    binomial error of its test rows. Times: ratio, B
    corrected by the machines' calibration figures, not judged where they cannot be compared.
    """
    from kbench.results.comparison import Noise
    from kbench.results.comparison import compare as compared

    wanted = [] if fail_on == "none" else [each.strip() for each in fail_on.split(",")]
    for each in wanted:
        if each not in _FAIL_ON:
            raise SuiteError(
                f"--fail-on {each!r}: allowed are {', '.join(_FAIL_ON)}, or none alone"
            )
    for option, value, least in (
        ("--time-factor", time_factor, 1.0),
        ("--time-noise", time_noise, 0.0),
        ("--alpha", alpha, 0.0),
    ):
        if not value >= least or (option == "--alpha" and not 0 < value < 1):
            raise SuiteError(f"{option} {value:g} is out of range")
    rows_a, measure_a = _side(a, store)
    rows_b, measure_b = _side(b, store)
    if measure_a != measure_b:
        raise SuiteError(
            f"A compares {measure_a.name} ({measure_a.better} is better), B {measure_b.name} "
            f"({measure_b.better} is better): they are not comparable"
        )
    found = compared(
        _only(rows_a, dataset or [], a),
        _only(rows_b, dataset or [], b),
        measure_a,
        Noise(alpha=alpha, time_factor=time_factor, time_noise=time_noise),
    )
    regressions = found.regressions(wanted)
    if form is Form.table:
        _print(found, regressions, wanted)
    else:
        from kbench import report

        typer.echo(report.write(_table(found), form.value))
    raise typer.Exit(1 if regressions else 0)


# -- sides


def _side(text: str, store: str | None) -> tuple[list[Row], Measure]:
    """Read one side: a file, or runs of a store."""
    from kbench.api.inputs import runs_of
    from kbench.results.comparison import chosen
    from kbench.results.order import by_dataset
    from kbench.results.sources import measure_of, of_run

    path = Path(text)
    if path.suffix == ".json":
        return _of_file(path)
    suite, options = _parsed(text)
    if options.get("machine") == "all":
        raise SuiteError(f"{text!r}: results of one machine are compared; name one")
    version, until = options.get("version", ""), options.get("until")
    earlier = bool(version or until)
    try:
        runs, _, _ = runs_of(
            suite,
            options.get("store") or store,
            options.get("machine"),
            lambda notice: typer.echo(f"{text}: {notice}", err=True),
            superseded=earlier,
        )
    except SuiteError as error:
        if path.suffix == ".toml" or not path.is_file():
            raise
        # the name of a table may be meant, which is what `kbench run` calls its experiment
        raise SuiteError(
            f"{error}; {text} is a file, and those of results are .json, as "
            "`kbench results SUITE --format json` writes them"
        ) from error
    measure = measure_of(runs)
    rows = [of_run(run) for run in runs]
    if earlier:
        rows = chosen(rows, version, None if until is None else _moment(until, text))
        _check_found(rows, runs, text, version)
    checked = _checked([row.to_json(measure) for row in rows], text)
    return by_dataset([row for row, _ in checked]), measure


def _parsed(text: str) -> tuple[str, dict[str, str]]:
    """Split ``SUITE@KEY=VALUE,...,STORE``; the store comes last and may hold any sign.

    >>> _parsed("uci@version=0.1.0,postgresql://me@host/db")
    ('uci', {'version': '0.1.0', 'store': 'postgresql://me@host/db'})
    """
    suite, _, rest = text.partition("@")
    if not suite:
        raise SuiteError(f"{text!r}: the name of a suite comes first, as in uci@version=0.1.0")
    options: dict[str, str] = {}
    while rest:
        key, sign, _ = rest.partition("=")
        if key in _KEYS and sign:
            value, _, rest = rest[len(key) + 1 :].partition(",")
            if not value:
                raise SuiteError(f"{text!r}: {key} has no value")
            options[key] = value
            continue
        where = rest.removeprefix("store=")
        if "://" not in where and not where.endswith(".db"):
            raise SuiteError(
                f"{text!r}: {where!r} is neither a store (a URI, or a .db file) nor one of "
                f"{', '.join(f'{each}=' for each in _KEYS)}"
            )
        options["store"] = where if "://" in where else f"sqlite:///{Path(where).absolute()}"
        rest = ""
    return suite, options


def _moment(text: str, side: str) -> int:
    """Return a date's end, or a time, in milliseconds since 1970."""
    try:
        if len(text) == len("2026-01-31"):
            end = datetime.fromisoformat(text) + timedelta(days=1)
        else:
            end = datetime.fromisoformat(text)
    except ValueError as error:
        today = date.today().isoformat()
        raise SuiteError(f"{side!r}: until={text} is no time; {today} or {today}T15:00") from error
    return int(end.timestamp() * 1000)


def _check_found(rows: Sequence[Row], runs: Sequence[StoredRun], side: str, version: str) -> None:

    if rows:
        return
    versions = {
        each for run in runs for each in run.tags.get("kbench.version", "").split(", ") if each
    }
    there = f"; versions: {', '.join(sorted(versions))}" if version else ""
    raise SuiteError(f"{side!r} fits no run{there}")


def _of_file(path: Any) -> tuple[list[Row], Measure]:
    """Read rows that `kbench results --format json` wrote."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{path} is no JSON: {error}") from error
    if not isinstance(rows, list) or not rows:
        raise SuiteError(f"{path} holds no results; `kbench results SUITE --format json` makes it")
    checked = _checked(
        rows,
        str(path),
        "; `kbench results SUITE --format json` of this version writes all that is needed",
    )
    measures = {measure for _, measure in checked}
    if len(measures) > 1:
        told = sorted((each.name, each.better) for each in measures)
        names = " and ".join(f"{name} ({better} is better)" for name, better in told)
        raise SuiteError(f"{path}: its rows compare {names}; one of them is compared")
    return [row for row, _ in checked], measures.pop()


def _checked(rows: Sequence[Any], where: str, advice: str = "") -> list[tuple[Row, Measure]]:
    """Refuse rows that were not written by kbench, or that somebody has edited."""
    from kbench.results.comparison import from_outside

    checked = []
    for i, row in enumerate(rows):
        try:
            checked.append(from_outside(row))
        except ValueError as error:
            raise SuiteError(f"{where}, row {i}{_cell_of(row)}: {error}{advice}") from None
    return checked


def _cell_of(row: Any) -> str:
    """Name the cell of a row in brackets, as far as it has names that can be printed."""
    names = ("dataset", "feature_map", "learner")
    labels = [row.get(name) for name in names] if isinstance(row, dict) else []
    if not labels or not all(isinstance(each, str) and each.isprintable() for each in labels):
        return ""
    return " ({1:.40} + {2:.40} on {0:.40})".format(*labels)


def _only(rows: Sequence[Row], patterns: Sequence[str], side: str) -> list[Row]:
    if not patterns:
        return list(rows)
    found = [row for row in rows if any(fnmatchcase(row.dataset, each) for each in patterns)]
    if not found:
        names = ", ".join(dict.fromkeys(row.dataset for row in rows))
        raise SuiteError(f"--dataset {' '.join(patterns)} fits nothing in {side}: {names}")
    return found


# -- what is printed


def _table(found: Comparison) -> Table:
    """Return the comparison as a table of a report."""
    from kbench.report.text import Column, Table, p_value, shown, signed
    from kbench.results.comparison import columns
    from kbench.results.rows import TIMES

    measure = found.measure
    made = []
    for name in columns(measure):
        about = next((each for each in (measure.name, *TIMES) if name.startswith(each)), "")
        part = name.removeprefix(about).removeprefix("_") if about else ""

        def written(value: Any, about: str = about, part: str = part) -> str:
            if part == "p":
                return p_value(value)
            if part in ("change", "low", "high"):
                return f"{value:.3g}" if about in TIMES else signed(value)
            return shown(about, value)

        wide = name in ("side", "status_a", "status_b", "doubts") or part in ("p", "a", "b")
        made.append(
            Column(name, written=written, numeric=bool(part) and part != "verdict", wide=wide)
        )
    return Table("compare", "Two sets of results", made, found.rows(), by="dataset")


def _print(found: Comparison, regressions: Sequence[Any], wanted: Sequence[str]) -> None:
    """Print the cells, what changed, and the verdict."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Drawn

    from kbench.report.text import shown, signed
    from kbench.results.rows import TIMES

    measure, console = found.measure, Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    drawn = Drawn(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in ("dataset", "feature_map", "learner"):
        drawn.add_column(name, overflow="fold")
    for name in (f"{escape(measure.name)} A", "B", "B - A", "fit time B / A", "predict time B / A"):
        drawn.add_column(name, justify="right")
    for cell in found.cells:
        change = cell.changes[measure.name]
        accuracy = _styled(change, signed(change.change), _between(change, signed))
        times = [
            _styled(
                cell.changes[name],
                "" if cell.changes[name].change is None else f"{cell.changes[name].change:.2f}",
                _between(cell.changes[name], lambda value: f"{value:.2f}"),
            )
            for name in TIMES
        ]
        ends = [
            shown(measure.name, value) or status
            for value, status in ((change.a, cell.status_a), (change.b, cell.status_b))
        ]
        drawn.add_row(*map(escape, cell.labels), *map(escape, ends), accuracy, *times)
    console.print(drawn)
    for side, only in (("A", found.only_a), ("B", found.only_b)):
        if only:
            console.print(f"\nonly in {side}: {counted(len(only), 'cell')}")
            for labels in list(only)[:20]:
                console.print(f"  {escape(f'{labels[1]} + {labels[2]} on {labels[0]}')}")
            if len(only) > 20:
                console.print(f"  and {len(only) - 20} more")
    console.print()
    for note in found.notes:
        console.print(escape(note), soft_wrap=True)
    for name in (measure.name, *TIMES):
        counts = found.count(name)
        told = [
            f"{counts[verdict]} {words}"
            for verdict, words in (
                ("same", "the same within noise"),
                ("better", "better" if name == measure.name else "faster"),
                ("worse", "worse" if name == measure.name else "slower"),
                ("unknown", "not judged (?)"),
            )
            if counts[verdict]
        ]
        console.print(f"{escape(name)}: {', '.join(told)}")
    for why, count in _why_not(found).most_common(5):
        console.print(f"  ? {counted(count, 'cell')}: {escape(why)}", soft_wrap=True)
    for labels, what in regressions:
        label = f"{labels[1]} + {labels[2]} on {labels[0]}"
        console.print(f"[bold]regression[/bold] {escape(what)}: {escape(label)}", soft_wrap=True)
    if wanted:
        console.print(
            f"{counted(len(regressions), 'regression')} of {' and '.join(wanted)} in "
            f"{counted(len(found.cells), 'cell')} of both"
        )


def _why_not(found: Comparison) -> Any:
    """Count the cells with changes that are not judged, by reason: of either side, in short."""
    return Counter(
        why
        for cell in found.cells
        for why in {
            # "a: the machine was busy: 2 slots on 1 core": the JSON has it all
            why.removeprefix("a: ").removeprefix("b: ").partition(": ")[0]
            for change in cell.changes.values()
            if change.verdict == "unknown"
            for why in change.doubts
        }
    )


def _between(change: Change, written: Any) -> str:
    if change.low is None or change.high is None:
        return ""
    return f" [{written(change.low)}, {written(change.high)}]"


def _styled(change: Change, value: str, interval: str) -> str:
    from rich.markup import escape

    style = {"worse": "bold red", "better": "green"}.get(change.verdict)
    text = escape(value + interval) + (" ?" if change.verdict == "unknown" and value else "")
    return f"[{style}]{text}[/{style}]" if style else text

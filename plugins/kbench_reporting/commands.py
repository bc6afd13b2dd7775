"""`kbench report` and `kbench plot`: a suite's results as a page, and as figures for a paper."""

import re
import webbrowser
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kbench import features
from kbench.errors import SuiteError
from kbench.features import Datasets, Highlight, Open, completion, echo, get_given, options_from
from kbench.messages import did_you_mean
from kbench.parameters import check_integer

_Suite = Annotated[
    str, features.stored_suite(help="Name of a suite, path of its file, or name of its experiment.")
]
_Machine = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Use the runs of this machine; by default the current one."),
]
_Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METHOD",
        help="Exclude this method, written `map + learner`, from ranks and tests; repeatable.",
    ),
]
_Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="Show only this method: `map + learner`, a map or a pattern; repeatable, and with "
        "--dataset the order of the table.",
    ),
]


def _tables(incomplete: str) -> list[str]:
    """Return the tables of a report that begin so."""
    return completion.complete_from(features.table_names())(incomplete)


def _list_tables(wanted: bool) -> None:
    """Print the names of all tables, and end."""
    if wanted:
        for table, title in features.table_names().items():
            echo(f"{table:<21} {title}")
        raise typer.Exit


def _pictures(incomplete: str) -> list[str]:
    """Return the built-in kinds of figures and those of plugins that begin so."""
    from kbench_reporting.pictures import KINDS

    return completion.complete_from([*KINDS, *features.load_registry().all("figure")])(incomplete)


Form = StrEnum("Form", ["html", "latex", "csv", "markdown", "json"])
"""Forms of a report."""


@options_from("load_results")
def report(
    suite: _Suite,
    output: Annotated[
        Path | None,
        features.output_option(
            help="The file to write; default: SUITE.html, or the terminal for tables."
        ),
    ] = None,
    form: Annotated[
        Form | None,
        typer.Option("--format", help="The page (html), or one table in another format."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            autocompletion=_tables,
            help="Print this table instead of the page; --list-tables prints the names.",
        ),
    ] = None,
    list_tables: Annotated[
        bool,
        typer.Option(
            "--list-tables", callback=_list_tables, is_eager=True, help="Print the names of tables."
        ),
    ] = False,
    show: Open = False,
    machine: _Machine = None,
    outdated: bool = False,
    exclude_method: _Exclude = None,
    highlight: Highlight = None,
    methods: _Methods = None,
    datasets: Datasets = None,
    transpose: Annotated[
        bool, typer.Option("--transpose", help="Put methods in rows and datasets in columns.")
    ] = False,
    digits: Annotated[
        int | None, typer.Option("--digits", metavar="N", help="Decimals of the metric.")
    ] = None,
    caption: Annotated[
        str, typer.Option("--caption", metavar="TEXT", help="Caption of a LaTeX table.")
    ] = "",
    label: Annotated[
        str, typer.Option("--label", metavar="NAME", help="Label of a LaTeX table.")
    ] = "",
) -> None:
    """Write a suite's results, read from MLflow, as one self-contained HTML page.

    With --table or a --format other than html, one of its tables is printed instead; the
    options from --method on are for such a table.
    """
    from kbench_reporting.page import page

    is_table = bool(name) or form not in (None, Form.html)
    layout = {"method": methods, "dataset": datasets, "transpose": transpose, "digits": digits}
    _check_layout(is_table, form, layout | {"caption": caption, "label": label})
    if is_table:
        # before any run is read
        name, form = name or "scores", form or Form.markdown
        if form is Form.html:
            raise SuiteError(
                "--format must be latex, csv, markdown or json for one table (--table), got html"
            )
        features.check_table(name)
    registry = features.load_registry()
    content = _content(
        suite, registry, machine, exclude_method, outdated, methods, datasets, digits, highlight
    )
    if name and form:
        made = features.table_named(name, content)
        made = features.transpose_table(made) if transpose else made
        _print_table(made, content.suite, form, output, caption, label)
        return
    name = re.sub(r"[^\w.-]", "-", content.suite)[:100] or "report"
    path = output or Path(f"{name}.html")
    verbs = features.Verbs(partial(echo, err=True))
    written = page(content, registry, verbs=verbs)
    features.write_output(path, written.encode())
    echo(f"{path}: {len(content.rows)} cells, {path.stat().st_size / 1000:.0f} kB")
    context = {"data": content, "page": written, "options": get_given()}
    for _, line in verbs.each("kbench_report_written", **context):
        echo(line)
    if show:
        webbrowser.open(path.resolve().as_uri())


def _check_layout(is_table: bool, form: Form | None, given: Mapping[str, object]) -> None:
    """Refuse options of a table for the page, and those of LaTeX for other forms."""
    used = [name for name, value in given.items() if value not in ("", False, None, [])]
    if used and not is_table:
        raise SuiteError(
            f"--{used[0]} is for one table: name it with --table, or its form with --format"
        )
    if set(used) & {"caption", "label"} and form is not Form.latex:
        raise SuiteError("--caption and --label are for --format latex")
    if (digits := given["digits"]) is not None:
        check_integer(digits, "--digits", least=0, most=15, error=SuiteError)


def _print_table(
    table: features.Table, suite: str, form: Form, output: Path | None, caption: str, label: str
) -> None:
    content = features.write(table, form.value)
    if caption or label:
        content = features.wrap_in_float(content, caption, label)
    if not table.rows:
        echo(f"the table {table.name!r} of {suite} has no rows", err=True)
    if output is None:
        echo(content)
        return
    features.write_output(output, f"{content}\n".encode())
    echo(f"{output}: {table.title}, {len(table.rows)} rows")


@options_from("load_results")
def plot(
    suite: _Suite,
    kind: Annotated[
        str,
        typer.Argument(
            autocompletion=_pictures,
            help="metric-vs-fit-time, metric-vs-predict-time, metric-vs-features, the same as "
            "error-vs-*, scaling, ranks, or a figure of a plugin.",
        ),
    ],
    output: Annotated[Path, features.output_option(help="A .pdf, .png or .svg file.")],
    machine: _Machine = None,
    outdated: bool = False,
    exclude_method: _Exclude = None,
    highlight: Highlight = None,
    methods: _Methods = None,
    datasets: Datasets = None,
) -> None:
    """Draw a figure of a suite's results for a paper."""
    from kbench_reporting.pictures import picture

    form = output.suffix.removeprefix(".").lower()
    if form not in ("pdf", "png", "svg"):
        raise SuiteError(f"-o must be a file that ends in .pdf, .png or .svg, got {output}")
    registry = features.load_registry()
    content = _content(
        suite, registry, machine, exclude_method, outdated, methods, datasets, None, highlight
    )
    features.write_output(output, picture(kind, content, registry, form))
    echo(str(output))


def _content(
    suite: str,
    registry: features.Registry,
    machine: str | None,
    excluded: list[str] | None,
    outdated: bool,
    methods: list[str] | None = None,
    datasets: list[str] | None = None,
    digits: int | None = None,
    highlight: list[str] | None = None,
) -> features.ReportData:
    """Read the results of a suite, and return the content of its report."""
    if machine == "all":
        raise SuiteError(
            "--machine must be the id of one machine, got 'all': times of several machines "
            "cannot be compared"
        )
    notice = partial(echo, err=True)
    stored = features.read_results(
        features.Query(suite, get_given(), machine, outdated=outdated, notice=notice)
    )
    methods_ = features.select_methods(stored.rows, methods or (), "method")
    wanted = features.select_datasets(stored.rows, datasets or (), "dataset")
    rows = [row for row in stored.rows if row.method in methods_ and row.dataset in wanted]
    by_name = {features.format_method(method): method for method in methods_}
    for name in excluded or ():
        if name not in by_name:
            raise SuiteError(
                f"--exclude-method {name!r}: no such method{did_you_mean(name, by_name)}"
            )
    return features.ReportData(
        stored.name,
        sorted(rows, key=lambda row: wanted.index(row.dataset)),
        features.read_suite_or_empty(suite, registry).published,
        features.machine_facts(stored.rows[0].machine)
        | ({"results": stored.left_out} if stored.left_out else {}),
        stored.source,
        [by_name[name] for name in excluded or ()],
        stored.metric,
        stored.budget,
        order=methods_ if methods else (),
        digits=digits,
        focus=features.select_methods(rows, highlight, "highlight")
        if highlight
        else features.find_plugin_methods(rows, registry),
        links=stored.links,
        imported=[
            each
            for each in features.read_imported(stored.name, stored.metric, notice)
            if (not datasets or each.row.dataset in wanted)
            and (not methods or each.row.method in methods_)
        ],
    )

"""Tables as CSV, JSON, LaTeX and Markdown; values formatted for people."""

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from kbench.messages import printable, printable_json, printable_lines
from kbench.records import Metric
from kbench.results.rows import LABELS, METRICS

# Writes a value for people.
Written = Callable[[Any], str]

# Values of a table by the names of its columns.
Line = Mapping[str, Any]

FORMATS = ("table", "csv", "json", "latex", "markdown")

_DIGITS = {
    "fit_time_s": ".4g",
    "predict_time_s": ".4g",
    "search_time_s": ".4g",
    "peak_memory_mib": ".1f",
    "n_components": "g",
}


# Metrics of which four decimals may be too many or too few.
OF_ANY_SIZE = {
    name
    for metric in METRICS.values()
    if metric.task != "classification"
    for name in (metric.name, metric.sd)
}

# Columns that name what a row is about, as `LABELS` do.
_NAMING = ("method", "against", "first", "second", "other", "parameter")

# Names that a sentence lists.
_MAX_NAMED = 6

_ABBREVIATIONS = ("auc", "crps", "ece", "mae", "nlpd", "rmse", "roc")


def write_cell(name: str, value: Any) -> str:
    """Write one value of a results row for people.

    >>> write_cell("accuracy", 0.97333), write_cell("converged", False), write_cell("sd", None)
    ('0.9733', 'no', '')
    >>> write_cell("rmse", 12345.678), write_cell("rmse", 0.00001234), write_cell("rmse", 0.5)
    ('12346', '1.234e-05', '0.5000')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if name in OF_ANY_SIZE:
            return format_number(value)
        if name in METRICS or name.removesuffix("_sd") in METRICS:
            return f"{value:.4f}"
        return format(value, _DIGITS.get(name, ".4g" if abs(value) < 1e4 else ".0f"))
    return str(value)


def format_number(value: float) -> str:
    """Write a number with four decimals, fewer if it is large, and four digits if it is small.

    >>> [format_number(value) for value in (0.0, -0.25, 123.456, 1e7, 0.000345)]
    ['0.0000', '-0.2500', '123.46', '10000000', '0.0003450']
    """
    size = abs(value)
    if size == 0 or 0.001 <= size < 10:
        return f"{value:.4f}"
    if size >= 1e9 or size < 1e-4:
        return f"{value:.3e}"
    return f"{value:.{max(0, (4 if size >= 10 else 3) - math.floor(math.log10(size)))}f}"


def decimals(value: Any, digits: int) -> str:
    """Write a number with some decimals.

    >>> decimals(0.12345, digits=3), decimals(None, digits=3), decimals(12.0, digits=0)
    ('0.123', '', '12')
    """
    return "" if value is None or value != value else f"{value:.{digits}f}"


def write_sd(mean: str, sd: float, written: Written) -> str:
    """Write a standard deviation with as many decimals as its mean, unless it would be zero.

    >>> write_sd("12346", 3.21, str), write_sd("0.9733", 0.02, str), write_sd("12346", 0.21, str)
    ('3', '0.0200', '0.21')
    """
    if mean in ("", "-") or "e" in mean:
        return written(sd)
    sd_text = f"{sd:.{len(mean.partition('.')[2])}f}"
    return sd_text if float(sd_text) or not sd else written(sd)


def heading(metric: Metric) -> str:
    """Write a metric's name as a title.

    >>> heading(Metric("rmse_standardized")), heading(Metric("roc_auc"))
    ('RMSE standardized', 'ROC AUC')
    """
    title = " ".join([w.upper() if w in _ABBREVIATIONS else w for w in metric.words.split()])
    return title[:1].upper() + title[1:]


def plain(value: object) -> str:
    """Write a value of a column without a number of digits."""
    return write_cell("", value)


def p_value(p: float | None) -> str:
    """Write a p value.

    >>> p_value(0.04321), p_value(0.00001), p_value(1.0), p_value(None)
    ('0.043', '< 0.001', '1.000', '')
    """
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def write_signed(
    value: float | None, digits: int = 4, written: Callable[[float], str] | None = None
) -> str:
    """Write a difference with its sign, by `written` or with some decimals; zero has none.

    NaN, such as an end of the interval of a single dataset, is empty.

    >>> write_signed(0.01234), write_signed(-0.5), write_signed(-0.00001)
    ('+0.0123', '−0.5000', '0.0000')
    >>> write_signed(float("nan"), written=format_number)
    ''
    >>> write_signed(-0.00001, written=format_number)
    '−1.000e-05'
    """
    if value is None or value != value:
        return ""
    size = written(abs(value)) if written else f"{abs(value):.{digits}f}"
    return size if float(size) == 0 else ("+" if value > 0 else "−") + size


def share(value: float) -> str:
    """Write a share for people; no estimated share is certain.

    >>> share(0.257), share(0.9999), share(0.001), share(0.0)
    ('26 %', '> 99 %', '< 1 %', '< 1 %')
    """
    return "> 99 %" if value > 0.99 else "< 1 %" if value < 0.01 else f"{100 * value:.0f} %"


def name_some(names: Iterable[str]) -> str:
    """List names in a sentence, a few of many.

    >>> name_some(["a", "b"]), name_some("abcdefgh")
    ('a and b', 'a, b, c, d, e, f and 2 more')
    """
    every = list(names)
    if len(every) <= _MAX_NAMED + 1:
        return join(every)
    return f"{', '.join(every[:_MAX_NAMED])} and {len(every) - _MAX_NAMED} more"


def join(names: Sequence[str]) -> str:
    """Join names with commas and "and".

    >>> join(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def distinct(names: Iterable[str], *taken: str) -> list[str]:
    """Return names as headings of columns that differ from those taken; repeats are numbered.

    >>> distinct(["a", "b", "a", "a (sd)"])
    ['a', 'b', 'a [2]', 'a (sd) [2]']
    """
    headings: list[str] = []
    used = set(taken)
    for name in names:
        tries = (name if i == 1 else f"{name} [{i}]" for i in itertools.count(1))
        headings.append(next(heading for heading in tries if heading not in used))
        used |= {headings[-1], f"{headings[-1]} (sd)"}
    return headings


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its key in the rows, and its heading in CSV and JSON.
    title : str, optional
        Its heading for people; the name by default.
    written : callable, default `plain`
        Writes a value for people.
    numeric : bool, default False
    sd : str, optional
        A column whose value stands behind ± for people, and alone in data.
    wide : bool, default False
        Left out of LaTeX, which lacks the room.
    data_only : bool, default False
        In CSV and JSON only.
    unit : callable, optional
        Chooses from all values one unit for the column of a printed table: its name, and the
        function that writes a value in it.
    """

    name: str
    title: str = ""
    written: Written = plain
    numeric: bool = False
    sd: str = ""
    wide: bool = False
    data_only: bool = False
    unit: Callable[[Sequence[float]], tuple[str, Callable[[float], str]]] | None = None

    @property
    def heading(self) -> str:
        """The heading for people."""
        return self.title or self.name


Place = tuple[int, str]


@dataclass(frozen=True)
class Table:
    """Rows with columns, before they are written in a form.

    Parameters
    ----------
    name, title : str
        Identifier, and caption.
    columns : sequence of Column
    rows : sequence of mapping
        Values by the names of columns; JSON values.
    marks : mapping of (row, column) to {"best", "tie", "better", "worse"}
        The best values, those that no test separates from the best, and improvements or losses.
    notes : mapping of (row, column) to str
        Note next to a value, or in place of a missing one.
    by : str, optional
        A column whose equal neighbours belong together: written once.
    key : str, optional
        A column without which a row has no data; by default all columns of floats.
    styles : mapping of int to str
        Lines that stand out on a terminal, with a style of rich.
    is_grid : bool, default False
        Whether it has datasets as rows and methods as columns, and can be turned.
    narrows : bool, default True
        Whether a sentence may replace columns that are equal in all rows.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Line]
    marks: Mapping[Place, str] = field(default_factory=dict)
    notes: Mapping[Place, str] = field(default_factory=dict)
    by: str = ""
    is_grid: bool = False
    styles: Mapping[int, str] = field(default_factory=dict)
    key: str = ""
    narrows: bool = True

    @classmethod
    def make(
        cls,
        name: str,
        columns: Sequence[Column],
        lines: Iterable[Sequence[object]],
        styles: Iterable[str] = (),
        title: str = "",
    ) -> Self:
        """Return a table of lines with a value for each column."""
        names = [column.name for column in columns]
        rows = [dict(zip(names, line, strict=True)) for line in lines]
        return cls(name, title, columns, rows, styles=dict(enumerate(styles)))

    @property
    def visible(self) -> list[Column]:
        """Columns that people see: a standard deviation is shown next to its mean."""
        behind = {column.sd for column in self.columns}
        return [
            column for column in self.columns if column.name not in behind and not column.data_only
        ]

    @property
    def has_data(self) -> list[bool]:
        """Whether each row has data; all do in a table without numbers that are measured."""
        names = [self.key] if self.key else [each.name for each in self.columns if each.numeric]
        measured = [any(isinstance(row[name], float) for name in names) for row in self.rows]
        return measured if any(measured) else [True] * len(self.rows)

    @property
    def narrowed(self) -> tuple[Self, str]:
        """The table without columns that are equal in all rows, and a sentence with their values.

        Columns that name the row, and measured values, are kept; so are grids and short tables.
        """
        naming, marked = {*LABELS, *_NAMING}, {**self.marks, **self.notes}
        noted = {name for (_, name), text in marked.items() if text}
        rest = [column for column in self.visible if column.name not in naming]
        equal = []
        for column in rest:
            first, *further = [row[column.name] for row in self.rows] or [0.0]
            is_kept = isinstance(first, float) or column.name in (*noted, self.by)
            equal += [] if is_kept or any(value != first for value in further) else [column]
        if not self.narrows or self.is_grid or len(self.rows) < 3 or len(equal) == len(rest):
            return self, ""
        omitted = {name for column in equal for name in (column.name, column.sd)}
        values = [(column.heading, self.value(0, column)) for column in equal]
        words = "; ".join(
            f"{heading}: {' '.join(text.split())}" for heading, text in values if text
        )
        table = replace(self, columns=[each for each in self.columns if each.name not in omitted])
        return table, f"Equal in all rows: {printable(words, None)}." if words else ""

    def value(self, place: int, column: Column) -> str:
        """Write a value for people, without its standard deviation and note."""
        value = self.rows[place][column.name]
        return "" if value is None else column.written(value)

    def format_sd(self, place: int, column: Column) -> str:
        """Write the standard deviation of a value; empty if it has none."""
        sd = self.rows[place].get(column.sd) if column.sd else None
        return "" if sd is None else write_sd(self.value(place, column), sd, column.written)


def write(table: Table, form: str) -> str:
    """Write a table as ``"csv"``, ``"json"``, ``"latex"`` or ``"markdown"``."""
    above = ""
    if form in ("latex", "markdown"):
        table, above = _choose_units(table).narrowed
    writers = {"csv": _csv, "json": _json, "latex": _latex, "markdown": _write_markdown}
    written = writers[form](table)
    if not above:
        return written
    return f"% {above}\n{written}" if form == "latex" else f"{_escape_markdown(above)}\n\n{written}"


def _choose_units(table: Table) -> Table:
    """Return the table with one unit for each column that has units."""
    columns = []
    for column in table.columns:
        if column.unit is not None:
            values = [row[column.name] for row in table.rows if row[column.name] is not None]
            unit, written = column.unit(values)
            column = replace(column, title=f"{column.heading} ({unit})", written=written)
        columns.append(column)
    return replace(table, columns=columns)


def _json(table: Table) -> str:
    names = [column.name for column in table.columns]
    rows = [
        # JSON has no NaN and no infinities
        {n: None if isinstance(v := row[n], float) and not math.isfinite(v) else v for n in names}
        for row in table.rows
    ]
    return printable_json(rows, indent=1)


def _csv(table: Table) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([_harmless(column.name) for column in table.columns])
    for row in table.rows:
        values = (row[column.name] for column in table.columns)
        writer.writerow([_harmless("" if v is None else v) for v in values])
    return buffer.getvalue().rstrip("\n")


def _harmless(value: object) -> object:
    """Keep spreadsheets from running a name as a formula."""
    if not isinstance(value, str):
        return value
    is_formula = value.lstrip()[:1] in ("=", "+", "-", "@", "|") or value[:1] in ("\t", "\r", "\n")
    return ("'" if is_formula else "") + printable_lines(value)


def _write_markdown(table: Table) -> str:
    def cell(place: int, column: Column) -> str:
        return _cell(table, place, column, _escape_markdown, "**{}**", "±")

    columns = table.visible
    lines = [
        "| " + " | ".join(_escape_markdown(column.heading) for column in columns) + " |",
        "|" + "|".join(" ---: " if column.numeric else " --- " for column in columns) + "|",
    ]
    for place in range(len(table.rows)):
        lines.append("| " + " | ".join(cell(place, column) for column in columns) + " |")
    return "\n".join(lines)


def _escape_markdown(text: str) -> str:
    """Escape text for a cell of a table."""
    escapes = {ord(sign): f"\\{sign}" for sign in "\\|<>*_`[]"}
    return printable(" ".join(text.translate(escapes).split()), None)


def _cell(
    table: Table, place: int, column: Column, escape: Callable[[str], str], bold: str, sign: str
) -> str:
    """Write a value, its standard deviation, and a note behind the value or in its place."""
    cell = escape(table.value(place, column))
    if table.marks.get((place, column.name)) == "best" and cell:
        cell = bold.format(cell)
    spread = escape(table.format_sd(place, column))
    note = escape(table.notes.get((place, column.name), ""))
    parts = (cell, spread and f"{sign} {spread}", note and (f"({note})" if cell else note))
    return " ".join(part for part in parts if part)


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "−": r"\ensuremath{-}",
    "±": r"\ensuremath{\pm}",
    "µ": r"\ensuremath{\mu}",
}


def latex_text(text: str) -> str:
    r"""Escape text for LaTeX.

    >>> latex_text("50 % of_{x}")
    '50 \\% of\\_\\{x\\}'
    """
    return "".join(_LATEX.get(sign, sign) for sign in printable(" ".join(text.split()), None))


def _latex(table: Table) -> str:
    """Write a booktabs table; the best is bold."""

    def cell(place: int, column: Column) -> str:
        return _cell(table, place, column, latex_text, r"\textbf{{{}}}", r"$\pm$")

    columns = [column for column in table.visible if not column.wide]
    lines = [
        f"% {printable(' '.join(table.title.split()), None)}",
        "% needs \\usepackage{booktabs} and, for quotation marks, \\usepackage[T1]{fontenc}",
        r"\begin{tabular}{" + "".join("r" if column.numeric else "l" for column in columns) + "}",
        r"\toprule",
        _latex_line(latex_text(column.heading) for column in columns),
        r"\midrule",
    ]
    before = None
    has_data = table.has_data
    if n_omitted := has_data.count(False):
        lines.insert(1, f"% left out: {n_omitted} of {len(has_data)} rows, which have no data")
    for place, row in enumerate(table.rows):
        if not has_data[place]:
            continue
        again = bool(table.by) and row[table.by] == before
        if table.by and before is not None and not again:
            lines.append(r"\midrule")
        before = row[table.by] if table.by else None
        cells = ("" if again and each.name == table.by else cell(place, each) for each in columns)
        lines.append(_latex_line(cells))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex_line(cells: Iterable[str]) -> str:
    line = " & ".join(cells) + r" \\"
    # LaTeX would read a bracket behind \\ as its argument
    return f"{{}}{line}" if line.startswith(("[", "*")) else line

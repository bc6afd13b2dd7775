"""Tables of a run that was stored: ``.. stored:: measured/uci.json`` with a table's name.

The name ``answer`` gives the last lines of `kbench suite` instead of a table.

The file is what `tests/benchmarks/keep_run.py` keeps of `kbench results SUITE --format json`.
Nothing is computed but what `kbench results` and `kbench report` compute from the same rows.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from kbench.records import Metric
from kbench.report.content import ReportData
from kbench.report.paper import transpose_table
from kbench.report.tables import (
    answer_sentences,
    leaderboard_table,
    table_named,
    table_names,
)
from kbench.report.text import Table
from kbench.results.leaderboard import leaderboard
from kbench.results.rows import Row, complete_metric


def stored(path: Path) -> ReportData:
    """Return the content of a stored run."""
    lines = json.loads(path.read_text(encoding="utf-8"))
    metric = complete_metric(Metric(lines[0]["metric"], lines[0]["better"]))
    return ReportData("uci", [row_of(line) for line in lines], metric=metric)


def row_of(line: dict) -> Row:
    """Return a row of `kbench results --format json`."""
    own = {field.name for field in dataclasses.fields(Row)}
    given = {name: value for name, value in line.items() if name in own}
    given["search_space"] = tuple(given["search_space"])
    numbers = {
        name: float(value)
        for name, value in line.items()
        if name not in own and isinstance(value, int | float)
    }
    return Row(**given, metrics=numbers)


class Stored(SphinxDirective):
    """One table of a stored run: ``leaderboard``, or one of a report."""

    required_arguments = 1
    option_spec: ClassVar = {
        "table": directives.unchanged_required,
        "columns": directives.unchanged,
        "transpose": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the table, the best values in bold, and a sentence on what is behind it."""
        name = self.options.get("table", "leaderboard")
        path = Path(self.env.srcdir) / self.arguments[0]
        self.env.note_dependency(str(path))
        content = stored(path)
        board = leaderboard(content.rows, content.metric)
        if name == "answer":
            text = "\n".join(answer_sentences(board))
            return [nodes.literal_block(text, text, language="text")]
        if name == "leaderboard":
            columns = self.options.get("columns", "").split()
            made = leaderboard_table(board, columns)
        elif name in table_names():
            made = table_named(name, content)
        else:
            raise self.error(f"no such table: {name}; available: {', '.join(table_names())}")
        if "transpose" in self.options:
            made = transpose_table(made)
        busy = sum(bool(row.contention) for row in content.rows)
        text = f"{len(content.rows)} cells of {len(content.datasets)} datasets."
        if busy:
            text += f" {busy} of them ran on a loaded machine: their times are too long."
        return [drawn(made), nodes.paragraph(text, text)]


def drawn(table: Table) -> nodes.table:
    """Return a table as nodes."""
    columns = table.visible
    group = nodes.tgroup(cols=len(columns))
    group += [nodes.colspec(colwidth=1) for _ in columns]
    head, body = nodes.thead(), nodes.tbody()
    head += line([nodes.Text(column.heading) for column in columns])
    for place in range(len(table.rows)):
        cells: list[nodes.Node] = []
        for column in columns:
            # a number stays beside its unit
            text = table.value(place, column).replace(" ", "\N{NO-BREAK SPACE}")
            best = table.marks.get((place, column.name)) == "best"
            cells.append(nodes.strong(text, text) if best else nodes.Text(text))
        body += line(cells)
    group += [head, body]
    return nodes.table("", group)


def line(cells: list[nodes.Node]) -> nodes.row:
    """Return a row of a table."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def setup(app):
    """Add the directive."""
    app.add_directive("stored", Stored)
    return {"version": "1", "parallel_read_safe": True}

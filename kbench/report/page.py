"""The HTML page of a report: one file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import json
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from kbench import records
from kbench._version import __version__
from kbench.errors import PluginError
from kbench.messages import counted, printable, printable_json
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
from kbench.report import certainty, charts, diagram, figures, imported, leaderboard, looks
from kbench.report import content as content_module
from kbench.report.added import added_sections
from kbench.report.content import Entry, ReportData, name_of
from kbench.report.digits import decimals_for
from kbench.report.escaping import environment_of_pages
from kbench.report.sections import Chart
from kbench.report.svg import checked
from kbench.report.tables import TABLES, lacking
from kbench.report.text import OF_ANY_SIZE, beside, decimals, heading, p_value, shown
from kbench.results.rows import Method, columns
from kbench.results.stats import smallest_p

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_EMBEDDED_SVG = 300_000
"""Bytes of a plugin's figure beyond which it is embedded as PNG."""

_MOST_LISTED = 50
"""Remarks of a kind that are listed; the table `doubts` has all."""
_SCRIPTS = (
    *("sort", "fold", "filter", "choose", "numbers", "cells", "details", "two", "search"),
    *("light", "tip", "error", "download", "state"),
)
"""Parts of the page's script, in the order in which they need each other."""
_SHOWN = (
    *("leaderboard", "focus", "plain", "methods", "ranks", "pairs", "others", "budgets"),
    *("failures", "skipped", "unavailable"),
)
"""Tables that the page draws as they are; its template lays out the others."""


@dataclass(frozen=True)
class Block:
    """A part of the answer at the top of a page: a title with a note, a table and a picture.

    `picture` is made by the drawing functions of `kbench.report`. If `folded`, the reader unfolds
    the table.
    """

    title: str
    note: str = ""
    headings: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    picture: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Lead:
    """Top of the page: the answer to a user's question.

    The recommendation with its reasons, on what it was measured, the command to type next, and
    what stands behind the answer.
    """

    sentences: Sequence[str]
    facts: Sequence[str] = ()
    command: str = ""
    blocks: Sequence[Block] = ()


def page(
    content: ReportData,
    registry: Registry,
    lead: Lead | None = None,
    verbs: Verbs | None = None,
) -> str:
    """Write the report of a suite as one self-contained HTML page, with `lead` at the top.

    The registry has the figures, and further sections (``*.html.j2``), of plugins; `verbs` the
    features that add sections, the installed ones by default. Every name is escaped; nothing is
    loaded from elsewhere.
    """
    from markupsafe import Markup

    environment = environment_of_pages()
    environment.filters |= {"p": p_value, "quoted": shlex.quote}
    environment.globals |= {
        "name_of": name_of,
        "shown": shown,
        "beside": beside,
        "counted": counted,
        "most_listed": _MOST_LISTED,
    }
    numbers = {method: str(i) for i, method in enumerate(content.methods)}
    environment.globals["numbers_of"] = partial(_numbers_of, numbers)
    folder = files("kbench.report") / "templates"
    names = columns(content.measure, content.task)
    curves = content.curves()
    values: dict[str, Any] = {
        "content": content,
        "lead": lead,
        "measure": content.measure,
        "heading": heading(content.measure),
        "lacking": lacking(content.measure),
        "written": partial(shown, content.measure.name),
        "digits_of": partial(_digits_of, content),
        "looks": looks.Looks(content.rows),
        "sample": lambda shape: Markup(looks.sample(shape)),
        "leaderboard_sentences": leaderboard.sentences(content.leaderboard),
        "in_focus": [numbers[method] for method in content.focus if method in numbers],
        "tables": {name: make(content) for name, (_, make) in TABLES.items() if name in _SHOWN},
        "columns": names,
        "any_size": json.dumps([name for name in names if name in OF_ANY_SIZE]),
        "cells": Markup(
            _script_json([[row.value(name) for name in names] for row in content.rows])
        ),
        "most_lines": charts.MOST_LINES,
        "checked": lambda picture: Markup(checked(picture)),
        "version": __version__,
        "alpha": content_module.ALPHA,
        "rope": content_module.ROPE,
        "others_sentence": imported.SENTENCE,
        "smallest_p": smallest_p(len(content.scores.tried)),
        "css": Markup((folder / "page.css").read_text(encoding="utf-8")),
        "js": Markup(_scripts(folder / "page")),
        "data": Markup(_script_json(content.splits_by_cell())),
        "curves": Markup(_script_json(curves)) if curves["methods"] else "",
        "diagram": "",
        "figures": [
            _embedded(figure, content)
            for figure in figures.given_for(content.suite, registry).values()
        ],
    }
    if content.standings:
        values["stable"] = certainty.is_stable(content)
        values["stability"] = certainty.stability_sentences(content)
        values["fronts"] = [
            certainty.front_sentence(content, content.certainty.front(cost.attribute), cost.title)
            for cost in charts.drawn_costs(content)
        ]
        methods = [standing.name for standing in content.standings]
        ranks = [standing.rank for standing in content.standings]
        values["diagram"] = Markup(diagram.draw(methods, ranks, content.cliques()))
        values["of_costs"] = [_shown(chart) for chart in charts.of_costs(content)]
        values["of_growth"] = [_shown(chart) for chart in charts.of_growth(content)]
    values["sections"] = [
        _section(name, section, environment, values)
        for name, section in sorted(registry.all("dashboard").items())
        if name.endswith(".html.j2")
    ]
    values["added"] = added_sections(content, environment, verbs or Verbs(warnings.warn))
    return environment.get_template("page.html.j2").render(values)


def _shown(chart: Chart) -> dict[str, Any]:
    from markupsafe import Markup

    pictures = {"picture": Markup(chart.svg), "as_error": Markup(chart.as_error)}
    return {"title": chart.title, "table": chart.table} | pictures


def _digits_of(content: ReportData, entries: Sequence[Entry]) -> Callable[[Any], str]:
    """Return the function that writes the values of a dataset, with the digits that count."""
    rows = [entry.row for entry in entries if entry.row is not None]
    digits = content.digits
    if digits is None:
        digits = decimals_for(rows, content.measure)
    name = content.measure.name
    return partial(shown, name) if digits is None else partial(decimals, digits=digits)


def _scripts(folder: Traversable) -> str:
    parts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    return "\n".join(['"use strict";', *parts])


def _numbers_of(numbers: Mapping[Method, str], row: Mapping[str, Any]) -> str:
    """Return the numbers of the methods that a row of a table is about, with spaces."""
    if "first" in row and "second" in row:
        return _both(numbers, row["first"], row["second"])
    if "method" in row and "against" in row:
        return _both(numbers, row["method"], row["against"])
    return numbers.get((row.get("feature_map", ""), row.get("learner", "")), "")


def _both(numbers: Mapping[Method, str], *names: str) -> str:
    by_name = {name_of(method): number for method, number in numbers.items()}
    return " ".join(filter(None, (by_name.get(name, "") for name in names)))


def _script_json(value: Any) -> str:
    """Write JSON that no name in it can break out of a script element."""
    text = printable_json(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _section(name: str, file: Traversable, environment: Environment, values: Any) -> Markup:
    """Render a plugin's section, or the problem with it."""
    from markupsafe import Markup

    try:
        template = environment.from_string(file.read_text(encoding="utf-8"))
        return Markup(template.render(values))
    except Exception as error:
        problem = printable(f"{type(error).__name__}: {error}")
        return Markup('<p class="bad">the section {} cannot be shown: {}</p>').format(name, problem)


def _embedded(figure: records.Figure, content: ReportData) -> dict[str, str]:
    """Draw a plugin's figure as an image, or return the problem."""
    try:
        form, data = "svg+xml", figures.given_picture(figure, content, "svg")
        if len(data) > _EMBEDDED_SVG:
            form, data = "png", figures.given_picture(figure, content, "png")
    except PluginError as error:
        return {"title": figure.title, "problem": str(error)}
    # in an image no script runs
    address = f"data:image/{form};base64,{base64.b64encode(data).decode('ascii')}"
    return {"title": figure.title, "address": address, "name": figure.name}

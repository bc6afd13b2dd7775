"""The HTML page of a report: one file that loads nothing from elsewhere."""

from __future__ import annotations

import base64
import json
import shlex
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
from kbench.report import (
    agreement,
    charts,
    claims,
    diagram,
    figures,
    leaderboard,
    looks,
    metric,
    others,
)
from kbench.report import content as content_module
from kbench.report.content import Entry, ReportData, name_of
from kbench.report.digits import decimals_for
from kbench.report.escaping import environment_of_pages
from kbench.report.explanation import Explanation
from kbench.report.tables import TABLES, lacking
from kbench.report.text import OF_ANY_SIZE, beside, decimals, heading, p_value, shown
from kbench.results.published import agreements
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
    *("leaderboard", "focus", "plain", "methods", "ranks", "pairs", "published", "others"),
    *("budgets", "failures", "skipped", "unavailable"),
    *("variance", "components", "optimism", "warnings"),
)
"""Tables that the page draws as they are; its template lays out the others."""


@dataclass(frozen=True)
class Lead:
    """Top of the page: the answer to a user's question.

    The recommendation with its reasons, on what it was measured, and the
    command to type next; a table of what became of the user's columns; and what the
    recommended method uses.
    """

    sentences: Sequence[str]
    facts: Sequence[str] = ()
    command: str = ""
    headings: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    explanation: Explanation | None = None


def page(content: ReportData, registry: Registry, lead: Lead | None = None) -> str:
    """Write the report of a suite as one self-contained HTML page, with `lead` at the top.

    The registry has the figures, and further sections (``*.html.j2``), of
    plugins. Every name is escaped; nothing is loaded from elsewhere.
    """
    from markupsafe import Markup

    environment = environment_of_pages()
    environment.filters |= {"p": p_value, "quoted": shlex.quote}
    environment.globals |= {
        "name_of": name_of,
        "shown": shown,
        "beside": beside,
        "counted": counted,
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
        "most_listed": _MOST_LISTED,
        "most_lines": charts.MOST_LINES,
        "residuals": Markup(lead.explanation.picture if lead and lead.explanation else ""),
        "version": __version__,
        "alpha": content_module.ALPHA,
        "rope": content_module.ROPE,
        "others_sentence": others.SENTENCE,
        "smallest_p": smallest_p(len(content.scores.groups)),
        "css": Markup((folder / "page.css").read_text(encoding="utf-8")),
        "js": Markup(_scripts(folder / "page")),
        "data": Markup(_script_json(content.splits_by_cell())),
        "variance": claims.variance_sentences(content),
        "optimism": claims.optimism_sentences(content),
        "warnings": claims.warnings(content),
        "curves": Markup(_script_json(curves)) if curves["methods"] else "",
        "diagram": "",
        "metrics": [
            {"metric": each, "words": metric.described(each), "picture": Markup(each.picture)}
            for each in content.learned_metrics()[:_MOST_LISTED]
        ],
        "agreements": [
            {
                "sentences": agreement.sentences(each),
                "pictures": [Markup(agreement.scatter(each)), Markup(agreement.histogram(each))],
            }
            for each in agreements(content.beside_published())
        ],
        "figures": [
            _embedded(figure, content)
            for figure in figures.given_for(content.suite, registry).values()
        ],
    }
    if content.standings:
        values["stable"] = claims.is_stable(content)
        values["stability"] = claims.stability_sentences(content)
        values["fronts"] = [
            claims.front_sentence(content, content.claims.front(cost.attribute), cost.title)
            for cost in charts.drawn_costs(content)
        ]
        methods = [standing.name for standing in content.standings]
        ranks = [standing.rank for standing in content.standings]
        values["diagram"] = Markup(diagram.draw(methods, ranks, content.cliques()))
        values["charts"] = [
            {
                "title": chart.title,
                "picture": Markup(chart.svg),
                "as_error": Markup(chart.as_error),
                "table": chart.table,
            }
            for chart in charts.of(content)
        ]
    values["sections"] = [
        _section(name, section, environment, values)
        for name, section in sorted(registry.all("dashboard").items())
        if name.endswith(".html.j2")
    ]
    return environment.get_template("page.html.j2").render(values)


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

"""The HTML page of a report: a single self-contained file."""

import base64
import itertools
import json
import re
import shlex
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from kbench import features, records
from kbench._version import __version__
from kbench.errors import PluginError
from kbench.messages import plural, printable, printable_json, printable_lines
from kbench.records import ACCURACY
from kbench_reporting import charts, diagram, findings, pictures, tables

if TYPE_CHECKING:
    from jinja2 import Environment

_SUBSCRIPT = re.compile(r"_\{(\w+)\}")

_EMBEDDED_SVG = 300_000
"""Bytes of a plugin's figure beyond which it is embedded as PNG."""

_MAX_LISTED = 50
"""Warnings of a kind that are listed; the table `warnings` has all."""
_SCRIPTS = (
    *("sort", "fold", "filter", "choose", "numbers", "cells", "details", "two", "search"),
    *("light", "tip", "error", "download", "state"),
)
"""Parts of the page's script, in the order in which they need each other."""
_SHOWN = (
    *("leaderboard", "highlighted", "scores_default_metric", "methods", "ranks", "pairs"),
    *("imported", "budgets", "failures", "skipped", "unavailable"),
)
"""Tables that the page shows as they are; its template lays out the others."""


def page(
    content: features.ReportData,
    registry: features.Registry,
    lead: features.Lead | None = None,
    verbs: features.Verbs | None = None,
) -> str:
    """Write the report of a suite as one self-contained HTML page, with `lead` at the top.

    The registry has the plots, and further sections (``*.html.j2``), of plugins; `verbs` the
    features that add sections, the installed ones by default. Every name is escaped; nothing is
    loaded from elsewhere.
    """
    numbers = {method: str(i) for i, method in enumerate(content.methods)}
    by_name = {features.format_method(method): number for method, number in numbers.items()}
    environment, sandbox = (
        features.environment_of_pages(__package__, each) for each in (False, True)
    )
    for each in (environment, sandbox):
        each.filters |= {
            "p": features.p_value,
            "quoted": shlex.quote,
            "grouped": _group,
            "picture": lambda svg: Markup(checked_picture(svg)),
            "subscripts": lambda text: Markup(
                _SUBSCRIPT.sub(r"<sub>\1</sub>", str(escape(printable_lines(text))))
            ),
        }
        each.globals |= {
            "name_of": features.format_method,
            "shown": features.write_cell,
            "beside": features.write_sd,
            "plural": plural,
            "most_listed": _MAX_LISTED,
            "numbers_of": partial(_row_numbers, numbers | by_name),
        }
    folder = files(__package__) / "templates/page"
    scripts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS]
    names = features.columns(content.metric, content.task)
    curves, budgets = list_curves(content), findings.ordered_budgets(content)
    values: dict[str, object] = {
        "content": content,
        "lead": lead,
        "metric": content.metric,
        "heading": features.heading(content.metric),
        "lacking": features.lacking(content.metric),
        "written": partial(features.write_cell, content.metric.name),
        "digits_of": partial(_list_digits, content),
        "looks": features.Styles(content.rows),
        "sample": lambda shape: Markup(charts.sample(shape)),
        "leaderboard_sentences": features.leaderboard_sentences(content.leaderboard),
        "unmeasured": features.stats.list_unmeasured(content.rows, content.metric),
        "run": findings.what_was_run(content.rows),
        "warnings": findings.warnings(content.rows),
        "matrix": findings.entries(content),
        "shortened": tables.is_shortened(content),
        "in_focus": [numbers[method] for method in content.focus if method in numbers],
        "tables": {name: getattr(tables, name)(content) for name in _SHOWN},
        "columns": names,
        "any_size": json.dumps([name for name in names if name in features.OF_ANY_SIZE]),
        "cells": Markup(
            _script_json([[row.value(name) for name in names] for row in content.rows])
        ),
        "most_lines": features.MAX_LINES,
        "version": __version__,
        "alpha": features.ALPHA,
        "rope": features.ROPE,
        "imported_sentence": features.IMPORTED,
        "answer": features.answer_sentences(content.leaderboard, content.focus),
        "css": Markup((files("kbench.report") / "templates/page.css").read_text(encoding="utf-8")),
        "js": Markup("\n".join(['"use strict";', *scripts])),
        "data": Markup(_script_json(splits_by_cell(content))),
        "curves": Markup(_script_json(curves)) if curves["methods"] else "",
        "budget_sentences": findings.budget_sentences(budgets, content.budget),
        "diagram": "",
        "figures": [
            _embed(figure, content)
            for figure in registry.all("figure").values()
            if not figure.suites or content.suite in figure.suites
        ],
    }
    if content.standings:
        means = [standing.mean for standing in content.standings]
        values["best_mean"] = max(means, key=content.metric.gain)
        values["stability"] = findings.stability_sentences(content)
        values["fronts"] = [
            findings.front_sentence(content.certainty.front(cost.attribute), cost.title)
            for cost in charts.drawn_costs(content)
        ]
        methods = [standing.name for standing in content.standings]
        ranks = [standing.rank for standing in content.standings]
        values["diagram"] = Markup(diagram.draw(methods, ranks, findings.worse(content)))
        values["of_costs"] = list(charts.cost_charts(content))
        values["of_growth"] = list(charts.growth_charts(content))
    values["sections"] = [
        _section(name, section, sandbox, values)
        for name, section in sorted(registry.all("dashboard").items())
        if name.endswith(".html.j2")
    ]
    values["added"] = added_sections(content, environment, verbs or features.Verbs(warnings.warn))
    return environment.get_template("page.html.j2").render(values)


def _list_digits(
    content: features.ReportData, entries: Sequence[findings.Entry]
) -> features.Written:
    """Return the function that writes the values of a dataset, with the digits that count."""
    rows = [entry.row for entry in entries if entry.row is not None]
    usual = findings.decimals_for(rows, content.metric)
    return features.value_writer(
        content.metric, usual if content.digits is None else content.digits
    )


def list_curves(content: features.ReportData) -> dict[str, object]:
    """Return the search curves as the page draws them: by method, parameter, dataset.

    Each has the name of the metric of its search, its direction, and whether it is in
    the target's units.
    """
    number = {dataset: i for i, dataset in enumerate(content.datasets)}
    lines = features.group_values(
        (row.method, (name, [number[row.dataset], points, each.words, each.better, each.in_units]))
        for row in content.rows
        if (each := row.searched) is not None
        for name, points in row.search.items()
    )
    return {
        "methods": [
            [features.format_method(method), features.group_values(lines[method])]
            for method in content.methods
            if method in lines
        ],
        "datasets": content.datasets,
    }


def splits_by_cell(content: features.ReportData) -> dict[str, object]:
    """Return the data with which the page compares any two methods on each dataset.

    The metric of every split, rounded to twelve digits: to fewer, equal differences
    would differ.
    """
    from scipy.stats import t

    place = {method: i for i, method in enumerate(content.methods)}
    number = {dataset: i for i, dataset in enumerate(content.datasets)}
    cells: list[tuple[int, int, float, float, dict[str, float]]] = []
    for row in content.rows:
        value = row.value(content.metric.name)
        if row.status != "ok" or value is None:
            continue
        by_split = {
            f"{i}/{str(row.split_hash.get(i, ''))[:6]}": features.round_mean(split_value)
            for i, split_value in row.by_split(content.metric.name).items()
        }
        ratio = round(features.holdout_ratio(row), 6)
        at = number[row.dataset], place[row.method]
        cells.append((*at, features.round_mean(value), ratio, by_split))
    most = max((len(cell[-1]) for cell in cells), default=0)
    critical = [round(float(t.ppf(1 - features.ALPHA / 2, n - 1)), 4) for n in range(2, most + 1)]
    return {
        "datasets": content.datasets,
        "methods": [features.format_method(method) for method in content.methods],
        "cells": cells,
        "sign": content.metric.gain(1),
        "in_units": content.metric.in_units,
        "any_size": content.metric.task != "classification" and content.metric != ACCURACY,
        "equal": features.EQUAL,
        "no_test": features.NO_TEST,
        "t": [0.0, 0.0, *critical],
    }


def _row_numbers(numbers: Mapping[features.Method | str, str], row: features.TableLine) -> str:
    """Return the numbers of the methods that a row of a table is about, with spaces."""
    for names in (("first", "second"), ("method", "against")):
        if all(name in row for name in names):
            return " ".join(filter(None, (numbers.get(row[name], "") for name in names)))
    return numbers.get((row.get("feature_map", ""), row.get("learner", "")), "")


def _script_json(value: object) -> str:
    """Write JSON that no name in it can break out of a script element."""
    content = printable_json(value, separators=(",", ":"))
    return content.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _section(
    name: str, file: Traversable, environment: "Environment", values: Mapping[str, object]
) -> Markup:
    """Render a plugin's section, or the problem with it."""
    try:
        return Markup(environment.from_string(file.read_text("utf-8")).render(values))
    except Exception as error:
        problem = printable(f"{type(error).__name__}: {error}")
        return Markup('<p class="bad">the section {} cannot be shown: {}</p>').format(name, problem)


def _embed(figure: records.Figure, content: features.ReportData) -> dict[str, str]:
    """Draw a plugin's figure as an image, or return the problem."""
    try:
        form, data = "svg+xml", pictures.given_picture(figure, content, "svg")
        if len(data) > _EMBEDDED_SVG:
            form, data = "png", pictures.given_picture(figure, content, "png")
    except PluginError as error:
        return {"title": figure.title, "problem": str(error)}
    # in an image no script runs
    address = f"data:image/{form};base64,{base64.b64encode(data).decode('ascii')}"
    return {"title": figure.title, "address": address, "name": figure.name}


# -- sections of features: each is rendered by itself, so that a bad one is left out


@dataclass(frozen=True)
class Added:
    """A section of a feature, rendered; `charts` are those that stand among charts of the core."""

    section: features.Section
    markup: Markup
    charts: Markup


def added_sections(
    content: features.ReportData, environment: "Environment", verbs: features.Verbs
) -> list[Added]:
    """Render the sections of features; one that cannot be rendered leaves its feature out.

    No section may have an id that the template of the page has.
    """
    macros: Any = environment.get_template("section.html.j2").module
    source = (files(__package__) / "templates/page.html.j2").read_text(encoding="utf-8")
    taken = set(re.findall(r'\bid="([\w-]+)"', source))
    made: list[tuple[str, Added]] = []
    failed = set()
    for feature, section in features.collect_sections(content, verbs):
        if not section.list_parts() or section.within == "terminal" or feature.name in failed:
            continue
        try:
            if section.name in taken:
                raise ValueError(f"another section has the name {section.name!r}")
            taken.add(section.name)
            made.append((feature.name, _render(section, macros)))
        except Exception as error:
            failed.add(feature.name)
            verbs.fail(feature.name, f"{section.title}: {type(error).__name__}: {error}")
    return [each for name, each in made if name not in failed]


def _render(section: features.Section, macros: Any) -> Added:
    parts, charts = section.list_parts(), []
    if section.within == "times":
        charts = [part for part in parts if isinstance(part, features.Chart)]
        parts = [part for part in parts if not isinstance(part, features.Chart)]
    make = {"": macros.section, "warnings": macros.warnings, "run": macros.line}
    markup = make.get(section.within, macros.rest)(section, parts)
    return Added(section, markup, macros.charts(charts))


def _group(parts: Sequence[features.Part]) -> Iterator[tuple[str, list[features.Part]]]:
    """Yield neighbouring parts of a kind together, with its name."""
    for kind, group in itertools.groupby(parts, key=type):
        yield kind.__name__, list(group)


_ACTIVE = ("href", "id", "src", "style")
_TAGS = frozenset(("svg", "title", "g", "path", "circle", "rect", "line", "text"))


def checked_picture(picture: str) -> str:
    """Return a figure if it has only what the functions of `kbench.features` make.

    Raises
    ------
    ValueError
        It is not well-formed, or has other elements, or attributes that may run or load something.

    Examples
    --------
    >>> checked_picture('<svg><circle onclick="alert(1)"/></svg>')
    Traceback (most recent call last):
    ValueError: not made by the functions of kbench.features: it has onclick
    """
    # comments and character data are not the same in XML and HTML
    problems = [sign for sign in ("<!", "<?") if sign in picture]
    try:
        elements = [] if problems else list(ET.fromstring(picture).iter())
    except ET.ParseError as error:
        raise ValueError(f"a figure is not well-formed: {error}") from error
    for each in elements:
        problems += {each.tag.rpartition("}")[2]} - _TAGS
        names = [name.rpartition("}")[2] for name in each.attrib]
        problems += [name for name in names if name.startswith("on") or name in _ACTIVE]
    if problems:
        raise ValueError(f"not made by the functions of kbench.features: it has {problems[0]}")
    return picture

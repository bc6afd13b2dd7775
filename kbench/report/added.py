"""Sections of features on the page: each is rendered by itself, so that a bad one is left out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kbench.messages import printable_lines
from kbench.registry.verbs import Verbs
from kbench.report.content import ReportData
from kbench.report.sections import Chart, Part, Section, sections_of
from kbench.report.svg import checked

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_SUBSCRIPT = re.compile(r"_\{(\w+)\}")


@dataclass(frozen=True)
class Added:
    """A section of a feature, rendered; `charts` are those that stand among charts of the core."""

    section: Section
    markup: Markup
    charts: Markup


@dataclass(frozen=True)
class AddedSections:
    """What features add to a page, by its places."""

    every: Sequence[Added] = field(default_factory=list)

    def after(self, place: str) -> list[Added]:
        """Return the sections that follow one of the core."""
        own = (each for each in self.every if not each.section.within)
        return [each for each in own if each.section.after == place]

    def within(self, place: str) -> list[Added]:
        """Return the parts of a section of the core."""
        return [each for each in self.every if each.section.within == place]


def added_sections(content: ReportData, environment: Environment, verbs: Verbs) -> AddedSections:
    """Render the sections of features; one that cannot be rendered leaves its feature out.

    No section may have an address that the template of the page has.
    """
    environment.filters |= {"subscripts": _with_subscripts, "picture": _picture}
    macros: Any = environment.get_template("section.html.j2").module
    source = (files("kbench.report") / "templates/page.html.j2").read_text(encoding="utf-8")
    taken = set(re.findall(r'\bid="([\w-]+)"', source))
    made: list[tuple[str, Added]] = []
    failed = set()
    for feature, section in sections_of(content, verbs):
        if not section.shown() or section.within == "terminal" or feature.name in failed:
            continue
        try:
            if section.name in taken:
                raise ValueError(f"another section has the name {section.name!r}")
            taken.add(section.name)
            made.append((feature.name, _rendered(section, macros)))
        except Exception as error:
            failed.add(feature.name)
            verbs.fail(feature.name, f"{section.title}: {type(error).__name__}: {error}")
    return AddedSections([each for name, each in made if name not in failed])


def _rendered(section: Section, macros: Any) -> Added:
    parts, charts = section.shown(), []
    if section.within == "times":
        charts = [part for part in parts if isinstance(part, Chart)]
        parts = [part for part in parts if not isinstance(part, Chart)]
    groups = list(_grouped(parts))
    make = {"times": macros.rest, "doubts": macros.doubts, "run": macros.line}
    markup = make.get(section.within, macros.section)(section, groups)
    return Added(section, markup, macros.charts(charts))


def _grouped(parts: Sequence[Part]) -> Iterator[tuple[str, list[Part]]]:
    """Yield neighbouring parts of a kind together, with its name."""
    for kind, group in itertools.groupby(parts, key=type):
        yield kind.__name__, list(group)


def _with_subscripts(text: str) -> Markup:
    from markupsafe import Markup, escape

    return Markup(_SUBSCRIPT.sub(r"<sub>\1</sub>", str(escape(printable_lines(text)))))


def _picture(svg: str) -> Markup:
    from markupsafe import Markup

    return Markup(checked(svg))

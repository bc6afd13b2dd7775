"""What features show on pages and in figures: sections, answers, and who draws them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbench.errors import FeatureError
from kbench.messages import printable_lines
from kbench.parameters import check_choice
from kbench.registry.features import Feature
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
from kbench.report.content import ReportData
from kbench.report.text import Table

if TYPE_CHECKING:
    from jinja2 import Environment

# The top of the page, and sections of the core that others can follow.
PLACES = ("top", "leaders", "results", "pairs", "search", "budgets", "figures", "warnings", "run")

# Sections of the core that hold parts of features, and the terminal.
WITHIN = ("", "times", "warnings", "run", "terminal")


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Note:
    """A paragraph that explains what is above or below it: ``n_{test}`` has a subscript."""

    text: str


@dataclass(frozen=True)
class Folded:
    """A table that a reader unfolds."""

    title: str
    table: Table


@dataclass(frozen=True)
class Chart:
    """A chart, usually with its values as a table; of shares also one of logarithmic errors.

    `svg` is made by `document` and `element` of `kbench.features`, which escape every name. The
    page rejects elements and attributes that these do not make.
    """

    title: str
    svg: str
    table: Table | None = None
    as_error: str = ""


Part = str | Heading | Note | Table | Folded | Chart


@dataclass(frozen=True)
class Section:
    """A part of the page of a report, or of what commands print.

    Parameters
    ----------
    name : str
        Its anchor in the page: lower case letters and hyphens.
    title : str
    parts : sequence of str, Heading, Note, Table, Folded and Chart, optional
        What it shows, in this order; a string is a paragraph. All text is plain: it is escaped.
    tables : sequence of Table, optional
        Tables that it shows below its parts, unless they have no rows. A section with nothing to
        show is left out. ``kbench report --table NAME`` prints the tables whose names are in the
        metadata of the feature.
    only_printed : sequence of Table, optional
        Tables that are printed so, and not shown.
    link : str, optional
        The label of its link at the top of the page; its title by default.
    after : str, default "figures"
        The section of the core that it follows, one of `PLACES`.
    within : {"", "times", "warnings", "run", "terminal"}
        The section of the core that it is a part of, if it is not one by itself. Within "times"
        its charts stand among the others; within "warnings" a paragraph is an item of a list, and
        tables are folded; within "run" it is a line of paragraphs. One within "terminal" is
        printed below the results of a suite that has published values, and not on the page.

    Examples
    --------
    >>> Section("sent", "Sent results", ["3 results were sent."], after="budget")
    Traceback (most recent call last):
        ...
    ValueError: after must be one of 'top', ..., got 'budget'
    """

    name: str
    title: str
    parts: Sequence[Part] = ()
    tables: Sequence[Table] = ()
    only_printed: Sequence[Table] = ()
    link: str = ""
    after: str = "figures"
    within: str = ""

    def __post_init__(self) -> None:
        for each in (self.name, self.title, self.link, *self.parts):
            # a string that says it is markup would not be escaped
            if not isinstance(each, Part) or (isinstance(each, str) and type(each) is not str):
                raise TypeError(f"{type(each).__name__} is not a part of a section")
        if isinstance(self.parts, str):
            raise TypeError("parts must be a sequence of paragraphs and others, got a string")
        if not re.fullmatch("[a-z][a-z-]*", self.name):
            raise ValueError(f"name must be lower case letters and hyphens, got {self.name!r}")
        check_choice(self.after, "after", PLACES, error=ValueError)
        check_choice(self.within, "within", WITHIN, error=ValueError)

    def list_parts(self) -> list[Part]:
        """Return what it shows."""
        return [*self.parts, *(table for table in self.tables if table.rows)]

    def every_table(self) -> Iterator[Table]:
        """Yield the tables that can be printed by their names."""
        if self.within == "terminal":
            return
        for part in self.parts:
            table = part.table if isinstance(part, Folded | Chart) else part
            if isinstance(table, Table):
                yield table
        yield from (*self.tables, *self.only_printed)


def collect_sections(data: ReportData, verbs: Verbs) -> Iterator[tuple[Feature, Section]]:
    """Yield the sections of features; a feature that fails is left out, and `verbs` says so."""
    for feature, answer in verbs.each("kbench_report_sections", data=data):
        try:
            sections = list(answer)
            for each in sections:
                if not isinstance(each, Section):
                    raise TypeError(f"{type(each).__name__} is not a Section")
        except (Exception, SystemExit) as error:
            verbs.fail(feature.name, f"kbench_report_sections: {type(error).__name__}: {error}")
            continue
        yield from ((feature, each) for each in sections)


# -- answers, pages and pictures


@dataclass(frozen=True)
class Lead:
    """Top of the page: the answer to a user's question.

    The recommendation with its reasons, the data behind it, the command to type next, and
    what stands behind the answer: parts as those of a section.
    """

    sentences: Sequence[str]
    facts: Sequence[str] = ()
    command: str = ""
    parts: Sequence[Part] = ()


def page(content: ReportData, registry: Registry, lead: Lead | None = None) -> str:
    """Write the report of a suite as one self-contained HTML page, with `lead` at the top.

    FeatureError is raised if the feature that writes it fails, or is left out.
    """
    return str(_ask("kbench_report_page", data=content, registry=registry, lead=lead))


def picture(kind: str, content: ReportData, registry: Registry, form: str) -> bytes:
    """Return a figure as a file: of a kind that ``kbench plot`` lists, or of a plugin.

    The form is "pdf", "png" or "svg".

    Raises
    ------
    SuiteError
        The kind is unknown, or there is nothing to draw.
    PluginError
        A plugin's figure cannot be drawn.
    FeatureError
        The feature that draws fails, or is left out.
    """
    image = _ask("kbench_report_picture", kind=kind, data=content, registry=registry, form=form)
    assert isinstance(image, bytes)
    return image


def _ask(hook: str, **context: object) -> object:
    problems = ["no feature writes reports: the one of kbench is left out"]
    answer = Verbs(lambda message: problems.insert(0, message)).one(hook, **context)
    if answer is None:
        raise FeatureError(problems[0])
    return answer


def environment_of_pages(package: str = __package__, is_sandbox: bool = False) -> "Environment":
    """Return the environment of the templates of a package and of the core.

    In the sandbox, which doubles the time, templates of plugins reach no code through the page.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, select_autoescape
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return (ImmutableSandboxedEnvironment if is_sandbox else Environment)(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        trim_blocks=True,
        lstrip_blocks=True,
        # markup is made of text that is printable already
        finalize=lambda value: printable_lines(value) if type(value) is str else value,
    )

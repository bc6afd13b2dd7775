"""Pages and pictures: what stands at the top of a page, templates, and the feature that draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbench.errors import FeatureError
from kbench.messages import printable_lines
from kbench.registry.registry import Registry
from kbench.registry.verbs import Verbs
from kbench.report.content import ReportData

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Block:
    """A part of the answer at the top of a page: a title with a note, a table and a picture.

    `picture` is made by the drawing functions of `kbench.features`. If `folded`, the reader unfolds
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


def page(content: ReportData, registry: Registry, lead: Lead | None = None) -> str:
    """Write the report of a suite as one self-contained HTML page, with `lead` at the top.

    FeatureError is raised where the feature that writes it fails, or is left out.
    """
    return str(_asked("kbench_report_page", data=content, registry=registry, lead=lead))


def picture(kind: str, content: ReportData, registry: Registry, form: str) -> bytes:
    """Return a picture as a file: one of the names that ``kbench plot`` takes, or of a plugin.

    The form is "pdf", "png" or "svg".

    Raises
    ------
    SuiteError
        There is no such picture, or nothing to draw.
    PluginError
        A plugin's figure cannot be drawn.
    FeatureError
        The feature that draws fails, or is left out.
    """
    found = _asked("kbench_report_picture", kind=kind, data=content, registry=registry, form=form)
    assert isinstance(found, bytes)
    return found


def _asked(hook: str, **context: object) -> object:
    problems = ["no feature writes reports: the one of kbench is left out"]
    found = Verbs(lambda text: problems.insert(0, text)).one(hook, **context)
    if found is None:
        raise FeatureError(problems[0])
    return found


def environment_of_pages(package: str = __package__) -> Environment:
    """Return the environment of the templates of a package, of the core, and of plugins."""
    from jinja2 import ChoiceLoader, PackageLoader, select_autoescape
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # templates of plugins see what the page shows, and reach no code through it
    return ImmutableSandboxedEnvironment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=select_autoescape(default=True, default_for_string=True),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """Make text that a template inserts printable; markup is made of such text already."""
    return printable_lines(value) if type(value) is str else value

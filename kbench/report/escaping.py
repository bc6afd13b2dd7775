"""Templates of pages: every text is escaped and printable, and no template reaches code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbench.messages import printable_lines

if TYPE_CHECKING:
    from jinja2 import Environment


def environment_of_pages() -> Environment:
    """Return the environment of the templates of kbench, and of those of plugins."""
    from jinja2 import PackageLoader, select_autoescape
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # templates of plugins see what the page shows, and reach no code through it
    return ImmutableSandboxedEnvironment(
        loader=PackageLoader("kbench.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: Any) -> Any:
    """Make text that a template inserts printable; markup is made of such text already."""
    return printable_lines(value) if type(value) is str else value

"""Sections of the report that come with kbench, as ``.html.j2`` files beside this one.

A section is a Jinja template: it begins with an ``<h2>`` and is given
``content`` (see `kbench.report.content`). Whatever it writes is escaped.
"""

from importlib.resources import files

from kbench import hookimpl


@hookimpl
def kbench_dashboards():
    """List the sections."""
    return sorted(
        (each for each in files(__name__).iterdir() if each.name.endswith(".html.j2")),
        key=lambda each: each.name,
    )

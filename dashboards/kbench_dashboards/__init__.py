"""What people look at beside the report's own parts, as files beside this one.

A section (``.html.j2``) is a Jinja template: it begins with an ``<h2>`` and is
given ``content`` (see `kbench.report.content`). Whatever it writes is escaped.

A view (``.view.json``) is what MLflow's page of a suite opens as: its ``name``
in the menu, ``mode`` ("table" or "chart") and ``state``, MLflow's own: save a
view there and copy its tag. ``{measure}`` stands for what the suite compares.
"""

from importlib.resources import files

from kbench import hookimpl


@hookimpl
def kbench_dashboards():
    """List the sections and views."""
    return sorted(
        (
            each
            for each in files(__name__).iterdir()
            if each.name.endswith((".html.j2", ".view.json"))
        ),
        key=lambda each: each.name,
    )

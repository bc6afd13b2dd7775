"""Additional sections of the report and saved views of MLflow pages, as files in this package.

A section (``.html.j2``) is a Jinja template: it begins with an ``<h2>`` and is
given ``content`` (see `kbench.report.content`). Whatever it writes is escaped.

A view (``.view.json``) is a saved view of MLflow's page of a suite: its ``name``
in the menu, ``mode`` ("table" or "chart") and MLflow's ``state``: save a view
there and copy its tag. ``{metric}`` is the metric that the suite compares, ``{plain}`` is
accuracy or rmse, by the suite's task, and the string ``"{lower_is_better}"`` becomes true or false.
``{on_dataset}``, ``{chosen}`` and ``{search}`` expand to several values (see the documentation of
MLflow's views).
"""

from importlib.resources import files

from kbench import hookimpl


@hookimpl
def kbench_dashboards():
    """List the sections and views."""
    endings = (".html.j2", ".view.json")
    paths = (path for path in files(__name__).iterdir() if path.name.endswith(endings))
    return sorted(paths, key=lambda path: path.name)

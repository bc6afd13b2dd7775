"""Further sections of the report and views of MLflow's pages, as files beside this one.

A section (``.html.j2``) is a Jinja template: it begins with an ``<h2>`` and is
given ``content`` (see `kbench.report.content`). Whatever it writes is escaped.

A view (``.view.json``) is a saved view of MLflow's page of a suite: its ``name``
in the menu, ``mode`` ("table" or "chart") and MLflow's ``state``: save a view
there and copy its tag. ``{metric}`` stands for the metric that the suite
compares, ``{plain}`` for accuracy or rmse, by the suite's task, and the text
``"{lower_is_better}"`` for true or false. ``{on_dataset}``, ``{chosen}`` and ``{search}`` stand for
several values (see the documentation of MLflow's views).
"""

from importlib.resources import files

from kbench import hookimpl


@hookimpl
def kbench_dashboards():
    """List the sections and views."""
    endings = (".html.j2", ".view.json")
    paths = (path for path in files(__name__).iterdir() if path.name.endswith(endings))
    return sorted(paths, key=lambda path: path.name)

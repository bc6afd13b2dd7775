"""The charts of the page, each with the table of its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kbench.report import lines, scatter
from kbench.report.axes import duration, number
from kbench.report.content import ReportData
from kbench.report.tables import methods, sizes
from kbench.report.text import Table, heading

MOST_LINES = 10
"""Lines of a chart; more cannot be told apart."""


@dataclass(frozen=True)
class Cost:
    """A cost of methods: an attribute of `kbench.results.stats.Standing`, and words for it."""

    attribute: str
    title: str
    label: str
    written: Callable[[float], str] = duration


COSTS = (
    Cost("fit_time_s", "fit time", "fit time, geometric mean over datasets"),
    Cost("predict_row_s", "prediction time", "time to predict one row, geometric mean"),
    Cost("n_components", "number of components", "components, mean over datasets", number),
)


@dataclass(frozen=True)
class Chart:
    """A picture with its numbers."""

    title: str
    svg: str
    table: Table


def of(content: ReportData) -> Iterator[Chart]:
    """Draw the charts that the data allow, of several methods over common datasets."""
    standings, words = content.standings, heading(content.measure)
    for cost in COSTS:
        costs = [getattr(standing, cost.attribute) for standing in standings]
        # an older store may not have them, and a chart of one width shows nothing
        if not all(map(math.isfinite, costs)) or len({round(value, 12) for value in costs}) < 2:
            continue
        title = f"{words} against {cost.title}"
        picture = scatter.draw(
            [standing.name for standing in standings],
            costs,
            [standing.mean for standing in standings],
            content.measure,
            cost.label,
            cost.written,
        )
        shown = {"place", "feature_map", "learner", "mean", cost.attribute}
        table = methods(content)
        columns = [replace(c, wide=False) for c in table.columns if c.name in shown]
        yield Chart(title, picture, replace(table, title=title, columns=columns))
    growth = content.growth()
    if growth:
        drawn = [lines.Line(line.name, line.points, line.place) for line in growth[:MOST_LINES]]
        label, title = "training rows", "Fit time against training rows"
        picture = lines.draw(drawn, label, "fit time", number, duration)
        yield Chart(title, picture, sizes(content))

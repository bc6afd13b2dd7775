"""The charts of the page, each with the table of its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from kbench.report import lines, scatter
from kbench.report.axes import duration, number
from kbench.report.certainty import places
from kbench.report.content import ReportData
from kbench.report.looks import Looks
from kbench.report.sections import Chart
from kbench.report.tables import methods, sizes
from kbench.report.text import Table, heading
from kbench.results.rows import is_share

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


def _with_statuses(table: Table, content: ReportData, cost: str) -> Table:
    """Return the table of methods with the statuses of the front against another cost."""
    decided = not content.certainty.front(cost).reason
    rows = [
        {**row, "front": place.status if decided else None, "p_front": place.probability}
        for row, place in zip(table.rows, places(content, cost), strict=True)
    ]
    return replace(table, rows=rows, notes={})


def drawn_costs(content: ReportData) -> Iterator[Cost]:
    """Yield the costs that are known of all methods, and differ."""
    for cost in COSTS:
        costs = [getattr(standing, cost.attribute) for standing in content.standings]
        # an older store may not have them, and a chart of one width shows nothing
        if all(map(math.isfinite, costs)) and len({round(value, 12) for value in costs}) > 1:
            yield cost


def of_costs(content: ReportData) -> Iterator[Chart]:
    """Draw the measure against the costs of several methods over common datasets."""
    standings, words = content.standings, heading(content.measure)
    looks = Looks(content.rows)
    styles = [looks[standing.method] for standing in standings]
    for cost in drawn_costs(content):
        costs = [getattr(standing, cost.attribute) for standing in standings]
        title = f"{words} against {cost.title}"
        draw = partial(
            scatter.draw,
            [standing.name for standing in standings],
            costs,
            [standing.mean for standing in standings],
            content.measure,
            cost.label,
            cost.written,
            [place.status for place in places(content, cost.attribute)],
            styles=styles,
        )
        shown = {"place", "feature_map", "learner", "mean", cost.attribute, "front", "p_front"}
        table = _with_statuses(methods(content), content, cost.attribute)
        columns = [replace(c, wide=False) for c in table.columns if c.name in shown]
        as_error = draw(as_error=True) if is_share(content.measure) else ""
        yield Chart(title, draw(), replace(table, title=title, columns=columns), as_error)


def of_growth(content: ReportData) -> Iterator[Chart]:
    """Draw the fit time against the number of training rows, where sizes vary."""
    growth = content.growth()
    if growth:
        looks = Looks(content.rows)
        drawn = [
            lines.Line(line.name, line.points, line.place, colour=looks[line.method].colour)
            for line in growth[:MOST_LINES]
        ]
        label, title = "training rows", "Fit time against training rows"
        picture = lines.draw(drawn, label, "fit time", number, duration)
        yield Chart(title, picture, sizes(content))

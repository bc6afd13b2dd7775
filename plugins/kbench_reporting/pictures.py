"""Figures by matplotlib: those of a report for a paper, and those of plugins."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kbench import features, records
from kbench.errors import PluginError, SuiteError
from kbench.messages import did_you_mean
from kbench.records import Make
from kbench_reporting import diagram, findings
from kbench_reporting.charts import COSTS, Box, Cost, overlap, planned
from kbench_reporting.findings import places

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COSTS = {
    "metric-vs-fit-time": COSTS[0],
    "metric-vs-predict-time": COSTS[1],
    "metric-vs-features": COSTS[2],
}
_FILLS: Mapping[features.Status, Literal["full", "left", "none"]] = {
    "frontier": "full",
    "undecided": "left",
    "dominated": "none",
}
"""A point is filled on the front, empty off it, and half filled where this is undecided."""
_MARKERS = "osDv^P"
"""Markers of matplotlib that stand for the shapes of families."""
_ERRORS = {kind.replace("metric", "error"): cost for kind, cost in _COSTS.items()}
"""The same with 1 - value on a logarithmic axis, for metrics whose best value is 1."""
_LEGEND_COLUMNS = 2
KINDS = (*_COSTS, *_ERRORS, "scaling", "ranks")

# PDF and SVG keep text as text; the same figure gives the same bytes
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "kbench"}


def picture(
    kind: str, content: features.ReportData, registry: features.Registry, form: str
) -> bytes:
    """Return one of `KINDS`, or a plugin's figure of this name, as "pdf", "png" or "svg"."""
    registered = registry.all("figure")
    if kind in registered:
        if not any(row.status == "ok" for row in content.rows):
            raise SuiteError(
                f"nothing to draw: no cell of {content.suite} has results; `kbench results` shows "
                "why, and `kbench suite` computes them"
            )
        return given_picture(registered[kind], content, form)
    if kind not in KINDS:
        raise SuiteError(f"there is no figure {kind!r}{did_you_mean(kind, [*KINDS, *registered])}")
    if not content.scores.has_one_unit:
        raise SuiteError(
            f"nothing to draw: {content.metric.name} is in the units of each dataset's target"
        )
    if not content.standings:
        raise SuiteError("nothing to draw: no dataset was finished by at least two methods")
    if kind in _ERRORS and not features.is_share_metric(content.metric):
        raise SuiteError(
            f"nothing to draw: 1 - {content.metric.name} is not an error; "
            f"draw {kind.replace('error', 'metric')}"
        )
    if kind in ("ranks", "scaling"):
        return save(_ranks(content) if kind == "ranks" else _growth(content), form)
    return save(_against(content, (_COSTS | _ERRORS)[kind], as_error=kind in _ERRORS), form)


def given_picture(figure: records.Figure, content: features.ReportData, form: str) -> bytes:
    """Return a plugin's figure as a file; any error in it becomes a `PluginError`."""
    rows = [row.to_json(content.metric) for row in content.rows]
    try:
        if isinstance(figure.draw, features.Reference):
            drawn = figure.draw.call(f"{__name__}:draw_in_sandbox", {"rows": rows, "form": form})
            return base64.b64decode(drawn, validate=True)
        return _draw(figure.draw, rows, form)
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"figure {figure.name!r}: {type(error).__name__}: {error}") from error


def draw_in_sandbox(draw: Make, argument: Mapping[str, Any]) -> str:
    """Return a figure as a file in base64, where its plugin is imported."""
    return base64.b64encode(_draw(draw, argument["rows"], argument["form"])).decode("ascii")


def _draw(draw: Make, rows: Sequence[Mapping[str, object]], form: str) -> bytes:
    drawn = features.resolve(draw)(rows)
    if not hasattr(drawn, "savefig"):
        raise TypeError(f"draw returned {type(drawn).__name__}, not a matplotlib Figure")
    return save(drawn, form)


def save(figure: Figure, form: str) -> bytes:
    """Return a figure as a file.

    Equal arguments give equal bytes: no date is written.
    """
    import matplotlib

    out = io.BytesIO()
    dates = {"pdf": "CreationDate", "svg": "Date"}
    metadata = {dates[form]: None} if form in dates else {}
    with matplotlib.rc_context(_STYLE):
        figure.savefig(out, format=form, metadata=metadata, dpi=200, bbox_inches="tight")
    return out.getvalue()


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _ranks(content: features.ReportData) -> Figure:
    """Draw the rank diagram in the layout of the page's."""
    standings = content.standings
    names = [standing.name for standing in standings]
    plan = diagram.layout(names, [standing.rank for standing in standings])
    figure = _figure(plan.width / 90, plan.height / 90)
    axes = figure.subplots()
    axes.set(xlim=(0, plan.width), ylim=(plan.height, 0))
    axes.axis("off")
    y = plan.axis_y
    axes.plot([plan.x(1), plan.x(plan.n)], [y, y], "k-", lw=1)
    axes.text(plan.x((plan.n + 1) / 2), 14, "mean rank", ha="center", va="center", size=9)
    for tick in diagram.ticks(plan.n):
        axes.plot([plan.x(tick)] * 2, [y - 7, y], "k-", lw=1)
        axes.text(plan.x(tick), y - 10, str(tick), ha="center", va="bottom", size=9)
    worse = findings.worse(content)
    for label in plan.labels:
        x = plan.x(label.rank)
        axes.plot([plan.start - 8, x], [label.y] * 2, "-", color="0.75", lw=0.8)
        axes.plot(x, label.y, "ko", ms=4.5, mfc="w" if label.number in worse else "k")
        weight = "bold" if standings[label.number].method in content.focus else "normal"
        for words, left in (("\n".join(label.lines), 50), (f"{label.rank:.2f}", 14)):
            x = plan.start - left
            written = axes.text(x, label.y, words, ha="right", va="center", size=9, weight=weight)
            written.set_parse_math(False)  # a name is not a formula
    if worse:
        words = "filled: best group (5 % level)"
        axes.text(plan.x((plan.n + 1) / 2), plan.height, words, ha="center", va="top", size=8)
    return figure


def _against(content: features.ReportData, cost: Cost, as_error: bool = False) -> Figure:
    """Draw the metric against a cost, better values higher; the Pareto front is a line.

    A few methods that are far worse than the others stand at the lower end, with an arrow.
    """
    standings = content.standings
    costs = [getattr(standing, cost.attribute) for standing in standings]
    if not all(map(math.isfinite, costs)):
        raise SuiteError(f"nothing to draw: {cost.title} is not available for every method")
    means = [standing.mean for standing in standings]
    plan = planned(costs, means, content.metric, cost.label, cost.written, as_error)
    rows = math.ceil(len(standings) / _LEGEND_COLUMNS)
    figure, axes = _frame(plan.horizontal, plan.vertical, 4.2 + 0.21 * rows)
    steps = [costs[i] for i in plan.front], [plan.heights[i] for i in plan.front]
    axes.step(*steps, where="post", color="0.6", lw=1, zorder=0)
    on_fronts, looks = places(content, cost.attribute), features.Styles(content.rows)
    # in points, roughly: constrained layout decides the exact size of the axes
    points = [
        (430 * plan.horizontal.share(a), 260 * (0.0 if below else plan.vertical.share(b)))
        for a, b, below in zip(costs, plan.heights, plan.below, strict=True)
    ]
    taken: list[Box] = [(a - 4, b - 4, a + 4, b + 4) for a, b in points]
    for i, (standing, on_front) in enumerate(zip(standings, on_fronts, strict=True)):
        place, x, y = standing.place, costs[i], plan.heights[i]
        look = looks[standing.method]
        in_focus = standing.method in content.focus
        name = _in_legend(place, standing.name)
        if plan.below[i]:
            y = axes.get_ylim()[0]
            name += f" ({features.write_cell(content.metric.name, standing.mean)}, below the axis)"
            axes.annotate("↓", (x, y), (-9, 3), textcoords="offset points", size=8)
        size, weight = (10, "bold") if in_focus else (6, "normal")
        alpha = 0.35 if content.focus and not in_focus else 1
        (point,) = axes.plot(x, y, _MARKERS[look.shape], color=f"C{look.colour}", label=name)
        point.set(alpha=alpha, markersize=size, fillstyle=_FILLS[on_front.status], clip_on=False)
        offset = _free(str(place), points[i], taken)
        axes.annotate(str(place), (x, y), offset, textcoords="offset points", size=8, weight=weight)
    return _with_legend(figure)


def _free(words: str, point: tuple[float, float], taken: list[Box]) -> tuple[float, float]:
    """Return where a number is written next to its point, if possible where nothing else is."""
    wide, high = 5.0 * len(words), 7.0
    left, below = -5 - wide, -3 - high
    for offset in ((5, 4), (left, 4), (5, below), (left, below), (-wide / 2, 7)):
        a, b = point[0] + offset[0], point[1] + offset[1]
        if not any(overlap((a, b, a + wide, b + high), each) for each in taken):
            taken.append((a, b, a + wide, b + high))
            return offset
    return (5, 4)


def _growth(content: features.ReportData) -> Figure:
    """Draw fit times against the number of training rows."""
    growth = findings.growth(content)[: features.MAX_LINES]
    if not growth:
        raise SuiteError(
            "nothing to draw: the datasets that all methods finished must have at least three "
            "sizes, the largest at least four times the smallest"
        )
    rows, seconds = zip(*(point for line in growth for point in line.points), strict=True)
    horizontal = features.logarithmic(rows, "training rows", features.number)
    figure, axes = _frame(
        horizontal, features.logarithmic(seconds, "fit time", features.duration), 5.2
    )
    for line in growth:
        name = _in_legend(line.place, features.format_method(line.method))
        label = f"{name} (n to the {line.exponent:.2f})"
        axes.plot(*zip(*line.points, strict=True), "o-", ms=3, lw=1, label=label)
    return _with_legend(figure)


def _in_legend(place: int, name: str) -> str:
    return f"{place}  " + "\n".join(features.wrap_name(name, 44))


def _frame(
    horizontal: features.Axis, vertical: features.Axis, height: float
) -> tuple[Figure, Axes]:
    """Return a figure with the axes of a chart of the page, their marks and a grid."""
    figure = _figure(7.0, height)
    axes = figure.subplots()
    for name, axis, drawn in (("x", horizontal, axes.xaxis), ("y", vertical, axes.yaxis)):
        ends = (axis.low, axis.high)
        scale, limits = ("log", tuple(10**end for end in ends)) if axis.log else ("linear", ends)
        axes.set(**{f"{name}scale": scale, f"{name}lim": limits, f"{name}label": axis.label})
        drawn.set_ticks([], minor=True)
        drawn.set_ticks([mark for mark, _ in axis.marks], [words for _, words in axis.marks])
    axes.grid(alpha=0.3)
    return figure, axes


def _with_legend(figure: Figure) -> Figure:
    """Add a legend below the axes, which is readable if the figure is as wide as a page."""
    legend = figure.legend(
        loc="outside lower center", fontsize=8.5, ncols=_LEGEND_COLUMNS, frameon=False
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a name is not a formula
    return figure

"""Pictures by matplotlib: those of a report for a paper, and those that plugins give."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kbench import records
from kbench.errors import PluginError, SuiteError
from kbench.registry import Registry, did_you_mean, resolve
from kbench.report import diagram, scatter
from kbench.report.content import Content
from kbench.report.svg import wrapped
from kbench.stats import pareto_front

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("accuracy-time", "accuracy-predict-time", "ranks")

# PDF and SVG keep text as text; the same figure gives the same bytes
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "kbench"}


def draw(kind: str, content: Content, registry: Registry) -> Figure:
    """Draw a picture of a suite.

    Parameters
    ----------
    kind : str
        One of `KINDS`, or the name of a figure that a plugin gives.
    content : Content
    registry : Registry

    Raises
    ------
    SuiteError
        There is no such picture, or nothing to draw.
    PluginError
        A plugin's figure cannot be drawn.
    """
    given = registry.all("figure")
    if kind in given:
        return draw_given(given[kind], content)
    if kind not in KINDS:
        raise SuiteError(f"no picture is called {kind!r}{did_you_mean(kind, [*KINDS, *given])}")
    if not content.standings:
        raise SuiteError("nothing to draw: no dataset was finished by at least two methods")
    if kind == "ranks":
        return _ranks(content)
    return _accuracy_time(content, "fit" if kind == "accuracy-time" else "predict")


def draw_given(figure: records.Figure, content: Content) -> Figure:
    """Draw a plugin's figure.

    Raises
    ------
    PluginError
        Whatever went wrong in it.
    """
    try:
        drawn = resolve(figure.draw)(content.rows)
        if not hasattr(drawn, "savefig"):
            raise TypeError(f"draw returned {type(drawn).__name__}, not a matplotlib Figure")
    except Exception as error:
        raise PluginError(f"figure {figure.name!r}: {type(error).__name__}: {error}") from error
    return drawn  # type: ignore[no-any-return]


def given_for(suite: str, registry: Registry) -> Mapping[str, records.Figure]:
    """Return the figures of plugins that belong to a suite's report."""
    every = registry.all("figure").items()
    return {name: each for name, each in every if not each.suites or suite in each.suites}


def save(figure: Figure, form: str) -> bytes:
    """Return a figure as a file of a form that matplotlib knows ("pdf", "png", "svg").

    The same figure gives the same bytes: no date is written.
    """
    import matplotlib

    out = io.BytesIO()
    metadata: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form, {})
    with matplotlib.rc_context(_STYLE):
        figure.savefig(out, format=form, metadata=metadata, dpi=200, bbox_inches="tight")
    return out.getvalue()


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _ranks(content: Content) -> Figure:
    """Draw the critical-difference diagram: the layout of the page's own."""
    names = [each.name for each in content.standings]
    plan = diagram.layout(names, [each.rank for each in content.standings], content.cliques())
    figure = _figure(plan.width / 90, plan.height / 90)
    axes = figure.subplots()
    axes.set(xlim=(0, plan.width), ylim=(plan.height, 0))
    axes.axis("off")
    y = plan.axis_y
    axes.plot([plan.x(1), plan.x(plan.n)], [y, y], "k-", lw=1)
    for tick in diagram.ticks(plan.n):
        axes.plot([plan.x(tick)] * 2, [y - 7, y], "k-", lw=1)
        axes.text(plan.x(tick), y - 10, str(tick), ha="center", va="bottom", size=9)
    for low, high, at in plan.bars:
        axes.plot([plan.x(low) - 4, plan.x(high) + 4], [at, at], "k-", lw=3.5)
    for label in plan.labels:
        x, edge = plan.x(label.rank), plan.edge(label)
        axes.plot([x, x, edge], [y, label.y, label.y], "k-", lw=0.8)
        axes.text(
            edge + (-7 if label.left else 7),
            label.y,
            "\n".join(label.lines),
            ha="right" if label.left else "left",
            va="center",
            size=9,
            parse_math=False,  # a name is no formula
        )
    return figure


def _accuracy_time(content: Content, which: str) -> Figure:
    standings = content.standings
    seconds = [getattr(each, f"{which}_time_s") for each in standings]
    accuracy = [each.accuracy for each in standings]
    front = pareto_front(seconds, [round(value, 12) for value in accuracy])
    figure = _figure(7.0, max(3.6, 0.2 * len(standings)))
    axes = figure.subplots()
    axes.set(xscale="log", xlabel=f"{which} time", ylabel="accuracy")
    axes.step(
        [seconds[i] for i in front],
        [accuracy[i] for i in front],
        where="post",
        color="0.6",
        lw=1,
        zorder=0,
    )
    for each, x, y in zip(standings, seconds, accuracy, strict=True):
        name = "\n".join(wrapped(each.name, 34))
        axes.plot(x, y, "osv^D"[each.place // 10 % 5], label=f"{each.place}  {name}")
        axes.annotate(str(each.place), (x, y), (5, 4), textcoords="offset points", size=8)
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter(lambda value, place: scatter.duration(value))
    axes.xaxis.set_minor_formatter(lambda value, place: "")
    legend = figure.legend(loc="outside right upper", fontsize="x-small")
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def scatter_of(content: Content, which: str) -> str:
    """Draw accuracy against fit or prediction time as SVG."""
    standings = content.standings
    return scatter.draw(
        [each.name for each in standings],
        [getattr(each, f"{which}_time_s") for each in standings],
        [each.accuracy for each in standings],
        f"{which} time, geometric mean over datasets",
    )

"""The critical-difference diagram: mean ranks on a line, bars join what no test tells apart.

After Demsar (2006), figure 1; the best method is on the left. Names are
written in full, in several lines where they are long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kbench.features import document, element, text, tick, width_of, wrapped

_AXIS, _LINE, _BAR, _SIZE = 420.0, 18.0, 9.0, 13.0
_LONGEST = 34


@dataclass(frozen=True)
class Label:
    """A method's name beside the diagram, its number from 0; `y` is the middle of its lines."""

    number: int
    lines: tuple[str, ...]
    rank: float
    left: bool
    y: float


@dataclass(frozen=True)
class Layout:
    """Places of all parts: of `n` methods from rank 1, at x = `start`; y grows downwards.

    `bars` are first rank, last rank and y of each bar.
    """

    width: float
    height: float
    axis_y: float
    start: float
    n: int
    labels: list[Label]
    bars: list[tuple[float, float, float]]

    def x(self, rank: float) -> float:
        """Return the place of a mean rank."""
        return self.start + _AXIS * (rank - 1) / max(self.n - 1, 1)

    def edge(self, label: Label) -> float:
        """Return the x at which the line of a name ends."""
        return self.start - 40 if label.left else self.start + _AXIS + 40


def ticks(n: int) -> list[int]:
    """Return the ranks that are written on the axis."""
    return sorted({*range(1, n + 1, max(1, math.ceil((n - 1) / 10))), n})


def layout(
    names: Sequence[str], ranks: Sequence[float], cliques: Sequence[Sequence[int]]
) -> Layout:
    """Place the parts of a diagram of methods, the best mean rank first.

    A bar joins the places of each clique.
    """
    n = len(names)
    half = math.ceil(n / 2)
    written = [tuple(wrapped(name, _LONGEST)) for name in names]
    widest = [
        max((width_of(line, _SIZE) for lines in side for line in lines), default=0.0)
        for side in (written[:half], written[half:])
    ]
    axis_y = 46.0
    # bars that share no rank share a line
    bars: list[tuple[float, float, float]] = []
    ends: list[float] = []
    for clique in cliques:
        low, high = ranks[clique[0]], ranks[clique[-1]]
        free = next((i for i, end in enumerate(ends) if end < low), len(ends))
        ends[free:] = [high, *ends[free + 1 :]]
        bars.append((low, high, axis_y + 14 + _BAR * free))
    top = axis_y + 26 + _BAR * len(ends)
    labels: list[Label] = []
    bottom = top
    # the outermost names stand highest, so that no elbow crosses another
    for side, left in ((range(half), True), (range(n - 1, half - 1, -1), False)):
        y = top
        for i in side:
            tall = _LINE * len(written[i])
            labels.append(Label(i, written[i], ranks[i], left, y + tall / 2))
            y += tall + 4
        bottom = max(bottom, y)
    start = widest[0] + 64
    width = start + _AXIS + widest[1] + 64
    return Layout(width, bottom + 6, axis_y, start, n, labels, bars)


def draw(names: Sequence[str], ranks: Sequence[float], cliques: Sequence[Sequence[int]]) -> str:
    """Draw a critical-difference diagram as SVG; see `layout`.

    >>> picture = draw(["rff", "<b>"], [1.2, 1.8], [[0, 1]])
    >>> "&lt;b&gt;" in picture, "<b>" in picture
    (True, False)
    """
    plan = layout(names, ranks, cliques)
    y = plan.axis_y
    parts = [element("path", d=f"M{plan.x(1):.1f} {y}H{plan.x(plan.n):.1f}", class_="axis")]
    for rank in ticks(plan.n):
        parts.append(element("path", d=f"M{plan.x(rank):.1f} {y}v-7", class_="axis"))
        parts.append(tick(str(rank), plan.x(rank), y - 12))
    parts.append(tick("mean rank", plan.x((plan.n + 1) / 2), 14))
    for low, high, at in plan.bars:
        d = f"M{plan.x(low) - 4:.1f} {at}H{plan.x(high) + 4:.1f}"
        parts.append(element("path", d=d, class_="clique"))
    for label in plan.labels:
        x = plan.x(label.rank)
        edge = plan.edge(label)
        shapes = [
            element("path", d=f"M{x:.1f} {y}V{label.y:.1f}H{edge:.1f}", class_="elbow"),
            element("circle", cx=x, cy=y, r=3.5, class_="dot"),
        ]
        inwards, anchor, inner = (1, "end", "start") if label.left else (-1, "start", "end")
        number = f"{label.rank:.2f}"
        shapes.append(
            text(number, edge + 4 * inwards, label.y - 4, class_="small", text_anchor=inner)
        )
        first = label.y - _LINE * (len(label.lines) - 1) / 2 + 4.5
        for i, line in enumerate(label.lines):
            at = first + _LINE * i
            shapes.append(text(line, edge - 7 * inwards, at, class_="name", text_anchor=anchor))
        parts.append(element("g", *shapes, class_="method", data_m=label.number))
    return document(
        plan.width, plan.height, parts, "Critical-difference diagram", role="group", class_="cd"
    )

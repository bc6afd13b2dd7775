"""The rank diagram: a row per method with its mean rank; filled points are the best group.

With a row per method it is as readable with 30 methods as with 3. Long names have several lines.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kbench.features import document, element, estimate_width, text, tick, wrap_name

_AXIS, _LINE, _SIZE = 360.0, 18.0, 13.0
_LONGEST = 44


@dataclass(frozen=True)
class Label:
    """A method of the diagram, its number from 0; `y` is the middle of its row."""

    number: int
    lines: tuple[str, ...]
    rank: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Positions of all parts: of `n` methods from rank 1, at x = `start`; y grows downwards."""

    width: float
    height: float
    axis_y: float
    start: float
    n: int
    labels: list[Label]

    def x(self, rank: float) -> float:
        """Return the position of a mean rank."""
        return self.start + _AXIS * (rank - 1) / max(self.n - 1, 1)


def ticks(n: int) -> list[int]:
    """Return the ranks that are written on the axis."""
    return sorted({*range(1, n + 1, max(1, math.ceil((n - 1) / 10))), n})


def layout(names: Sequence[str], ranks: Sequence[float]) -> Layout:
    """Place the parts of a diagram of methods, the best mean rank first."""
    axis_y, labels = 42.0, []
    y = axis_y + 8
    for i, (name, rank) in enumerate(zip(names, ranks, strict=True)):
        lines = tuple(wrap_name(name, _LONGEST))
        labels.append(Label(i, lines, rank, y + _LINE * len(lines) / 2))
        y += _LINE * len(lines) + 2
    widest = max(
        (estimate_width(line, _SIZE) for label in labels for line in label.lines), default=0.0
    )
    start = widest + 64
    return Layout(start + _AXIS + 30, y + 6, axis_y, start, len(names), labels)


def draw(names: Sequence[str], ranks: Sequence[float], worse: Collection[int] = ()) -> str:
    """Draw a rank diagram as SVG, with empty points for methods outside the best group.

    >>> picture = draw(["rff", "<b>"], [1.2, 1.8])
    >>> "&lt;b&gt;" in picture, "<b>" in picture
    (True, False)
    """
    plan = layout(names, ranks)
    y = plan.axis_y
    parts = [element("path", d=f"M{plan.x(1):.1f} {y}H{plan.x(plan.n):.1f}", class_="axis")]
    for rank in ticks(plan.n):
        parts.append(element("path", d=f"M{plan.x(rank):.1f} {y}v-7", class_="axis"))
        parts.append(tick(str(rank), plan.x(rank), y - 12))
    dots = "dot", "dot empty"
    parts.append(tick("mean rank", plan.x((plan.n + 1) / 2), 14))
    for label in plan.labels:
        x, edge = plan.x(label.rank), plan.start - 50
        first = label.y - _LINE * (len(label.lines) - 1) / 2 + 4.5
        shapes = [
            element("path", d=f"M{plan.start - 8:.1f} {label.y:.1f}H{x:.1f}", class_="elbow"),
            element("circle", cx=x, cy=label.y, r=4, class_=dots[label.number in worse]),
            *(
                text(line, edge, first + _LINE * i, class_="name", text_anchor="end")
                for i, line in enumerate(label.lines)
            ),
            text(
                f"{label.rank:.2f}", plan.start - 14, label.y + 4, class_="small", text_anchor="end"
            ),
        ]
        parts.append(element("g", *shapes, class_="method", data_m=label.number))
    return document(plan.width, plan.height, parts, "Rank diagram", role="group", class_="cd")

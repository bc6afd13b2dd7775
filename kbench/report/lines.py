"""Values along an axis as SVG: a line per method, with its number at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from kbench.report.axes import HEIGHT, TOP, WIDTH, Axis, Frame, linear, logarithmic
from kbench.report.svg import document, element, text

COLOURS = 8
"""Colours of the page's palette (`--c0` ...); beyond, lines are dashed."""


@dataclass(frozen=True)
class Line:
    """A line of a chart.

    Its `number` stands at its end and decides its colour; `errors` are
    half-lengths of the bars at its points.
    """

    name: str
    points: Sequence[tuple[float, float]]
    number: int
    errors: Sequence[float] = ()


def draw(
    lines: Sequence[Line],
    label: str,
    vertical: str,
    written: Callable[[float], str],
    written_y: Callable[[float], str] | None = None,
) -> str:
    """Draw lines over a horizontal axis that is logarithmic where its values allow.

    Parameters
    ----------
    lines : sequence of Line
        At least one, with at least one point each.
    label, vertical : str
        Labels of the axes.
    written : callable
        Writes a value of the horizontal axis.
    written_y : callable, optional
        Writes a value of the vertical axis, which is logarithmic then.
    """
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    spans = min(xs) > 0 and max(xs) >= 4 * min(xs)
    across: Axis = logarithmic(xs, label, written) if spans else linear(xs, label)
    up = logarithmic(ys, vertical, written_y) if written_y else linear(ys, vertical)
    frame = Frame(across, up)
    parts = frame.drawn()
    ends: list[float] = []
    for line in lines:
        spots = [(frame.x(x), frame.y(y)) for x, y in line.points]
        shapes = [element("title", escape(line.name))]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        shapes.append(element("path", d=path, class_="run"))
        for (x, y), (_, value), error in zip(
            spots, line.points, [*line.errors] or [0.0] * len(spots), strict=True
        ):
            if error > 0:
                low, high = frame.y(value - error), frame.y(value + error)
                shapes.append(element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", class_="bar"))
            shapes.append(element("circle", cx=x, cy=y, r=2.6))
        # numbers at the ends keep clear of each other
        x, end = spots[-1]
        near = (end + (11 if k % 2 else -11) * math.ceil(k / 2) for k in range(60))
        free = (y for y in near if all(abs(y - other) >= 11 for other in ends))
        place = next((y for y in free if TOP <= y <= frame.floor), None)
        if place is not None:
            ends.append(place)
            shapes.append(text(str(line.number), x + 7, place + 4, class_="end"))
        kind = f"line c{(line.number - 1) % COLOURS}"
        dashed = " dashed" if (line.number - 1) // COLOURS % 2 else ""
        parts.append(element("g", *shapes, class_=kind + dashed))
    return document(WIDTH, HEIGHT, parts, f"{vertical} against {label}", class_="scatter")

"""Values along an axis as SVG: a line per method, with its number at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kbench.report.axes import HEIGHT, TOP, WIDTH, Axis, Frame, linear, logarithmic
from kbench.report.svg import document, element, escape, text

COLOURS = 8
"""Colours of the page's palette (`--c0` ...); beyond, lines are dashed."""


@dataclass(frozen=True)
class Line:
    """A line of a chart; its `number` stands at its end and decides its colour."""

    name: str
    points: Sequence[tuple[float, float]]
    number: int


def draw(
    lines: Sequence[Line],
    label: str,
    vertical: str,
    written: Callable[[float], str],
    written_y: Callable[[float], str],
) -> str:
    """Draw at least one line; the horizontal axis is logarithmic where its values allow.

    The vertical one always is. `label` and `vertical` are their labels;
    `written` and `written_y` write their values.
    """
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    spans = min(xs) > 0 and max(xs) >= 4 * min(xs)
    across: Axis = logarithmic(xs, label, written) if spans else linear(xs, label)
    frame = Frame(across, logarithmic(ys, vertical, written_y))
    parts = frame.drawn()
    ends: list[float] = []
    for line in lines:
        spots = [(frame.x(x), frame.y(y)) for x, y in line.points]
        shapes = [element("title", escape(line.name))]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        shapes.append(element("path", d=path, class_="run"))
        shapes += [element("circle", cx=x, cy=y, r=2.6) for x, y in spots]
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

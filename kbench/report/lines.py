"""Values along an axis as SVG: a line per method, with its number at its end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kbench.records import Measure
from kbench.report.axes import HEIGHT, TOP, WIDTH, Axis, Frame, linear, logarithmic, of_measure
from kbench.report.svg import document, element, escape, text

DASHES = 4
"""Dashes that tell lines of one colour apart."""


@dataclass(frozen=True)
class Line:
    """A line of a chart; its `number` stands at its end, and `colour` is that of its learner.

    `beyond` is a further point that is not of the line: a ring, joined by a dotted line. Of
    lines of one colour the second is dashed, the third dotted, and so on.
    """

    name: str
    points: Sequence[tuple[float, float]]
    number: int
    beyond: tuple[float, float] | None = None
    colour: int = 0


def draw(
    lines: Sequence[Line],
    label: str,
    vertical: str,
    written: Callable[[float], str],
    written_y: Callable[[float], str],
    measure: Measure | None = None,
) -> str:
    """Draw at least one line; the horizontal axis is logarithmic where its values allow.

    The vertical one is too, unless its values are those of a measure. `label` and `vertical`
    are their labels; `written` and `written_y` write their values.
    """
    every = [(*line.points, *([line.beyond] if line.beyond else [])) for line in lines]
    xs = [x for points in every for x, _ in points]
    ys = [y for points in every for _, y in points]
    spans = min(xs) > 0 and max(xs) >= 4 * min(xs)
    across: Axis = logarithmic(xs, label, written) if spans else linear(xs, label)
    upwards = _better_up(ys, vertical, measure) if measure else logarithmic(ys, vertical, written_y)
    frame = Frame(across, upwards)
    parts = frame.drawn()
    ends: list[float] = []
    seen: Counter[int] = Counter()
    for line in lines:
        spots = [(frame.x(x), frame.y(y)) for x, y in line.points]
        x, y = line.points[-1]
        titles = f"{line.name}: {written_y(y)}, {written(x)}"
        if line.beyond:
            titles += f"; then {written_y(line.beyond[1])}, {written(line.beyond[0])}"
        shapes = [element("title", escape(titles))]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        shapes.append(element("path", d=path, class_="run"))
        shapes += [element("circle", cx=x, cy=y, r=2.6) for x, y in spots]
        x, end = spots[-1]
        if line.beyond:
            at, up = frame.x(line.beyond[0]), frame.y(line.beyond[1])
            shapes.append(
                element("path", d=f"M{x:.1f} {end:.1f}L{at:.1f} {up:.1f}", class_="run beyond")
            )
            shapes.append(element("circle", cx=at, cy=up, r=4, class_="ring"))
            x, end = at, up
        # numbers at the ends keep clear of each other
        near = (end + (11 if k % 2 else -11) * math.ceil(k / 2) for k in range(60))
        free = (y for y in near if all(abs(y - other) >= 11 for other in ends))
        place = next((y for y in free if TOP <= y <= frame.floor), None)
        if place is not None:
            ends.append(place)
            shapes.append(text(str(line.number), x + 7, place + 4, class_="end"))
        kind = f"line c{line.colour} dash{seen[line.colour] % DASHES}"
        seen[line.colour] += 1
        parts.append(element("g", *shapes, class_=kind, data_m=line.number - 1))
    return document(
        WIDTH, HEIGHT, parts, f"{vertical} against {label}", role="group", class_="scatter"
    )


def _better_up(values: Sequence[float], label: str, measure: Measure) -> Axis:
    """Return an axis of a measure, labelled by what the values are."""
    axis = of_measure(values, measure)
    return replace(axis, label=axis.label.replace(measure.words, label, 1))

"""A measure against what it costs, as SVG: a number per method, names where there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kbench.records import Measure
from kbench.report.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    WIDTH,
    Box,
    Frame,
    duration,
    logarithmic,
    of_measure,
    overlap,
)
from kbench.report.svg import document, element, escape, text, width_of
from kbench.report.text import shown
from kbench.results.stats import pareto_front

_R, _SIZE, _NUMBER = 10.0, 11.5, 10.5


def draw(
    names: Sequence[str],
    costs: Sequence[float],
    values: Sequence[float],
    measure: Measure,
    label: str,
    written: Callable[[float], str] = duration,
) -> str:
    """Draw a measure against a cost on a logarithmic axis; the Pareto front is a line.

    Better values stand higher, whatever the direction of the measure.

    Parameters
    ----------
    names : sequence of str
        Methods; each is shown by its place, from 1.
    costs, values : sequence of float
        Their places on the axes; costs positive.
    measure : Measure
        The measure of the values.
    label : str
        Label of the horizontal axis.
    written : callable, default `duration`
        Writes a cost.
    """
    frame = Frame(logarithmic(costs, label, written), of_measure(values, measure))
    parts = frame.drawn()
    points = [(frame.x(a), frame.y(b)) for a, b in zip(costs, values, strict=True)]
    front = pareto_front(costs, [measure.gain(round(value, 12)) for value in values])
    # the front begins at the worst that the axis shows
    d = f"M{points[front[0]][0]:.1f} {frame.floor:.1f}"
    # names keep clear of the points and of the line
    taken: list[Box] = [(a - _R, b - _R, a + _R, b + _R) for a, b in points]
    before = (points[front[0]][0], frame.floor)
    for i in front:
        a, b = points[i]
        d += f"H{a:.1f}V{b:.1f}"
        taken.append((before[0], before[1] - 1, a, before[1] + 1))
        taken.append((a - 1, min(b, before[1]), a + 1, max(b, before[1])))
        before = (a, b)
    taken.append((before[0], before[1] - 1, WIDTH, before[1] + 1))
    parts.append(element("path", d=f"{d}H{WIDTH - RIGHT:.1f}", class_="front"))
    # the last drawn lies on top: the front, and of it the best
    best = set(front)
    for group in sorted(_together(points), key=lambda some: (not best.isdisjoint(some), -some[0])):
        a, b = points[group[0]]
        kind = "point" if best.isdisjoint(group) else "point front-point"
        titles = (
            f"{names[i]}: {measure.words} {shown(measure.name, values[i])}, {written(costs[i])}"
            for i in group
        )
        numbers = ", ".join(str(i + 1) for i in group)
        half = max(_R, width_of(numbers, _NUMBER) / 2 + 3)
        parts.append(
            element(
                "g",
                element("title", escape("; ".join(titles))),
                element("rect", x=a - half, y=b - _R, width=2 * half, height=2 * _R, rx=_R),
                text(numbers, a, b + 4, text_anchor="middle"),
                class_=kind,
            )
        )
        taken.append((a - half, b - _R, a + half, b + _R))
    for i in [*front, *(i for i in range(len(points)) if i not in front)]:
        parts += _named(names[i], points[i], taken)
    return document(WIDTH, HEIGHT, parts, f"{measure.words} against {label}", class_="scatter")


def _together(points: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return the numbers of the points, those at one place together.

    >>> _together([(10.0, 20.0), (30.0, 20.0), (10.01, 20.0)])
    [[0, 2], [1]]
    """
    groups: dict[tuple[float, float], list[int]] = {}
    for i, (a, b) in enumerate(points):
        groups.setdefault((round(a, 1), round(b, 1)), []).append(i)
    return list(groups.values())


def _named(name: str, point: tuple[float, float], taken: list[Box]) -> list[str]:
    """Write a name beside its point where it covers nothing else; else nothing."""
    a, b = point
    wide = width_of(name, _SIZE)
    for left, middle, anchor in (
        (a + _R + 4, b, "start"),
        (a - _R - 4 - wide, b, "end"),
        (a - wide / 2, b - _R - 9, "middle"),
        (a - wide / 2, b + _R + 9, "middle"),
        (a + _R, b + _R + 4, "start"),
        (a - _R - wide, b - _R - 4, "end"),
    ):
        box = (left, middle - 7, left + wide, middle + 7)
        inside = box[0] >= LEFT and box[2] <= WIDTH - 2 and box[1] >= 2
        if not inside or box[3] > HEIGHT - BOTTOM or any(overlap(box, other) for other in taken):
            continue
        taken.append(box)
        at = {"start": box[0], "end": box[2], "middle": (box[0] + box[2]) / 2}[anchor]
        return [text(name, at, middle + 4, class_="label", text_anchor=anchor)]
    return []

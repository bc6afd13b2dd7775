"""A measure against what it costs, as SVG: a number per method, names where there is room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
    error_axis,
    logarithmic,
    of_measure,
    overlap,
    upper_part,
)
from kbench.report.looks import Look, left_half, outline
from kbench.report.svg import document, element, escape, text, width_of
from kbench.report.text import shown
from kbench.results.stats import Status, pareto_front

_R, _SIZE, _NUMBER = 10.0, 11.5, 10.5
_FILLED: tuple[Status, ...] = ("frontier", "undecided", "dominated")
_BELOW = " (below the axis)"
_WORDS: Mapping[Status, str] = {
    "frontier": "on the front",
    "undecided": "undecided",
    "dominated": "dominated",
}


def draw(
    names: Sequence[str],
    costs: Sequence[float],
    values: Sequence[float],
    measure: Measure,
    label: str,
    written: Callable[[float], str] = duration,
    statuses: Sequence[Status] = (),
    as_error: bool = False,
    styles: Sequence[Look] = (),
) -> str:
    """Draw a measure against a cost on a logarithmic axis; the Pareto front is a line.

    Better values stand higher, whatever the direction of the measure. A point is filled on the
    front, empty off it, and half filled where this is undecided. A few methods that are far
    worse than the others stand below the axis, with an arrow.

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
    statuses : sequence of str, optional
        What is known of each method and the front; all are undecided by default.
    as_error : bool, default False
        Draw 1 - value on a logarithmic axis.
    styles : sequence of Look, optional
        Colour and shape of each method; points of several methods at one place have those of
        the first.
    """
    inside = upper_part(values, measure)
    axis = error_axis(inside, measure) if as_error else of_measure(inside, measure)
    frame = Frame(logarithmic(costs, label, written), axis)
    parts = frame.drawn()
    worst = min(map(measure.gain, inside))
    clipped = [measure.gain(value) < worst for value in values]
    points = [
        (frame.x(a), frame.floor - _R - 1 if below else frame.y(1 - b if as_error else b))
        for a, b, below in zip(costs, values, clipped, strict=True)
    ]
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
    if not statuses:
        statuses = ["undecided" for _ in names]
    for group in sorted(_together(points), key=lambda some: (not best.isdisjoint(some), -some[0])):
        a, b = points[group[0]]
        status = min((statuses[i] for i in group), key=_FILLED.index)
        titles = (
            f"{names[i]}: {measure.words} {shown(measure.name, values[i])}, "
            f"{written(costs[i])}, {_WORDS[statuses[i]]}{_BELOW if clipped[i] else ''}"
            for i in group
        )
        numbers = ", ".join(str(i + 1) for i in group)
        half = max(_R, width_of(numbers, _NUMBER) / 2 + 3)
        style = styles[group[0]] if styles else Look()
        parts.append(
            element(
                "g",
                element("title", escape("; ".join(titles))),
                outline(style.shape, a, b, half, _R),
                *([left_half(style.shape, a, b, half, _R)] if status == "undecided" else []),
                text(numbers, a, b + 4, text_anchor="middle"),
                *([_arrow(a, frame.floor)] if clipped[group[0]] else []),
                class_=f"point {status} c{style.colour}",
                data_m=" ".join(map(str, group)),
            )
        )
        taken.append((a - half, b - _R, a + half, b + _R))
    for i in [*front, *(i for i in range(len(points)) if i not in front)]:
        name = f"{names[i]}: {shown(measure.name, values[i])}" if clipped[i] else names[i]
        parts += _named(name, points[i], taken)
    return document(
        WIDTH, HEIGHT, parts, f"{measure.words} against {label}", role="group", class_="scatter"
    )


def _arrow(a: float, floor: float) -> str:
    d = f"M{a - 5:.1f} {floor + 1:.1f}h10l-5 6Z"
    return element("path", d=d, class_="below")


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

"""Accuracy against a time, as SVG: a number per method, names where there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kbench.report.svg import document, element, text, width_of
from kbench.stats import pareto_front

_WIDTH, _HEIGHT = 560.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 18.0, 16.0, 48.0
_R, _SIZE = 10.0, 11.5

Box = tuple[float, float, float, float]


def draw(
    names: Sequence[str], seconds: Sequence[float], accuracy: Sequence[float], label: str
) -> str:
    """Draw accuracy against time on a logarithmic axis; the Pareto front is a line.

    Parameters
    ----------
    names : sequence of str
        Methods; each is shown by its place, from 1.
    seconds, accuracy : sequence of float
        Their places on the axes; seconds positive.
    label : str
        What the horizontal axis shows.

    Returns
    -------
    str
        The SVG.
    """
    logs = [math.log10(max(value, 1e-9)) for value in seconds]
    low, high = min(logs), max(logs)
    margin = max(0.12 * (high - low), 0.08)
    low, high = low - margin, high + margin
    bottom, top, marks = _nice(min(accuracy), max(accuracy))

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - value) / (top - bottom)

    floor = _HEIGHT - _BOTTOM
    parts = []
    for mark, written in marks:
        parts.append(element("path", d=f"M{_LEFT} {y(mark):.1f}H{_WIDTH - _RIGHT}", class_="grid"))
        parts.append(text(written, _LEFT - 8, y(mark) + 4, class_="tick", text_anchor="end"))
    for mark in _log_marks(low, high):
        at = x(math.log10(mark))
        parts.append(element("path", d=f"M{at:.1f} {_TOP}V{floor}", class_="grid"))
        parts.append(text(duration(mark), at, floor + 18, class_="tick", text_anchor="middle"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(text(label, middle, _HEIGHT - 8, class_="tick", text_anchor="middle"))
    parts.append(
        text(
            "accuracy",
            0,
            0,
            class_="tick",
            text_anchor="middle",
            transform=f"translate(14 {(_TOP + floor) / 2:.0f}) rotate(-90)",
        )
    )
    points = [(x(a), y(b)) for a, b in zip(logs, accuracy, strict=True)]
    front = pareto_front(logs, [round(value, 12) for value in accuracy])
    d = f"M{points[front[0]][0]:.1f} {floor:.1f}"
    # names keep clear of the points and of the line
    taken: list[Box] = [(a - _R, b - _R, a + _R, b + _R) for a, b in points]
    before = (points[front[0]][0], floor)
    for i in front:
        a, b = points[i]
        d += f"H{a:.1f}V{b:.1f}"
        taken += [(before[0], before[1] - 1, a, before[1] + 1), (a - 1, b, a + 1, before[1])]
        before = (a, b)
    taken.append((before[0], before[1] - 1, _WIDTH, before[1] + 1))
    parts.append(element("path", d=f"{d}H{_WIDTH - _RIGHT:.1f}", class_="front"))
    # the last drawn lies on top: the front, and of it the best
    for i in sorted(range(len(points)), key=lambda i: (i in front, -i)):
        a, b = points[i]
        kind = "point front-point" if i in front else "point"
        told = f"{names[i]}: accuracy {accuracy[i]:.4f}, {duration(seconds[i])}"
        parts.append(
            element(
                "g",
                element("title", text_only(told)),
                element("circle", cx=a, cy=b, r=_R),
                text(str(i + 1), a, b + 4, text_anchor="middle"),
                class_=kind,
            )
        )
    for i in [*front, *(i for i in range(len(points)) if i not in front)]:
        parts += _named(names[i], points[i], taken)
    return document(_WIDTH, _HEIGHT, parts, f"Accuracy against {label}", class_="scatter")


def text_only(content: str) -> str:
    """Escape the text of a title."""
    from html import escape

    return escape(content)


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
        inside = box[0] >= _LEFT and box[2] <= _WIDTH - 2 and box[1] >= 2
        if not inside or box[3] > _HEIGHT - _BOTTOM or any(_overlap(box, other) for other in taken):
            continue
        taken.append(box)
        at = {"start": box[0], "end": box[2], "middle": (box[0] + box[2]) / 2}[anchor]
        return [text(name, at, middle + 4, class_="label", text_anchor=anchor)]
    return []


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _nice(low: float, high: float) -> tuple[float, float, list[tuple[float, str]]]:
    """Return the ends of an axis of accuracies and its marks."""
    spread = max(high - low, 0.01)
    step = next(s for s in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if spread / s <= 6)
    first, last = math.floor((low - 0.06 * spread) / step), math.ceil((high + 0.06 * spread) / step)
    digits = 3 if step < 0.01 else 2
    marks = [(i * step, f"{i * step:.{digits}f}") for i in range(first, last + 1)]
    return first * step, last * step, marks


def _log_marks(low: float, high: float) -> list[float]:
    """Return round numbers on a logarithmic axis, few enough to read."""
    for steps in ((1, 2, 5), (1, 3), (1,)):
        marks = [
            s * 10.0**e
            for e in range(math.floor(low), math.ceil(high) + 1)
            for s in steps
            if low <= math.log10(s) + e <= high
        ]
        if len(marks) <= 7:
            return marks
    return marks[:: math.ceil(len(marks) / 7)]


def duration(seconds: float) -> str:
    """Write a time for people.

    >>> duration(0.00042), duration(0.05), duration(2.0), duration(1234.5)
    ('0.42 ms', '50 ms', '2 s', '1230 s')
    """
    if seconds < 1e-3:
        return f"{seconds * 1e3:.2g} ms"
    if seconds < 1:
        return f"{float(f'{seconds * 1e3:.3g}'):g} ms"
    return f"{float(f'{seconds:.3g}'):g} s"

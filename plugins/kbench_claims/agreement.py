"""Own results against published figures as SVG: a scatter with the diagonal, and the z."""

from __future__ import annotations

import math
from collections import Counter

from kbench.features import (
    CHART_WIDTH,
    LEFT,
    RIGHT,
    Axis,
    Frame,
    document,
    element,
    escape,
    linear,
    logarithmic,
    name_of,
    number,
    shown,
    signed,
    spans_decade,
)
from kbench.messages import counted
from kbench_claims.published import FAR, Agreement, Beside

_BIN = 0.5
_MOST_Z = 5.0
_MOST_NAMED = 20


def scatter(found: Agreement) -> str:
    """Draw ours against theirs; figures that are far away are filled."""
    pairs = [(each.published.value, each.ours or 0.0) for each in found.compared]
    values = [value for pair in pairs for value in pair]
    label = found.measure

    def axis(words: str) -> Axis:
        if spans_decade(values):
            return logarithmic(values, words, number)
        return linear(values, words)

    frame = Frame(axis(f"{label}, published"), axis(f"{label}, here"))
    parts = frame.drawn()
    parts.append(
        element("path", d=f"M{LEFT} {frame.floor:.1f}L{CHART_WIDTH - RIGHT:.1f} 16", class_="front")
    )
    for each, (theirs, ours) in zip(found.compared, pairs, strict=True):
        far = abs(each.z or 0.0) >= FAR
        parts.append(
            element(
                "circle",
                element("title", escape(named(each))),
                cx=frame.x(theirs),
                cy=frame.y(ours),
                r=4.5 if far else 3.0,
                class_="dot" if far else "half",
            )
        )
    return document(CHART_WIDTH, 380.0, parts, f"{label}: ours against published", class_="scatter")


def histogram(found: Agreement) -> str:
    """Draw the numbers of figures by z, with the curve of a standard normal distribution."""
    most = _MOST_Z - _BIN / 2
    z = [max(-most, min(most, each.z or 0.0)) for each in found.compared]
    counts = Counter(math.floor(value / _BIN) for value in z)

    def normal(value: float) -> float:
        return len(z) * _BIN * math.exp(-(value**2) / 2) / math.sqrt(2 * math.pi)

    top = max(*counts.values(), normal(0.0))
    marks = [(float(mark), str(mark)) for mark in range(-5, 6)]
    frame = Frame(Axis("z", -_MOST_Z, _MOST_Z, marks), linear([0.0, float(top)], "figures"))
    parts = frame.drawn()
    for place, count in sorted(counts.items()):
        left, right = frame.x(place * _BIN), frame.x((place + 1) * _BIN)
        y = frame.y(float(count))
        words = f"{counted(count, 'figure')}, z from {place * _BIN:g} to {(place + 1) * _BIN:g}"
        parts.append(
            element(
                "rect",
                element("title", escape(words)),
                x=left + 1,
                y=y,
                width=right - left - 2,
                height=frame.floor - y,
                class_="half",
            )
        )
    steps = [i / 10 for i in range(-50, 51)]
    curve = "L".join(f"{frame.x(step):.1f} {frame.y(normal(step)):.1f}" for step in steps)
    parts.append(element("path", d=f"M{curve}", class_="front"))
    return document(
        CHART_WIDTH, 380.0, parts, f"{found.measure}: distribution of z", class_="scatter"
    )


def sentences(found: Agreement) -> list[str]:
    """Say how well own results agree with the figures, and name those that do not."""
    far = found.exceptions
    said = [
        f"{counted(len(found.compared), 'figure')} of {found.measure}: "
        f"{found.share:.1%} within |z| < {FAR:g}; mean of z {signed(found.mean, 2)}, "
        f"standard deviation {found.sd:.2f}."
    ]
    if far:
        names = "; ".join(named(each) for each in far[:_MOST_NAMED])
        more = f"; and {len(far) - _MOST_NAMED} more" if len(far) > _MOST_NAMED else ""
        said.append(f"Exceptions: {names}{more}.")
    return said


def named(each: Beside) -> str:
    """Name a figure with both values and its z."""
    figure = each.published
    ours, theirs = (shown(figure.measure, value) for value in (each.ours, figure.value))
    method = name_of((figure.feature_map, figure.learner))
    return f"{method} on {figure.dataset}: {ours}, published {theirs}, z {signed(each.z, 1)}"

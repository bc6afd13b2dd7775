"""How methods look in every chart: a colour for the learner, a shape for the family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kbench.report.svg import element
from kbench.results.leaderboard import NO_FAMILY
from kbench.results.rows import Method, Row

COLOURS = 8
"""Colours of the page's palette (`--c0` ...); more learners share them."""

MARKERS = "osDv^P"
"""Markers of matplotlib that stand for `SHAPES`."""

# corners of a shape: x as a share of half its width, then in radii; y in radii
_CORNERS: Sequence[Sequence[tuple[float, float, float]]] = (
    ((-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)),
    ((-1, -0.35, 0), (-1, 0.35, -1), (1, -0.35, -1), (1, 0.35, 0), (1, -0.35, 1), (-1, 0.35, 1)),
    ((-1, -0.3, -1), (1, 0.3, -1), (1, -0.35, 1), (-1, 0.35, 1)),
    ((-1, 0.35, -1), (1, -0.35, -1), (1, 0.3, 1), (-1, -0.3, 1)),
    ((-1, 0.1, -1), (1, 0.3, -1), (1, -0.1, 1), (-1, -0.3, 1)),
)
SHAPES = len(_CORNERS) + 1
"""A pill, a box, a hexagon, two trapezia and a leaning box; more families share them."""


@dataclass(frozen=True)
class Look:
    """Numbers of the colour and of the shape of a method."""

    colour: int = 0
    shape: int = 0


@dataclass(frozen=True)
class Looks:
    """The looks of the methods of some rows, in the order in which the rows name them.

    Examples
    --------
    >>> rows = [Row("iris", name, "ridge", "ok", 5, 5, family=family)
    ...         for name, family in (("rff", "Fourier"), ("nystroem", "landmarks"))]
    >>> Looks(rows)["nystroem", "ridge"]
    Look(colour=0, shape=1)
    """

    rows: Sequence[Row]

    @cached_property
    def learners(self) -> list[str]:
        """The learners, each with the colour of its place."""
        return list(dict.fromkeys(row.learner for row in self.rows))

    @cached_property
    def families(self) -> list[str]:
        """The families, each with the shape of its place."""
        return list(dict.fromkeys(self._family_of.values()))

    @cached_property
    def _family_of(self) -> dict[Method, str]:
        found: dict[Method, str] = {}
        for row in self.rows:
            # cells without data do not know their family
            if row.family or row.method not in found:
                found[row.method] = row.family or NO_FAMILY
        return found

    def __getitem__(self, method: Method) -> Look:
        shape = self.families.index(self._family_of[method])
        return Look(self.learners.index(method[1]) % COLOURS, shape % SHAPES)


def outline(shape: int, x: float, y: float, half: float, radius: float) -> str:
    """Draw a shape of a width and the height of two radii around a point."""
    if shape == 0:
        return element(
            "rect",
            x=x - half,
            y=y - radius,
            width=2 * half,
            height=2 * radius,
            rx=radius,
            class_="shape",
        )
    return element("path", d=_path(_corners(shape, x, y, half, radius)), class_="shape")


def left_half(shape: int, x: float, y: float, half: float, radius: float) -> str:
    """Draw the left half of a shape."""
    if shape == 0:
        left = x - half + radius
        d = (
            f"M{x:.1f} {y - radius:.1f}H{left:.1f}"
            f"A{radius} {radius} 0 0 0 {left:.1f} {y + radius:.1f}H{x:.1f}Z"
        )
        return element("path", d=d, class_="half")
    corners = _corners(shape, x, y, half, radius)
    kept: list[tuple[float, float]] = []
    for (a, b), (c, d_) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if a <= x:
            kept.append((a, b))
        if (a <= x) != (c <= x):
            kept.append((x, b + (d_ - b) * (x - a) / (c - a)))
    return element("path", d=_path(kept), class_="half")


def sample(shape: int) -> str:
    """Draw a shape as a small picture for a legend."""
    drawn = outline(shape % SHAPES, 10, 6, 8, 5)
    return element("svg", drawn, width=20, height=12, class_="sample", aria_hidden="true")


def _corners(
    shape: int, x: float, y: float, half: float, radius: float
) -> list[tuple[float, float]]:
    return [
        (x + side * half + more * radius, y + up * radius) for side, more, up in _CORNERS[shape - 1]
    ]


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in corners) + "Z"

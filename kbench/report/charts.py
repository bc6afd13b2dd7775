"""Charts as SVG: axes and their frame, lines along an axis, and how methods look in all of them."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kbench.records import Metric
from kbench.report.svg import document, element, escape, text
from kbench.results.leaderboard import NO_FAMILY
from kbench.results.rows import Method, Row

WIDTH, HEIGHT = 560.0, 380.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 18.0, 16.0, 48.0


@dataclass(frozen=True)
class Axis:
    """A range of numbers with marks; with `log`, of their decimal logarithms.

    Parameters
    ----------
    label : str
    low, high : float
        Values at its beginning and end, logarithms with `log`; `low` is the larger one of
        an axis that is turned round.
    marks : sequence of (float, str)
        Values that are marked, with their labels.
    log : bool
    """

    label: str
    low: float
    high: float
    marks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """Return the place of a value along the axis, 0 to 1 between its ends."""
        place = math.log10(max(value, 1e-12)) if self.log else value
        return (place - self.low) / (self.high - self.low)


def linear(values: Sequence[float], label: str) -> Axis:
    """Return an axis of numbers with about five round marks.

    >>> [text for _, text in linear([0.71, 0.93], "accuracy").marks]
    ['0.65', '0.70', '0.75', '0.80', '0.85', '0.90', '0.95']
    """
    low, high = min(values), max(values)
    size = max(abs(low), abs(high)) or 1.0
    spread = max(high - low, min(0.01, 0.1 * size), 1e-3 * size)
    unit = 10.0 ** math.floor(math.log10(spread / 6))
    step = next(s * unit for s in (1, 2, 5, 10) if spread / (s * unit) <= 6)
    first, last = math.floor((low - 0.06 * spread) / step), math.ceil((high + 0.06 * spread) / step)
    # nothing measured here is negative; do not pretend that it could be
    first = max(first, 0) if low >= 0 else first
    # nor does a share exceed 1
    last = min(last, round(1 / step)) if 0 <= low <= high <= 1 and last * step > 1 > step else last
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits = max(digits, 2) if step < 1 else digits
    form = f".{digits}f" if digits <= 6 else ".3g"
    marks = [(i * step, format(i * step, form)) for i in range(first, last + 1)]
    return Axis(label, first * step, last * step, marks)


def logarithmic(values: Sequence[float], label: str, written: Callable[[float], str]) -> Axis:
    """Return a logarithmic axis of positive numbers, with few enough marks to read."""
    logs = [math.log10(max(value, 1e-12)) for value in values]
    low, high = min(logs), max(logs)
    margin = max(0.12 * (high - low), 0.08)
    low, high = low - margin, high + margin
    return Axis(label, low, high, [(mark, written(mark)) for mark in _round(low, high)], log=True)


def make_metric_axis(values: Sequence[float], metric: Metric, words: str = "") -> Axis:
    """Return an axis on which better values of a metric come later, whatever its direction.

    Its label begins with `words`, by default those of the metric.

    >>> axis = make_metric_axis([0.2, 0.3], Metric("rmse", "lower"))
    >>> axis.label, axis.share(0.2) > axis.share(0.3)
    ('rmse (lower is better)', True)
    """
    words = words or metric.words
    if metric.better == "higher":
        return linear(values, words)
    label = f"{words} (lower is better)"
    axis = logarithmic(values, label, number) if spans_decade(values) else linear(values, label)
    return replace(axis, low=axis.high, high=axis.low)


def spans_decade(values: Sequence[float]) -> bool:
    """Whether numbers are positive, and the largest is at least ten times the smallest."""
    return 0 < 10 * min(values) <= max(values)


def _round(low: float, high: float) -> list[float]:
    """Return round numbers between two logarithms."""
    marks: list[float] = []
    for steps in (tuple(range(1, 10)), (1, 2, 5), (1, 3), (1,)):
        marks = [
            s * 10.0**e
            for e in range(math.floor(low), math.ceil(high) + 1)
            for s in steps
            if low <= math.log10(s) + e <= high
        ]
        if len(marks) <= 6:
            return marks
    return marks[:: math.ceil(len(marks) / 7)]


@dataclass(frozen=True)
class Frame:
    """Places of values in a chart of `WIDTH` by `HEIGHT`."""

    horizontal: Axis
    vertical: Axis

    # The y of the horizontal axis.
    floor = HEIGHT - BOTTOM

    def x(self, value: float) -> float:
        """Return the x of a value."""
        return LEFT + (WIDTH - LEFT - RIGHT) * self.horizontal.share(value)

    def y(self, value: float) -> float:
        """Return the y of a value, from the top."""
        return TOP + (self.floor - TOP) * (1 - self.vertical.share(value))

    def draw(self) -> list[str]:
        """Draw grid, marks and labels."""
        parts = []
        for mark, written in self.vertical.marks:
            y = self.y(mark)
            line = element("path", d=f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}", class_="grid")
            parts += [line, tick(written, LEFT - 8, y + 4, text_anchor="end")]
        for mark, written in self.horizontal.marks:
            x = self.x(mark)
            parts.append(element("path", d=f"M{x:.1f} {TOP}V{self.floor}", class_="grid"))
            parts.append(tick(written, x, self.floor + 18))
        turned = f"translate(13 {(TOP + self.floor) / 2:.0f}) rotate(-90)"
        below = tick(self.horizontal.label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8)
        return [*parts, below, tick(self.vertical.label, 0, 0, transform=turned)]


def tick(words: str, x: float, y: float, text_anchor: str = "middle", **more: str) -> str:
    """Write a mark or label of an axis."""
    return text(words, x, y, class_="tick", text_anchor=text_anchor, **more)


# -- times and numbers in words


def duration(seconds: float) -> str:
    """Write a time for people.

    >>> duration(0.00042), duration(0.05), duration(2.0), duration(1234.5), duration(3e-7)
    ('0.42 ms', '50 ms', '2 s', '1230 s', '0.3 µs')
    """
    if seconds < 1e-4:
        return f"{float(f'{seconds * 1e6:.2g}'):g} µs"
    if seconds < 1e-3:
        return f"{seconds * 1e3:.2g} ms"
    if seconds < 1:
        return f"{float(f'{seconds * 1e3:.3g}'):g} ms"
    return f"{float(f'{seconds:.3g}'):g} s"


def duration_unit(seconds: Sequence[float]) -> tuple[str, Callable[[float], str]]:
    """Return one unit for several times, and the function that writes a time in it.

    >>> unit, written = duration_unit([0.0004, 0.05, 2.0])
    >>> unit, written(0.0004), written(2.0)
    ('ms', '0.4', '2000')
    """
    middle = sorted(seconds)[len(seconds) // 2] if seconds else 1.0
    unit, scale = ("s", 1.0) if middle >= 1 else ("ms", 1e3) if middle >= 1e-3 else ("µs", 1e6)
    return unit, lambda value: _three_digits(value * scale)


def _three_digits(value: float) -> str:
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if abs(rounded) >= 1000 else f"{rounded:g}"


def number(value: float) -> str:
    """Write a number for people.

    >>> number(0.001), number(300.0), number(20000.0), number(2.5)
    ('0.001', '300', '20,000', '2.5')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{float(f'{value:.3g}'):g}"


# -- a line per method, with its number at its end

# Maximum number of lines of a chart; more cannot be distinguished.
MAX_LINES = 10

# Number of dash patterns that distinguish lines of one colour.
DASHES = 4


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


def draw_lines(
    lines: Sequence[Line],
    label: str,
    vertical: str,
    written: Callable[[float], str],
    written_y: Callable[[float], str],
    metric: Metric | None = None,
) -> str:
    """Draw at least one line; the horizontal axis is logarithmic where its values allow.

    The vertical one is too, unless its values are those of a metric. `label` and `vertical`
    are their labels; `written` and `written_y` write their values.
    """
    every = [(*line.points, *([line.beyond] if line.beyond else [])) for line in lines]
    xs = [x for points in every for x, _ in points]
    ys = [y for points in every for _, y in points]
    spans = min(xs) > 0 and max(xs) >= 4 * min(xs)
    across: Axis = logarithmic(xs, label, written) if spans else linear(xs, label)
    axis = (
        make_metric_axis(ys, metric, vertical) if metric else logarithmic(ys, vertical, written_y)
    )
    frame = Frame(across, axis)
    parts = frame.draw()
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
            path = f"M{x:.1f} {end:.1f}L{at:.1f} {up:.1f}"
            shapes.append(element("path", d=path, class_="run beyond"))
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


# -- looks: a colour for the learner, a shape for the family

# Colours of the page's palette (`--c0` ...); more learners share them.
COLOURS = 8

# A pill, a box, a hexagon, two trapezia and a leaning box; more families share them.
SHAPES = 6


@dataclass(frozen=True)
class Style:
    """Numbers of the colour and of the shape of a method."""

    colour: int = 0
    shape: int = 0


@dataclass(frozen=True)
class Styles:
    """The styles of the methods of some rows, in the order in which the rows name them.

    Examples
    --------
    >>> rows = [Row("iris", name, "ridge", "ok", 5, 5, family=family)
    ...         for name, family in (("rff", "fourier"), ("nystroem", "landmarks"))]
    >>> Styles(rows)["nystroem", "ridge"]
    Style(colour=0, shape=1)
    """

    rows: Sequence[Row]

    @cached_property
    def learners(self) -> list[str]:
        """The learners, each with the colour of its place."""
        return list(dict.fromkeys(row.learner for row in self.rows))

    @cached_property
    def families(self) -> list[str]:
        """The families, each with the shape of its place."""
        return list(dict.fromkeys(self._families.values()))

    @cached_property
    def _families(self) -> dict[Method, str]:
        # cells without data do not know their family
        known = {row.method: row.family for row in self.rows if row.family}
        return {row.method: known.get(row.method, NO_FAMILY) for row in self.rows}

    def __getitem__(self, method: Method) -> Style:
        shape = self.families.index(self._families[method])
        return Style(self.learners.index(method[1]) % COLOURS, shape % SHAPES)

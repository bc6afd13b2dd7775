"""The charts of the page, each with the table of its values."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kbench import features
from kbench_reporting.findings import growth, places
from kbench_reporting.tables import methods, scaling

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Cost:
    """A cost of methods: an attribute of `kbench.results.stats.Standing`, and words for it."""

    attribute: str
    title: str
    label: str
    written: Callable[[float], str] = features.duration


COSTS = (
    Cost("fit_time_s", "fit time", "fit time, geometric mean over datasets"),
    Cost(
        "predict_time_per_row_s",
        "predict time",
        "predict time per row, geometric mean over datasets",
    ),
    Cost("n_components", "number of features", "features, mean over datasets", features.number),
)


def drawn_costs(content: features.ReportData) -> Iterator[Cost]:
    """Yield the costs that all methods have, and in which they differ."""
    for cost in COSTS:
        costs = [getattr(standing, cost.attribute) for standing in content.standings]
        # an older store may not have them, and a chart of one width shows nothing
        if all(map(math.isfinite, costs)) and len({round(value, 12) for value in costs}) > 1:
            yield cost


def cost_charts(content: features.ReportData) -> Iterator[features.Chart]:
    """Draw the metric against the costs of several methods over common datasets."""
    standings, words = content.standings, features.heading(content.metric)
    looks = features.Styles(content.rows)
    styles = [looks[standing.method] for standing in standings]
    for cost in drawn_costs(content):
        costs = [getattr(standing, cost.attribute) for standing in standings]
        title = f"{words} against {cost.title}"
        on_front = places(content, cost.attribute)
        draw = partial(
            scatter,
            [standing.name for standing in standings],
            costs,
            [standing.mean for standing in standings],
            content.metric,
            cost.label,
            cost.written,
            [place.status for place in on_front],
            styles,
        )
        shown = {"place", "feature_map", "learner", "mean", cost.attribute, "front", "front_share"}
        table, is_decided = methods(content), not content.certainty.front(cost.attribute).reason
        columns = [replace(c, wide=False) for c in table.columns if c.name in shown]
        # the statuses are those of the front against this cost
        rows = [
            {**row, "front": place.status if is_decided else None, "front_share": place.probability}
            for row, place in zip(table.rows, on_front, strict=True)
        ]
        table = replace(table, title=title, columns=columns, rows=rows, notes={})
        as_error = draw(as_error=True) if features.is_share_metric(content.metric) else ""
        yield features.Chart(title, draw(), table, as_error)


def growth_charts(content: features.ReportData) -> Iterator[features.Chart]:
    """Draw the fit time against the number of training rows, where sizes vary."""
    looks, drawn = features.Styles(content.rows), []
    for line in growth(content)[: features.MAX_LINES]:
        name, colour = features.format_method(line.method), looks[line.method].colour
        drawn.append(features.Line(name, line.points, line.place, colour=colour))
    if drawn:
        picture = features.draw_lines(
            drawn, "training rows", "fit time", features.number, features.duration
        )
        yield features.Chart("Fit time against training rows", picture, scaling(content))


# -- a metric against a cost: a number per method, names where there is room

_R, _SIZE, _NUMBER = 10.0, 11.5, 10.5
_FILLED: tuple[features.Status, ...] = ("frontier", "undecided", "dominated")
_BELOW = " (below the axis)"
_WORDS: Mapping[features.Status, str] = {
    "frontier": "on the Pareto front",
    "undecided": "undecided",
    "dominated": "dominated",
}


@dataclass(frozen=True)
class Plan:
    """Axes of a chart of a metric against a cost, the height of each method, and the front.

    A method that is `below` the vertical axis is far worse than all others.
    """

    horizontal: features.Axis
    vertical: features.Axis
    heights: Sequence[float]
    below: Sequence[bool]
    front: Sequence[int]


def scatter(
    names: Sequence[str],
    costs: Sequence[float],
    values: Sequence[float],
    metric: features.Metric,
    label: str,
    written: Callable[[float], str],
    statuses: Sequence[features.Status],
    styles: Sequence[features.Style],
    as_error: bool = False,
) -> str:
    """Draw a metric against a cost on a logarithmic axis; the Pareto front is a line.

    Each method is shown by its place, from 1, with its colour and shape; those at one place have
    the look of the first. A point is filled on the front, empty off it, and half filled if this
    is undecided. A few methods that are far worse than the rest stand below the axis, with an
    arrow.
    """
    plan = planned(costs, values, metric, label, written, as_error)
    frame = features.Frame(plan.horizontal, plan.vertical)
    parts = frame.draw()
    points = [
        (frame.x(a), frame.floor - _R - 1 if below else frame.y(b))
        for a, b, below in zip(costs, plan.heights, plan.below, strict=True)
    ]
    front = plan.front
    # the front begins at the worst that the axis shows
    x, y = points[front[0]][0], frame.floor
    d = f"M{x:.1f} {y:.1f}"
    # names keep clear of the points and of the line
    taken: list[Box] = [(a - _R, b - _R, a + _R, b + _R) for a, b in points]
    for a, b in (points[i] for i in front):
        d += f"H{a:.1f}V{b:.1f}"
        taken += [(x, y - 1, a, y + 1), (a - 1, min(b, y), a + 1, max(b, y))]
        x, y = a, b
    taken.append((x, y - 1, features.CHART_WIDTH, y + 1))
    parts.append(
        features.element(
            "path", d=f"{d}H{features.CHART_WIDTH - features.RIGHT:.1f}", class_="front"
        )
    )
    # the last drawn lies on top: the front, and of it the best
    best = set(front)
    for group in sorted(_together(points), key=lambda some: (not best.isdisjoint(some), -some[0])):
        a, b = points[group[0]]
        status = min((statuses[i] for i in group), key=_FILLED.index)
        titles = (
            f"{names[i]}: {metric.words} {features.write_cell(metric.name, values[i])}, "
            f"{written(costs[i])}, {_WORDS[statuses[i]]}{_BELOW if plan.below[i] else ''}"
            for i in group
        )
        numbers = ", ".join(str(i + 1) for i in group)
        half = max(_R, features.estimate_width(numbers, _NUMBER) / 2 + 3)
        style = styles[group[0]]
        drawn = [
            features.element("title", features.escape("; ".join(titles))),
            outline(style.shape, a, b, half, _R),
        ]
        if status == "undecided":
            drawn.append(outline(style.shape, a, b, half, _R, True))
        drawn.append(features.text(numbers, a, b + 4, text_anchor="middle"))
        if plan.below[group[0]]:
            arrow = f"M{a - 5:.1f} {frame.floor + 1:.1f}h10l-5 6Z"
            drawn.append(features.element("path", d=arrow, class_="below"))
        look = {"class_": f"point {status} c{style.colour}", "data_m": " ".join(map(str, group))}
        parts.append(features.element("g", *drawn, **look))
        taken.append((a - half, b - _R, a + half, b + _R))
    for i in [*front, *(i for i in range(len(points)) if i not in front)]:
        name = (
            f"{names[i]}: {features.write_cell(metric.name, values[i])}"
            if plan.below[i]
            else names[i]
        )
        parts += _label(name, points[i], taken)
    title = f"{metric.words} against {label}"
    return features.document(
        features.CHART_WIDTH, features.CHART_HEIGHT, parts, title, role="group", class_="scatter"
    )


def upper_part(values: Sequence[float], metric: features.Metric) -> list[float]:
    """Return the values that an axis shows: without a few that are far worse than the others.

    A quarter of them at most, if the gap before the others is the larger half of the range.
    One bad baseline would leave no room for the differences of all others.

    >>> upper_part([0.46, 0.89, 0.91, 0.95], features.Metric("accuracy"))
    [0.89, 0.91, 0.95]
    >>> upper_part([0.5, 0.6, 0.7, 0.8], features.Metric("accuracy"))
    [0.5, 0.6, 0.7, 0.8]
    """
    order = sorted(values, key=metric.gain)
    spread = abs(order[-1] - order[0])
    for n in range(len(order) // 4, 0, -1):
        if abs(order[n] - order[n - 1]) > spread / 2:
            shown = set(order[n:])
            return [value for value in values if value in shown]
    return list(values)


def planned(
    costs: Sequence[float],
    values: Sequence[float],
    metric: features.Metric,
    label: str,
    written: Callable[[float], str],
    as_error: bool = False,
) -> Plan:
    """Place a metric, or 1 - value on a logarithmic axis, against a cost; better ones higher.

    A value of 1 has no logarithm: it stands at half the smallest other error.

    >>> plan = planned([1.0, 2.0], [0.9, 0.99], features.Metric("accuracy"), "time", str, True)
    >>> plan.vertical.label, plan.vertical.share(0.01) > plan.vertical.share(0.1)
    ('1 - accuracy (lower is better)', True)
    >>> [round(error, 3) for error in planned([1.0, 2.0], [0.9, 1.0], features.Metric("accuracy"),
    ...                                       "time", str, True).heights]
    [0.1, 0.05]
    """
    inside = upper_part(values, metric)
    worst = min(map(metric.gain, inside))
    vertical, heights = features.make_metric_axis(inside, metric), list(values)
    if as_error:
        least = min((1 - value for value in inside if 1 - value > 1e-9), default=0.01) / 2
        heights = [max(1 - value, least) for value in values]
        errors = [max(1 - value, least) for value in inside]
        axis = features.logarithmic(
            errors, f"1 - {metric.words} (lower is better)", features.number
        )
        vertical = replace(axis, low=axis.high, high=axis.low)
    return Plan(
        features.logarithmic(costs, label, written),
        vertical,
        heights,
        [metric.gain(value) < worst for value in values],
        pareto_front(costs, [metric.gain(round(value, 12)) for value in values]),
    )


def pareto_front(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Return the points than which no other is at once cheaper and better, the cheapest first.

    >>> pareto_front([1, 2, 3, 4], [0.8, 0.7, 0.9, 0.9])
    [0, 2]
    """
    front: list[int] = []
    for i in sorted(range(len(cost)), key=lambda i: (cost[i], -gain[i])):
        if not front or gain[i] > gain[front[-1]]:
            front.append(i)
    return front


def overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes (left, top, right, bottom) share a point."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _together(points: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return the numbers of the points, those at one place together.

    >>> _together([(10.0, 20.0), (30.0, 20.0), (10.01, 20.0)])
    [[0, 2], [1]]
    """
    places = enumerate(points)
    return list(
        features.group_values(((round(a, 1), round(b, 1)), i) for i, (a, b) in places).values()
    )


def _label(name: str, point: tuple[float, float], taken: list[Box]) -> list[str]:
    """Write a name beside its point where it covers nothing else; else nothing."""
    a, b = point
    wide = features.estimate_width(name, _SIZE)
    for left, middle, anchor in (
        (a + _R + 4, b, "start"),
        (a - _R - 4 - wide, b, "end"),
        (a - wide / 2, b - _R - 9, "middle"),
        (a - wide / 2, b + _R + 9, "middle"),
        (a + _R, b + _R + 4, "start"),
        (a - _R - wide, b - _R - 4, "end"),
    ):
        box = (left, middle - 7, left + wide, middle + 7)
        is_inside = left >= features.LEFT and box[2] <= features.CHART_WIDTH - 2
        is_inside &= box[1] >= 2 and box[3] <= features.CHART_HEIGHT - features.CHART_BOTTOM
        if is_inside and not any(overlap(box, other) for other in taken):
            taken.append(box)
            at = {"start": left, "end": box[2], "middle": (left + box[2]) / 2}[anchor]
            return [features.text(name, at, middle + 4, class_="label", text_anchor=anchor)]
    return []


# -- shapes of families

# corners of a shape: x as a share of half its width, then in radii; y in radii
_CORNERS: Sequence[Sequence[tuple[float, float, float]]] = (
    ((-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)),
    ((-1, -0.35, 0), (-1, 0.35, -1), (1, -0.35, -1), (1, 0.35, 0), (1, -0.35, 1), (-1, 0.35, 1)),
    ((-1, -0.3, -1), (1, 0.3, -1), (1, -0.35, 1), (-1, 0.35, 1)),
    ((-1, 0.35, -1), (1, -0.35, -1), (1, 0.3, 1), (-1, -0.3, 1)),
    ((-1, 0.1, -1), (1, 0.3, -1), (1, -0.1, 1), (-1, -0.3, 1)),
)


def outline(
    shape: int, x: float, y: float, half: float, radius: float, is_half: bool = False
) -> str:
    """Draw a shape of a width and the height of two radii around a point, or its left half."""
    if shape == 0 and not is_half:
        size = {"width": 2 * half, "height": 2 * radius, "rx": radius}
        return features.element("rect", x=x - half, y=y - radius, **size, class_="shape")
    if shape == 0:
        left = x - half + radius
        arc = f"A{radius} {radius} 0 0 0 {left:.1f} {y + radius:.1f}"
        d = f"M{x:.1f} {y - radius:.1f}H{left:.1f}{arc}H{x:.1f}Z"
        return features.element("path", d=d, class_="half")
    # edges across the middle are level, so that corners to the right of it can move there
    furthest = x if is_half else math.inf
    corners = (
        f"{min(x + side * half + more * radius, furthest):.1f} {y + up * radius:.1f}"
        for side, more, up in _CORNERS[shape - 1]
    )
    return features.element(
        "path", d=f"M{'L'.join(corners)}Z", class_="half" if is_half else "shape"
    )


def sample(shape: int) -> str:
    """Draw a shape for a legend."""
    drawn = outline(shape % features.SHAPES, 10, 6, 8, 5)
    return features.element("svg", drawn, width=20, height=12, class_="sample", aria_hidden="true")

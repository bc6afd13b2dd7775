"""Charts as SVG: agreement with published values, and metrics that maps have learned."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kbench.features import (
    CHART_WIDTH,
    LEFT,
    RIGHT,
    Axis,
    Frame,
    Row,
    document,
    element,
    escape,
    estimate_width,
    format_method,
    linear,
    logarithmic,
    number,
    spans_decade,
    text,
    write_cell,
    write_signed,
)
from kbench.messages import plural
from kbench_claims.published import FAR, Agreement, Beside

# -- results against published values


_BIN = 0.5
_MAX_Z = 5.0
_MAX_NAMED = 10


def scatter(agreement: Agreement) -> str:
    """Draw results against published values; those that differ are filled."""
    pairs = [(each.published.value, each.ours or 0.0) for each in agreement.compared]
    values = [value for pair in pairs for value in pair]
    label = agreement.metric

    def axis(words: str) -> Axis:
        if spans_decade(values):
            return logarithmic(values, words, number)
        return linear(values, words)

    frame = Frame(axis(f"published {label}"), axis(f"{label} of this run"))
    parts = frame.draw()
    parts.append(
        element("path", d=f"M{LEFT} {frame.floor:.1f}L{CHART_WIDTH - RIGHT:.1f} 16", class_="front")
    )
    for each, (theirs, ours) in zip(agreement.compared, pairs, strict=True):
        radius, look = (4.5, "dot") if each.differs else (3.0, "half")
        at = {"cx": frame.x(theirs), "cy": frame.y(ours)}
        parts.append(_titled("circle", describe_value(each), **at, r=radius, class_=look))
    title = f"{label}: results against published values"
    return document(CHART_WIDTH, 380.0, parts, title, class_="scatter")


def _titled(tag: str, title: str, **attributes: object) -> str:
    """Return an element that shows a title at the pointer."""
    return element(tag, element("title", escape(title)), **attributes)


def histogram(agreement: Agreement) -> str:
    """Draw a histogram of z, with the standard normal density."""
    most = _MAX_Z - _BIN / 2
    z = [max(-most, min(most, each.z or 0.0)) for each in agreement.compared]
    counts = Counter(math.floor(value / _BIN) for value in z)

    def normal(value: float) -> float:
        return len(z) * _BIN * math.exp(-(value**2) / 2) / math.sqrt(2 * math.pi)

    top = max(*counts.values(), normal(0.0))
    marks = [(float(mark), str(mark)) for mark in range(-5, 6)]
    frame = Frame(Axis("z", -_MAX_Z, _MAX_Z, marks), linear([0.0, float(top)], "published values"))
    parts = frame.draw()
    for place, count in sorted(counts.items()):
        left, right = frame.x(place * _BIN), frame.x((place + 1) * _BIN)
        y = frame.y(float(count))
        words = f"{plural(count, 'value')}, z from {place * _BIN:g} to {(place + 1) * _BIN:g}"
        size = {"width": right - left - 2, "height": frame.floor - y}
        parts.append(_titled("rect", words, x=left + 1, y=y, **size, class_="half"))
    steps = [i / 10 for i in range(-50, 51)]
    curve = "L".join(f"{frame.x(step):.1f} {frame.y(normal(step)):.1f}" for step in steps)
    parts.append(element("path", d=f"M{curve}", class_="front"))
    title = f"{agreement.metric}: distribution of z"
    return document(CHART_WIDTH, 380.0, parts, title, class_="scatter")


def sentences(group: Agreement) -> list[str]:
    """Return sentences on the agreement with published values, and name those that differ."""
    far = group.exceptions
    lines = [
        f"{len(far)} of {plural(len(group.compared), 'published value')} of {group.metric} "
        f"{'differs' if len(far) == 1 else 'differ'} by more than two standard errors (|z| > "
        f"{FAR:g}); about 5 % would by chance. Mean of z: {write_signed(group.mean, 2)}; standard "
        f"deviation: {group.sd:.2f}."
    ]
    if far:
        names = "; ".join(describe_value(each) for each in far[:_MAX_NAMED])
        more = f"; and {len(far) - _MAX_NAMED} more" if len(far) > _MAX_NAMED else ""
        lines.append(f"Largest |z|: {names}{more}.")
    return lines


def describe_value(each: Beside) -> str:
    """Name a published value with the result and its z."""
    figure = each.published
    ours, theirs = (write_cell(figure.metric, value) for value in (each.ours, figure.value))
    method = format_method((figure.feature_map, figure.learner))
    return f"{method} on {figure.dataset}: {ours}, published {theirs}, z {write_signed(each.z, 1)}"


# -- weights of columns, and a heat map of the matrix


_MAX_COLUMNS = 30
_MAX_BARS = 15
_BAR, _LONG, _CELL, _GAP = 15.0, 150.0, 15.0, 36.0
_LONGEST_NAME = 24


@dataclass(frozen=True)
class LearnedMetric:
    """The metric that the map of a cell has learned on one split."""

    row: Row
    """The cell."""
    split: int
    round: int
    """`split` is its number, `round` the one that was chosen."""
    form: str
    """One of "full", "diagonal" and "low_rank"."""
    names: Sequence[str]
    """The columns with the largest weights, in the order of the dataset."""
    matrix: Sequence[Sequence[float]]
    """Their part of the metric."""
    errors: Sequence[float]
    """Error of held-out rows after 0, 1, ... rounds."""

    @property
    def weights(self) -> list[tuple[str, float]]:
        """Names and weights of the columns, the largest weight first."""
        diagonal = [row[i] for i, row in enumerate(self.matrix)]
        return sorted(zip(self.names, diagonal, strict=True), key=lambda pair: -pair[1])[:_MAX_BARS]


def learned_metrics(rows: Iterable[Row]) -> list[LearnedMetric]:
    """Return the metrics of cells whose maps have learned one; a store may hold anything."""
    return [metric for metric in map(_read_metric, rows) if metric is not None]


def _read_metric(row: Row) -> LearnedMetric | None:
    details = row.map_details
    try:
        columns = [int(column) for column in details["columns"]][:_MAX_COLUMNS]
        size = len(columns)
        matrix = [[float(value) for value in line[:size]] for line in details["matrix"][:size]]
        errors = [float(value) for value in details["errors"]]
        all_names = details.get("feature_names", ())
        names = [str(all_names[j]) if 0 <= j < len(all_names) else f"x{j}" for j in columns]
        split, round_, form = int(details["split"]), int(details["round"]), str(details["metric"])
    except (KeyError, TypeError, ValueError):
        return None
    square = size > 0 and len(matrix) == size and all(len(line) == size for line in matrix)
    numbers = [*errors, *(value for line in matrix for value in line)]
    if not square or round_ < 1 or not all(map(math.isfinite, numbers)):
        return None
    return LearnedMetric(row, split, round_, form, names, matrix, errors)


def draw_metric(metric: LearnedMetric) -> str:
    """Draw bars of the largest weights, and a heat map unless the metric is diagonal.

    In the heat map, blue entries are positive and orange ones negative; darker ones are larger.
    """
    short = _shorten(metric.names)
    bars, width, height = _bars(metric.weights, short)
    if metric.form != "diagonal" and len(metric.names) > 1:
        cells, right, low = _heat_map(metric.names, metric.matrix, short, width + _GAP)
        bars, width, height = [*bars, *cells], right, max(height, low)
    label = f"Learned metric of {metric.row.feature_map} on {metric.row.dataset}"
    return document(width, height, bars, label, class_="metric")


def _shorten(names: Sequence[str]) -> dict[str, str]:
    """Shorten long names at their end, or in the middle where they would be equal then.

    Those that are equal even so get a number.
    """
    end = _LONGEST_NAME // 3
    cut = {name: f"{name[: _LONGEST_NAME - 1]}…" for name in names}
    middle = {name: f"{name[: _LONGEST_NAME - 1 - end]}…{name[-end:]}" for name in names}
    labels: dict[str, str] = {}
    for i, name in enumerate(cut):
        alone = [s[name] for s in (cut, middle) if list(s.values()).count(s[name]) == 1]
        numbered = f"{cut[name][: _LONGEST_NAME - 6]}… ({i + 1})"
        labels[name] = name if len(name) <= _LONGEST_NAME else [*alone, numbered][0]
    return labels


def _bars(
    weights: Sequence[tuple[str, float]], short: Mapping[str, str]
) -> tuple[list[str], float, float]:
    names = max(estimate_width(short[name], 11.5) for name, _ in weights) + 8
    largest = max(weight for _, weight in weights) or 1.0
    parts = [text("weight of a column", names, 12, class_="tick small")]
    for i, (name, weight) in enumerate(weights):
        y = 20 + i * (_BAR + 3)
        parts.append(text(short[name], names - 5, y + 11.5, class_="label", text_anchor="end"))
        length = max(0.0, _LONG * weight / largest)
        size = {"width": length, "height": _BAR, "fill": "currentColor"}
        bar = _titled("rect", f"{name}: {weight:.3g}", x=names, y=y, **size)
        parts.append(element("g", bar, class_="c0"))
        parts.append(text(f"{weight:.2g}", names + length + 5, y + 11.5, class_="small"))
    return parts, names + _LONG + 48, 20 + len(weights) * (_BAR + 3) + 4


def _heat_map(
    names: Sequence[str], matrix: Sequence[Sequence[float]], short: Mapping[str, str], left: float
) -> tuple[list[str], float, float]:
    edge = max(estimate_width(short[name], 10.5) for name in names) + 6
    largest = max(abs(value) for line in matrix for value in line) or 1.0
    x0, y0 = left + edge, edge + 4
    parts = []
    for i, name in enumerate(names):
        middle = (i + 0.5) * _CELL + 3.5
        parts.append(text(short[name], x0 - 5, y0 + middle, class_="small", text_anchor="end"))
        turn = f"rotate(-90 {x0 + middle:.2f} {y0 - 5:.2f})"
        parts.append(text(short[name], x0 + middle, y0 - 5, class_="small", transform=turn))
        for j, other in enumerate(names):
            value = matrix[i][j]
            at = {"x": x0 + j * _CELL, "y": y0 + i * _CELL, "width": _CELL - 1, "height": _CELL - 1}
            # the root has the unit of a slope, and shows small entries
            look = {
                "fill": "currentColor",
                "fill_opacity": round(math.sqrt(abs(value) / largest), 3),
            }
            cell = _titled("rect", f"{name}, {other}: {value:.3g}", **at, **look)
            parts.append(element("g", cell, class_="c0" if value >= 0 else "c1"))
    size = len(names) * _CELL
    return parts, x0 + size + 4, y0 + size + 4


def describe(metric: LearnedMetric) -> str:
    """Say of which method and dataset a metric is, its form and round, and what it gained."""
    first, last = metric.errors[0], metric.errors[min(metric.round, len(metric.errors) - 1)]
    form = metric.form.replace("_", "-")
    return (
        f"{' + '.join(metric.row.method)} on {metric.row.dataset}: {form}, round {metric.round}, "
        f"error {first:.3f} to {last:.3f}"
    )

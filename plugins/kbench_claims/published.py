"""Own results beside the figures that papers print, in numbers and as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from kbench.features import (
    Column,
    ReportData,
    Row,
    Table,
    Written,
    columns,
    headings_of,
    signed,
    value_writer,
)
from kbench.records import ACCURACY, Metric, Published


@dataclass(frozen=True)
class Beside:
    """Our mean over `n` splits beside a published figure.

    `z` is the distance in standard errors,
    (ours - paper) / sqrt(sd_ours^2 / n_ours + sd_paper^2 / n_paper) (Welch), where sd is that
    of one run, ddof 1. Where the paper prints none, it is taken to be ours. None where it
    cannot be computed.
    """

    published: Published
    ours: float | None
    standard_error: float | None
    n: int
    z: float | None


def beside_published(
    rows: Sequence[Row], published: Sequence[Published], metric: Metric = ACCURACY
) -> list[Beside]:
    """Compare rows with published figures: one per figure whose cell is planned.

    Figures of metrics that the rows do not have are left out.
    """
    by_labels = {row.labels: row for row in rows}
    known = {name for row in rows for name in row.metrics} | set(columns(metric))
    compared = []
    for figure in published:
        row = by_labels.get((figure.dataset, figure.feature_map, figure.learner))
        if row is None or figure.metric not in known:
            continue
        ours, sd = row.value(figure.metric), row.metrics.get(f"{figure.metric}_sd")
        n = row.n_splits_done
        z = None
        if ours is not None and sd is not None and figure.n_runs:
            theirs = sd if figure.sd is None else figure.sd
            spread = math.sqrt(sd**2 / n + theirs**2 / figure.n_runs)
            z = (ours - figure.value) / spread if spread else None
        error = None if sd is None else sd / math.sqrt(n)
        compared.append(Beside(figure, ours, error, n, z))
    return compared


FAR = 3.0
"""Standard errors from which a published figure is an exception."""


@dataclass(frozen=True)
class Agreement:
    """How own results agree with the published figures of one metric.

    `mean` and `sd` are those of z over the figures, `share` is the share within `FAR`.
    If both sides metric the same, z has mean 0 and deviation of about 1 (somewhat more with
    few runs), and a share of .997 or somewhat less. Methods that share splits have z's that
    depend on each other: a hard split moves all of them.
    """

    metric: str
    compared: list[Beside]
    mean: float
    sd: float
    share: float

    @property
    def exceptions(self) -> list[Beside]:
        """The figures that are further away, the furthest first."""
        far = [each for each in self.compared if abs(each.z or 0.0) >= FAR]
        return sorted(far, key=lambda each: -abs(each.z or 0.0))


def agreements(compared: Sequence[Beside], least: int = 10) -> list[Agreement]:
    """Summarise the z of each metric that has `least` figures with one."""
    by_metric: dict[str, list[Beside]] = {}
    for each in compared:
        if each.z is not None:
            by_metric.setdefault(each.published.metric, []).append(each)
    found = []
    for metric, members in by_metric.items():
        if len(members) >= max(least, 2):
            z = [each.z or 0.0 for each in members]
            share = sum(abs(value) < FAR for value in z) / len(z)
            found.append(Agreement(metric, members, fmean(z), stdev(z), share))
    return found


# -- tables


def published(content: ReportData) -> Table:
    """Return own results beside the figures that papers print, one line for each."""
    four = _written_figures(content.published, content.metric, content.digits)
    made = [
        Column("dataset"),
        Column("feature_map", "feature map"),
        Column("learner"),
        Column("metric", wide=True),
        Column("ours", "", four, True),
        Column("standard_error", "standard error", four, True),
        Column("n", "splits", numeric=True),
        Column("paper", "", four, True),
        Column("z", "", lambda value: signed(value, 1), True),
        Column("source"),
    ]
    compared = [
        {**vars(beside.published), **vars(beside), "paper": beside.published.value}
        for beside in beside_published(content.rows, content.published, content.metric)
    ]
    notes = {(i, "ours"): "no result" for i, row in enumerate(compared) if row["ours"] is None}
    return Table("published", "Beside published figures", made, compared, notes=notes)


def _written_figures(figures: Sequence[Published], metric: Metric, digits: int | None) -> Written:
    """Return the function that writes published figures: of one metric, as a rule."""
    names = {figure.metric for figure in figures}
    return value_writer(Metric(names.pop()) if len(names) == 1 else metric, digits)


def published_grid(content: ReportData) -> Table:
    """Return datasets against methods as the paper has them; its figures are in brackets."""
    compared = beside_published(content.rows, content.published, content.metric)
    sources = list(dict.fromkeys(beside.published.source for beside in compared))
    methods = dict.fromkeys(
        (beside.published.feature_map, beside.published.learner) for beside in compared
    )
    names = headings_of(list(methods))
    written = _written_figures(content.published, content.metric, content.digits)
    made = [
        *([Column("source")] if len(sources) > 1 else []),
        Column("dataset"),
    ]
    for name in names.values():
        made.append(Column(name, "", written, True))
        made.append(Column(f"{name} (published)", "", written, True, data_only=True))
    lines: dict[tuple[str, str], dict[str, object]] = {}
    for beside in compared:
        figure = beside.published
        place, name = (figure.source, figure.dataset), names[figure.feature_map, figure.learner]
        empty = dict.fromkeys(column.name for column in made)
        line = lines.setdefault(place, empty | dict(zip(("source", "dataset"), place, strict=True)))
        line |= {name: beside.ours, f"{name} (published)": figure.value}
    notes = {}
    for i, line in enumerate(lines.values()):
        for name in names.values():
            if (value := line[f"{name} (published)"]) is not None:
                text = written(value)
                notes[i, name] = f"({text})" if line[name] is None else text
    title = "Ours, and in brackets the figures of " + (
        sources[0] if len(sources) == 1 else "papers"
    )
    rows, by = list(lines.values()), "source" if len(sources) > 1 else ""
    return Table("published-grid", title, made, rows, notes=notes, by=by, is_grid=True)

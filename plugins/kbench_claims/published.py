"""Results next to the values that papers report, in numbers and as tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from kbench import features
from kbench.records import ACCURACY, Metric, Published


@dataclass(frozen=True)
class Beside:
    """The mean over `n` splits next to a published value.

    `z` is the distance in standard errors,
    (ours - paper) / sqrt(sd_ours^2 / n_ours + sd_paper^2 / n_paper) (Welch), where sd is that
    of one run, ddof 1. If the paper reports none, it is taken to be ours. None if it cannot be
    computed.
    """

    published: Published
    ours: float | None
    standard_error: float | None
    n: int
    z: float | None

    @property
    def differs(self) -> bool | None:
        """Whether the distance is more than `FAR` standard errors; None if its error is unknown."""
        return None if self.z is None else abs(self.z) > FAR


def beside_published(
    rows: Sequence[features.Row], published: Sequence[Published], metric: Metric = ACCURACY
) -> list[Beside]:
    """Compare rows with published values: one for each value whose cell is planned.

    Values of metrics that the rows do not have are left out.
    """
    by_labels = {row.labels: row for row in rows}
    available = {name for row in rows for name in row.metrics} | set(features.columns(metric))
    compared = []
    for figure in published:
        row = by_labels.get((figure.dataset, figure.feature_map, figure.learner))
        if row is None or figure.metric not in available:
            continue
        ours, sd = row.value(figure.metric), row.metrics.get(f"{figure.metric}_sd")
        n = row.n_splits_done
        z = None
        if ours is not None and sd is not None and figure.n_runs:
            theirs = sd if figure.sd is None else figure.sd
            spread = math.sqrt(sd**2 / n + theirs**2 / figure.n_runs)
            z = (ours - figure.value) / spread if spread else None
        compared.append(Beside(figure, ours, None if sd is None else sd / math.sqrt(n), n, z))
    return compared


FAR = 2.0
"""Standard errors beyond which a result differs from a published value."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of results with the published values of one metric.

    `mean` and `sd` are those of z over the values, `share` is the share within `FAR`. If both sides
    are the same method, z has mean 0, a standard deviation of about 1 (somewhat more with few
    runs), and a share of 0.95 or somewhat less. The z of methods that share splits are dependent: a
    hard split moves all of them.
    """

    metric: str
    compared: list[Beside]
    mean: float
    sd: float
    share: float

    @property
    def exceptions(self) -> list[Beside]:
        """The values that differ, those with the largest |z| first."""
        far = [each for each in self.compared if each.differs]
        return sorted(far, key=lambda each: -abs(each.z or 0.0))


def agreements(compared: Sequence[Beside], least: int = 10) -> list[Agreement]:
    """Summarise the z of each metric that has `least` values with one."""
    by_metric = features.group_values((e.published.metric, e) for e in compared if e.z is not None)
    results = []
    for metric, members in by_metric.items():
        if len(members) >= max(least, 2):
            z = [each.z or 0.0 for each in members]
            share = sum(not each.differs for each in members) / len(z)
            results.append(Agreement(metric, members, fmean(z), stdev(z), share))
    return results


# -- tables


def published_values(content: features.ReportData, only_different: bool = False) -> features.Table:
    """Return results next to the values that papers report, one row for each."""
    four = _written_figures(content.published, content.metric, content.digits)
    made = [
        *features.LABEL_COLUMNS,
        features.Column("metric", wide=True),
        features.Column("paper", "published", four, True),
        features.Column("ours", "result", four, True),
        features.Column("standard_error", "standard error", four, True),
        features.Column("n", "splits", numeric=True),
        features.Column("z", "", lambda value: features.write_signed(value, 1), True),
        features.Column("differs", f"|z| > {FAR:g}"),
        features.Column("source"),
    ]
    compared = [
        vars(each.published) | vars(each) | {"paper": each.published.value, "differs": each.differs}
        for each in beside_published(content.rows, content.published, content.metric)
        if each.differs or not only_different
    ]
    notes = {(i, "ours"): "no result" for i, row in enumerate(compared) if row["ours"] is None}
    marks = {(i, "z"): "worse" for i, row in enumerate(compared) if row["differs"]}
    title = "Results next to published values"
    return features.Table("published", title, made, compared, marks, notes, key="ours")


def _written_figures(
    figures: Sequence[Published], metric: Metric, digits: int | None
) -> features.Written:
    """Return the function that formats published values, usually of one metric."""
    names = {figure.metric for figure in figures}
    return features.value_writer(Metric(names.pop()) if len(names) == 1 else metric, digits)


def published_grid(content: features.ReportData) -> features.Table:
    """Return datasets against methods, with the published values in brackets."""
    compared = beside_published(content.rows, content.published, content.metric)
    sources = list(dict.fromkeys(beside.published.source for beside in compared))
    methods = [(beside.published.feature_map, beside.published.learner) for beside in compared]
    names = features.make_headings(list(dict.fromkeys(methods)))
    written = _written_figures(content.published, content.metric, content.digits)
    made = [*([features.Column("source")] if len(sources) > 1 else []), features.Column("dataset")]
    for name in names.values():
        made.append(features.Column(name, "", written, True))
        made.append(features.Column(f"{name} (published)", "", written, True, data_only=True))
    lines: dict[tuple[str, str], dict[str, object]] = {}
    notes, marks = {}, {}
    for beside in compared:
        figure = beside.published
        place, name = (figure.source, figure.dataset), names[figure.feature_map, figure.learner]
        empty = dict.fromkeys(column.name for column in made)
        line = lines.setdefault(place, empty | dict(zip(("source", "dataset"), place, strict=True)))
        line |= {name: beside.ours, f"{name} (published)": figure.value}
        i, value = list(lines).index(place), written(figure.value)
        notes[i, name] = f"({value})" if beside.ours is None else value
        if beside.differs:
            notes[i, name] += f", z {features.write_signed(beside.z, 1)}"
            marks[i, name] = "worse"
    of = f" of {sources[0]}" if len(sources) == 1 else ""
    title = f"Results, and in brackets the published values{of}, with z if |z| > {FAR:g}"
    rows, by = list(lines.values()), "source" if len(sources) > 1 else ""
    return features.Table("published-grid", title, made, rows, marks, notes, by, is_grid=True)

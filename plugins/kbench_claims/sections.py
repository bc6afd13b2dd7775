"""The sections of a report on variance, searches, warnings, published figures and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kbench.features import (
    ALPHA,
    MAX_LINES,
    Chart,
    Folded,
    Heading,
    Line,
    Looks,
    Note,
    Part,
    ReportData,
    Section,
    Table,
    draw_lines,
    duration,
    name_of,
    shown,
)
from kbench_claims import pictures, tables
from kbench_claims.claims import claims_of
from kbench_claims.published import agreements, beside_published, published

_MAX_FIGURES = 50
"""Published figures that a terminal lists, and pictures of metrics that a page has."""


def sections(data: ReportData) -> list[Section]:
    """Return all sections; one of which nothing can be said has no parts."""
    figures = published(data)
    return [
        _variance(data),
        _optimism(data),
        _seconds(data),
        _warnings(data),
        _published(data, figures),
        _metrics(data),
        _in_terminal(data, figures),
    ]


def _variance(data: ReportData) -> Section:
    sources, splits = tables.components(data), tables.variance(data)
    parts: list[Part] = [" ".join(tables.variance_sentences(data))]
    if sources.rows:
        parts.append(sources)
    if splits.rows:
        text = (
            "The best two methods of each dataset without baselines, and on how many splits their "
            f"difference would be significant (corrected resampled t-test, level {ALPHA}). "
            "Its standard error is sd √(1/n + n_{test}/n_{train}), which has a limit: where the "
            "difference is smaller, no number of splits reaches it."
        )
        parts += [Heading(splits.title), Note(text), splits]
    title = "Where the variance comes from"
    return Section("variance", title, parts, link="Variance", after="pairs")


def _optimism(data: ReportData) -> Section:
    table = tables.optimism(data)
    text = (
        "The best inner score of many candidates is too good. The optimism is what it loses when "
        "the candidate is chosen on the other folds. Means over the datasets that each method "
        "finished."
    )
    parts: list[Part] = []
    if table.rows:
        parts = [" ".join(tables.optimism_sentences(data)), table, Note(text)]
    title = "Optimism of the searches"
    return Section("optimism", title, parts, link="Optimism", after="search")


def _seconds(data: ReportData) -> Section:
    table = tables.seconds(data)
    text = (
        "Seconds of search: the best inner score that a search reaches by then, an average over "
        "random orders of its candidates, a mean over splits and datasets. Inner scores are "
        f"optimistic, and of smaller training parts. The ring is the {data.metric.words} on the "
        "test parts, at the seconds of the whole search and the fit on the slowest dataset. At "
        f"most {MAX_LINES} methods are drawn."
    )
    parts: list[Part] = [*_chart_of_seconds(data, table), Note(text)] if table.rows else []
    return Section("seconds", "Seconds of search", parts, within="times")


def _chart_of_seconds(data: ReportData, table: Table) -> Iterator[Chart]:
    """Draw the best inner score against the seconds of the search."""
    place = {standing.method: standing.place for standing in data.standings}
    spent = sorted(claims_of(data).spent, key=lambda each: place.get(each.method, 0))
    if not place or len({each.metric for each in spent}) != 1:
        return
    metric = spent[0].metric
    looks = Looks(data.rows)
    drawn = [
        Line(
            name_of(each.method),
            each.curve,
            place[each.method],
            None if each.outer is None else (each.total_s, each.outer),
            looks[each.method].colour,
        )
        for each in spent[:MAX_LINES]
    ]
    written = partial(shown, metric.name)
    label, words = "seconds of search on a split", f"inner {metric.words}"
    picture = draw_lines(drawn, label, words, duration, written, metric)
    yield Chart(f"Inner {metric.words} against seconds of search", picture, table)


def _warnings(data: ReportData) -> Section:
    table, said = tables.warned(data), tables.warnings(data)
    return Section("warnings", "Before you quote a method", said, [table], within="doubts")


def _published(data: ReportData, table: Table) -> Section:
    text = (
        "z = (ours − paper) / √(sd_{ours}²/n_{ours} + sd_{paper}²/n_{paper}), with standard "
        "deviations of one run (Welch). If the paper gives none, it is taken to be ours. z is "
        "empty if the paper’s number of runs is not known."
    )
    parts: list[Part] = [Note(text)] if table.rows else []
    found = agreements(beside_published(data.rows, data.published, data.metric))
    for each in found:
        label = "Agreement with published figures"
        parts += [
            " ".join(pictures.sentences(each)),
            Chart(label, pictures.scatter(each)),
            Chart(label, pictures.histogram(each)),
            Note(
                "The dashed line in the first picture is where both are equal; filled points are "
                "further apart than three standard errors. The curve in the second one is the "
                "standard normal distribution. Methods that share splits have dependent z’s."
            ),
        ]
    if table.rows:
        parts.append(Folded("All figures", table) if found else table)
    title, link = "Comparison with published figures", "Published figures"
    return Section("published", title, parts, link=link, after="budgets")


def _metrics(data: ReportData) -> Section:
    found = pictures.learned_metrics(data.rows)
    text = (
        "Metrics that maps have learned from gradients, on the first split of each cell: the "
        "weight of each column in the units of the preprocessed inputs, at most 15 of them, and "
        "the entries of the matrix. The largest entry is 1; blue entries are positive and orange "
        "ones negative. Errors are root mean squared errors of held-out training rows, in units of "
        "the deviation of the targets, before and after learning."
    )
    if len(found) > _MAX_FIGURES:
        text += f" {len(found) - _MAX_FIGURES} more are not shown."
    parts = [
        Chart(pictures.described(each), pictures.draw_metric(each)) for each in found[:_MAX_FIGURES]
    ]
    return Section("metrics", "Learned directions", [Note(text), *parts] if found else [])


def _in_terminal(data: ReportData, table: Table) -> Section:
    """Return ours beside the published figures, a summary of many."""
    parts: list[Part] = []
    if len(table.rows) > _MAX_FIGURES:
        found = agreements(beside_published(data.rows, data.published, data.metric))
        parts += [" ".join(pictures.sentences(each)) for each in found]
        parts.append(
            f"{len(table.rows)} figures; `kbench report SUITE --table published` has all of them"
        )
    elif table.rows:
        of_one = len({row["metric"] for row in table.rows}) == 1
        left_out = ("metric", "source") if of_one else ("source",)
        columns = [column for column in table.columns if column.name not in left_out]
        parts.append(replace(table, columns=columns))
        sources = dict.fromkeys(row["source"] for row in table.rows if row["source"])
        parts += [f"published: {source}" for source in sources]
        parts.append(
            "z = (ours - paper) / sqrt(sd_ours^2 / n_ours + sd_paper^2 / n_paper), sd of one run; "
            "ours for both where the paper gives none"
        )
    title = "ours beside the published figures"
    return Section("published-printed", title, parts, within="terminal")

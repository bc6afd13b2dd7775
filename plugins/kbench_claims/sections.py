"""The sections of a report on variance, searches, warnings, published values and metrics."""

from collections.abc import Iterator, Sequence
from functools import partial

from kbench.features import (
    ALPHA,
    MAX_LINES,
    Chart,
    Folded,
    Heading,
    Line,
    Note,
    Part,
    ReportData,
    Section,
    Styles,
    Table,
    draw_lines,
    duration,
    format_method,
    write_cell,
)
from kbench_claims import pictures, tables
from kbench_claims.claims import get_claims
from kbench_claims.published import FAR, Agreement, agreements, beside_published, published_values

_MAX_LISTED = 50
"""Published values that a terminal lists, and charts of learned metrics that a page has."""


def sections(data: ReportData) -> list[Section]:
    """Return all sections; one with nothing to show has no parts."""
    figures = published_values(data)
    agreed = agreements(beside_published(data.rows, data.published, data.metric))
    return [
        _variance(data),
        _optimism(data),
        _search_time(data),
        _warnings(data),
        _published_section(data, figures, agreed),
        _metrics(data),
        _in_terminal(figures, agreed),
    ]


def _variance(data: ReportData) -> Section:
    sources, splits = tables.components(data), tables.variance(data)
    parts: list[Part] = [" ".join(tables.variance_sentences(data))]
    if sources.rows:
        parts.append(sources)
    if splits.rows:
        note = (
            "The two best methods of each dataset, without baselines, and the number of splits on "
            f"which their difference is significant (corrected resampled t-test, level {ALPHA}). "
            "The standard error sd √(1/n + n_{test}/n_{train}) has a positive limit, so some "
            "differences are too small for any number of splits."
        )
        parts += [Heading(splits.title), Note(note), splits]
    return Section("variance", "Variance components", parts, link="Variance", after="pairs")


def _optimism(data: ReportData) -> Section:
    table = tables.optimism(data)
    note = (
        "The validation score of the best of many candidates is biased upwards. The optimism "
        "is what it loses if the candidate is chosen on the other folds. Values are means over "
        "the datasets that each method finished."
    )
    parts: list[Part] = []
    if table.rows:
        parts = [" ".join(tables.optimism_sentences(data)), table, Note(note)]
    title = "Optimism of the validation scores"
    return Section("optimism", title, parts, link="Optimism", after="search")


def _search_time(data: ReportData) -> Section:
    table = tables.search_time(data)
    note = (
        "Search time: the best validation score that a search reaches within this time, averaged "
        "over random orders of its candidates, splits and datasets. Validation scores are "
        f"optimistic, and come from smaller training sets. The ring marks the {data.metric.words} "
        "on the test sets, at the time of the whole search and the fit on the slowest dataset. "
        f"The chart shows at most {MAX_LINES} methods."
    )
    parts: list[Part] = [*_chart_of_search_time(data, table), Note(note)] if table.rows else []
    return Section("search-time", "Search time", parts, within="times")


def _chart_of_search_time(data: ReportData, table: Table) -> Iterator[Chart]:
    """Draw the best validation score against the time of the search."""
    place = {standing.method: standing.place for standing in data.standings}
    spent = sorted(get_claims(data).spent, key=lambda each: place.get(each.method, 0))
    if not place or len({each.metric for each in spent}) != 1:
        return
    metric, looks = spent[0].metric, Styles(data.rows)
    drawn = [
        Line(
            format_method(each.method),
            each.curve,
            place[each.method],
            None if each.outer is None else (each.total_s, each.outer),
            looks[each.method].colour,
        )
        for each in spent[:MAX_LINES]
    ]
    written = partial(write_cell, metric.name)
    label, words = "search time per split", f"validation {metric.words}"
    picture = draw_lines(drawn, label, words, duration, written, metric)
    yield Chart(f"Validation {metric.words} against search time", picture, table)


def _warnings(data: ReportData) -> Section:
    table, sentences = tables.list_warnings(data), tables.warnings(data)
    return Section("method-warnings", "Warnings by method", sentences, [table], within="warnings")


def _published_section(data: ReportData, table: Table, agreed: Sequence[Agreement]) -> Section:
    note = (
        "z = (result − published) / √(sd_{result}²/n_{result} + sd_{paper}²/n_{paper}), with "
        "standard deviations of one run (Welch). If the paper reports none, that of the result is "
        "used. z is empty if the paper does not report its number of runs, or no result varies."
    )
    parts: list[Part] = [" ".join(pictures.sentences(each)) for each in agreed]
    different = published_values(data, only_different=True)
    if agreed and different.rows:
        parts += [Heading(f"Values with |z| > {FAR:g}"), different]
    parts += [Folded("All published values", table) if agreed else table] if table.rows else []
    parts += [Note(note)] if table.rows else []
    for each in agreed:
        label = "Agreement with published values"
        parts += [
            Chart(label, pictures.scatter(each)),
            Chart(label, pictures.histogram(each)),
            Note(
                "First chart: results against published values; they are equal on the dashed line, "
                f"and filled points have |z| > {FAR:g}. Second chart: the distribution of z, with "
                "the standard normal density. The z of methods that share splits are dependent."
            ),
        ]
    title, link = "Comparison with published values", "Published values"
    return Section("published", title, parts, link=link, after="top")


def _metrics(data: ReportData) -> Section:
    learned = pictures.learned_metrics(data.rows)
    note = (
        "Metrics that maps have learned from gradients, on the first split of each cell: the "
        "weights of at most 15 columns, in the units of the scaled inputs, and the matrix. The "
        "largest entry is 1; blue entries are positive, orange ones negative. Errors are the RMSE "
        "of held-out training rows before and after learning, in units of the standard deviation "
        "of the target."
    )
    if len(learned) > _MAX_LISTED:
        note += f" {len(learned) - _MAX_LISTED} more are not shown."
    parts = [
        Chart(pictures.describe(each), pictures.draw_metric(each)) for each in learned[:_MAX_LISTED]
    ]
    return Section("metrics", "Learned directions", [Note(note), *parts] if learned else [])


def _in_terminal(table: Table, agreed: Sequence[Agreement]) -> Section:
    """Return results next to the published values; of many, a summary and those that differ."""
    parts: list[Part] = []
    if len(table.rows) > _MAX_LISTED:
        parts += [" ".join(pictures.sentences(each)) for each in agreed]
        parts.append(
            f"{len(table.rows)} values: `kbench report SUITE --table published` prints all of them"
        )
    elif table.rows:
        parts += [
            table,
            "z = (result - published) / sqrt(sd_result^2 / n_result + sd_paper^2 / n_paper), with "
            "standard deviations of one run; that of the result for both if the paper reports none",
        ]
    return Section("published-printed", "published values", parts, within="terminal")

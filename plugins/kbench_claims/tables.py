"""Sentences and tables of variance, searches and warnings."""

import math
from collections import Counter
from collections.abc import Iterable
from functools import partial

from kbench.features import (
    LABEL_COLUMNS,
    LABELS,
    Column,
    Method,
    Metric,
    ReportData,
    Table,
    Written,
    duration,
    format_method,
    join,
    name_some,
    share,
    write_cell,
    write_signed,
)
from kbench.messages import plural
from kbench_claims.claims import NOT_REACHED, Warned, get_claims

SOURCES = {
    "datasets": "datasets",
    "interaction": "interaction of method and dataset",
    "splits": "splits of a dataset",
    "residual": "method on a split",
    "seeds": "seed of the map",
}
"""Sources of variance, and their labels."""

# -- variance


def variance_sentences(content: ReportData) -> list[str]:
    """Return sentences on the sources of variance, and on what more splits would show."""
    claims, metric = get_claims(content), content.metric
    if (parts := claims.components) is None:
        return [_no_components(content)]
    each = [f"{SOURCES[name]} ({share(value)})" for name, value in parts.shares().items()]
    scope = "of a score on one split" if parts.datasets is not None else "between splits"
    sentences = [f"Sources of the variance {scope}: {join(each)}."]
    if parts.datasets is None:
        sentences.append("One dataset does not show the variance between datasets.")
    if parts.seeds is None:
        sentences.append(
            "With one seed of the map per split, its variance is part of the method on a split."
        )
    else:
        sentences.append(
            "The shares are for one seed of the map; the scores are means over "
            f"{claims.n_map_seeds} seeds on each split."
        )
    sentences += _power_sentences(content, metric)
    if tested := [contest for contest in claims.contests if contest.n_splits > 1]:
        met = sum(contest.is_shown for contest in tested)
        more = [each.needed for each in tested if each.needed is not None and not each.is_shown]
        at_most = f" (at most {max(more):,})" if more else ""
        never = sum(each.reason == NOT_REACHED for each in tested)
        sentences.append(
            f"The best and the second-best method differ significantly on {met} of "
            f"{plural(len(tested), 'dataset')}. More splits would show the difference on "
            f"{len(more)} further ones{at_most}; on {never} it is {NOT_REACHED}."
        )
    return sentences


def _no_components(content: ReportData) -> str:
    scores = content.scores
    if not scores.has_one_unit:
        return "Datasets have different units, so variances cannot be compared."
    if len(scores.methods) < 2:
        return "One method does not show the sources of the variance."
    if not scores.datasets:
        return "No dataset was finished by all methods, so variances cannot be compared."
    return "All methods share at most one split of a dataset, so no variance can be estimated."


def _power_sentences(content: ReportData, metric: Metric) -> list[str]:
    """Return sentences on the splits on which the two best mean ranks would differ."""
    if len(content.standings) < 2:
        return []
    first, second = (standing.method for standing in content.standings[:2])
    rows = {row.labels: row for row in content.rows}
    compared = [
        get_claims(content).contest(rows[dataset, *first], rows[dataset, *second])
        for dataset in content.scores.datasets
    ]
    names = f"{format_method(first)} and {format_method(second)}"
    sentences = []
    more = [each for each in compared if each.needed is not None and not each.is_shown]
    written = partial(write_cell, metric.name)
    for each in sorted(more, key=lambda each: each.needed or 0)[:1]:
        sentences.append(
            f"On {each.dataset}, the difference of {written(abs(each.difference))} between {names} "
            f"needs {each.needed:,} splits to be significant."
        )
    if never := [each.dataset for each in compared if each.reason == NOT_REACHED]:
        sentences.append(f"On {name_some(never)}, the difference between {names} is {NOT_REACHED}.")
    return sentences


def variance(content: ReportData) -> Table:
    """Return the two best methods of each dataset, and the splits that their difference needs."""
    written = partial(write_signed, written=partial(write_cell, content.metric.name))
    made = [
        Column("dataset"),
        Column("first"),
        Column("second"),
        Column("difference", "", written, True),
        Column("sd", "sd on one split", partial(write_cell, content.metric.name), True),
        Column("n_splits", "splits", numeric=True),
        Column("needed", "splits needed", lambda n: f"{n:,}", True),
        Column("reason", "note"),
    ]
    rows, marks = [], {}
    for i, contest in enumerate(get_claims(content).contests):
        names = {"first": format_method(contest.first), "second": format_method(contest.second)}
        rows.append(vars(contest) | names | {"sd": None if math.isnan(contest.sd) else contest.sd})
        if contest.is_shown:
            marks[i, "needed"] = "best"
    return Table("variance", "Splits that a significant difference needs", made, rows, marks)


def components(content: ReportData) -> Table:
    """Return the sources of variance: standard deviations and shares."""
    made = [
        Column("source"),
        Column("variance", "", lambda value: f"{value:.3g}", True, wide=True),
        Column("sd", "standard deviation", partial(write_cell, content.metric.name), True),
        Column("share", "share of variance", share, True),
    ]
    if (parts := get_claims(content).components) is None:
        return Table("variance-components", "Variance components", made, [])
    shares = parts.shares()
    rows: list[dict[str, object]] = [
        {"source": SOURCES[name], "variance": value, "sd": _root(value), "share": shares[name]}
        for name in shares
        if (value := getattr(parts, name)) is not None
    ]
    order = {standing.method: standing.place for standing in content.standings}
    methods = content.scores.methods
    of_seeds = zip(methods, parts.seeds_by_method, strict=False)
    for each, template in (
        (zip(methods, parts.by_method, strict=False), "{} on a split"),
        # a map without a seed has none
        ((item for item in of_seeds if item[1]), f"{SOURCES['seeds']} of {{}}"),
    ):
        for method, value in sorted(each, key=lambda item: order.get(item[0], 0)):
            source = template.format(format_method(method))
            rows.append({"source": source, "variance": value, "sd": _root(value), "share": None})
    return Table("variance-components", "Variance components", made, rows)


def _root(variance: float) -> float:
    return math.sqrt(max(variance, 0.0))


# -- searches


def optimism_sentences(content: ReportData) -> list[str]:
    """Return a sentence on the searches that are probably overfitted."""
    if not (choices := get_claims(content).choices):
        return []
    overfitted = [format_method(choice.method) for choice in choices if choice.is_overfitted]
    if not overfitted:
        return [
            "On average, every search improved its validation score by more than the optimism of "
            "that score."
        ]
    return [
        f"Probably overfitted: the search of {name_some(overfitted)}, whose gain in the validation "
        "score is at most the optimism of that score."
    ]


def _common_metric(names: Iterable[str]) -> tuple[str, Written]:
    """Return the name of the metric of all searches, empty if they differ, and its writer."""
    every = set(names)
    name = every.pop() if len(every) == 1 else ""
    return name, partial(write_cell, name)


def optimism(content: ReportData) -> Table:
    """Return what searches found on the inner folds, and how much too good it is."""
    choices = get_claims(content).choices
    name, written = _common_metric(choice.metric.name for choice in choices)
    made = [
        *LABEL_COLUMNS[1:],
        Column("metric", wide=bool(name)),
        Column("n_datasets", "datasets", numeric=True),
        Column("inner", f"validation {name or 'score'}", written, True),
        Column("optimism", "", partial(write_signed, written=written), True),
        Column("gain", "gain over the default", partial(write_signed, written=written), True),
        Column("verdict"),
    ]
    place = {method: i for i, method in enumerate(content.methods)}
    rows = [
        dict(zip(LABELS[1:], choice.method, strict=True))
        | vars(choice)
        | {"metric": choice.metric.name, "gain": choice.gain}
        | {"verdict": "probably overfitted" if choice.is_overfitted else ""}
        for choice in sorted(choices, key=lambda choice: place[choice.method])
    ]
    return Table("optimism", "Optimism of the validation scores", made, rows)


def search_time(content: ReportData) -> Table:
    """Return validation scores against the time of the search, and the final test score."""
    spent = get_claims(content).spent
    name, written = _common_metric(each.metric.name for each in spent)
    made = [
        Column("place", "rank", numeric=True),
        *LABEL_COLUMNS[1:],
        Column("metric", wide=bool(name)),
        Column("seconds", "search time", duration, True),
        Column("inner", f"validation {name or 'score'}", written, True),
        Column("total_s", "search and fit", duration, True),
        Column("outer", f"test {name or 'score'}", written, True),
    ]
    place = {standing.method: standing.place for standing in content.standings}
    rows: list[dict[str, object]] = []
    for each in sorted(spent, key=lambda each: place.get(each.method, 0)):
        method: dict[str, object] = dict(zip(LABELS[1:], each.method, strict=True))
        method |= {"place": place.get(each.method), "metric": each.metric.name}
        for at, value in each.curve:
            total_s, outer = (each.total_s, each.outer) if at == each.curve[-1][0] else (None, None)
            ends = {"total_s": total_s, "outer": outer}
            rows.append(method | {"seconds": at, "inner": value} | ends)
    return Table("search-time", "Validation scores by search time", made, rows, by="place")


# -- warnings

_KINDS = {
    "baseline": "worse than",
    "identity": "worse than",
    "kernel": "slower than, and no better than,",
    "boundary": "best at the boundary of its grid",
    "converged": "a fit did not converge",
    "loaded": "the machine was loaded",
}
"""Kinds of warnings that have a sentence, the most important first."""


def warnings(content: ReportData) -> list[str]:
    """Return the warnings as sentences, one for each kind."""
    counts: dict[tuple[str, Method | None], Counter[Method]] = {}
    for each in get_claims(content).list_warnings:
        counts.setdefault((each.kind, each.other), Counter())[each.method] += 1
    sentences = []
    for kind, words in _KINDS.items():
        for other, by_method in ((other, n) for (of, other), n in counts.items() if of == kind):
            beside = f" {format_method(other)}" if other else ""
            named = [f"{format_method(method)} ({n})" for method, n in by_method.most_common()]
            about = f"{words[:1].upper()}{words[1:]}{beside} (number of datasets)"
            sentences.append(f"{about}: {name_some(named)}.")
    contests = get_claims(content).contests
    if few := [each.dataset for each in contests if each.n_splits > 1 and not each.is_shown]:
        sentences.append(
            "The best and the second-best method do not differ significantly on "
            f"{plural(len(few), 'dataset')}: {name_some(few)}."
        )
    if one := [each.dataset for each in contests if each.n_splits < 2]:
        sentences.append(f"No test, because methods share one split only: {name_some(one)}.")
    sizes = {
        row.dataset: round(row.metrics["n_test"])
        for row in content.rows
        if "coverage_error_90" in row.metrics and row.metrics.get("n_test", 0) >= 1
    }
    if sizes:
        smallest = sorted(sizes, key=sizes.__getitem__)[:5]
        errors = [f"{coverage_by_chance(sizes[name]):.3f} on {name}" for name in smallest]
        more = f", and less on {len(sizes) - 5} larger datasets" if len(sizes) > 5 else ""
        sentences.append(
            "By chance alone, a perfect model has this mean coverage_error_90 on the test rows of "
            f"one split: {name_some(errors)}{more}."
        )
    return sentences


def coverage_by_chance(n_rows: int, level: float = 0.9) -> float:
    """Return the mean coverage error of exact intervals on some test rows.

    The number of covered rows is binomial; its mean absolute deviation is de Moivre's.

    >>> [round(coverage_by_chance(n), 3) for n in (15, 50, 100, 1000)]
    [0.064, 0.033, 0.024, 0.008]
    """
    from scipy.stats import binom

    k = math.floor(n_rows * level) + 1
    return float(2 * k * (1 - level) * binom.pmf(k, n_rows, level) / n_rows)


def list_warnings(content: ReportData) -> Table:
    """Return the warnings cell by cell."""
    made = [*LABEL_COLUMNS, Column("kind", wide=True), Column("warning")]
    rows = [
        dict(zip(LABELS, (each.dataset, *each.method), strict=True))
        | {"kind": each.kind, "warning": _format_warning(each)}
        for each in get_claims(content).list_warnings
    ]
    return Table("warnings", "Warnings, cell by cell", made, rows)


def _format_warning(each: Warned) -> str:
    words = f"{_KINDS.get(each.kind, '')} {format_method(each.other) if each.other else ''}".strip()
    return ": ".join(filter(None, (words, each.detail)))

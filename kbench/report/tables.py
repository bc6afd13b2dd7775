"""All tables of a report, before they are written in a form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kbench.errors import FeatureError, SuiteError
from kbench.messages import did_you_mean
from kbench.records import Measure
from kbench.registry.features import working
from kbench.registry.verbs import Verbs
from kbench.report import imported, leaderboard
from kbench.report.axes import duration, duration_unit, number
from kbench.report.certainty import STANDING_COLUMNS, of_standings
from kbench.report.content import ReportData, name_of
from kbench.report.sections import sections_of
from kbench.report.text import Column, Place, Table, decimals, p_value, shown, signed
from kbench.results.budgets import Budget
from kbench.results.focus import against
from kbench.results.imported import beside_own
from kbench.results.rows import COLUMNS, LABELS, PLAIN, TIMES, Method, Row, columns, task_of
from kbench.results.stats import ranks as rank_within

_LABELS = (
    Column("dataset"),
    Column("feature_map", "feature map"),
    Column("learner"),
)


def _values(measure: Measure, digits: int | None = None) -> Callable[[Any], str]:
    """Return the function that writes values of a measure, by its size or with some decimals."""
    return partial(shown, measure.name) if digits is None else partial(decimals, digits=digits)


def _differences(measure: Measure, digits: int | None = None) -> Callable[[Any], str]:
    """Return the function that writes differences of a measure."""
    return partial(signed, written=_values(measure, digits))


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def cells(rows: Sequence[Row], measure: Measure) -> Table:
    """Return every cell with the columns of results; the best of each dataset is marked."""
    task = task_of(rows)
    plain = PLAIN[task]
    narrow = {*LABELS, measure.name, *TIMES} | ({plain.name} if plain.in_units else set())
    spreads = {measure.name: measure.sd, plain.name: plain.sd}
    default = (
        [measure.of_default] if any(measure.of_default in row.measures for row in rows) else []
    )
    made = [
        Column(
            name,
            written=partial(shown, name),
            numeric=name not in (*COLUMNS[:4], "family"),
            sd=spreads.get(name, ""),
            wide=name not in narrow,
        )
        for name in (*columns(measure, task), "family", *default)
    ]
    best: dict[str, float] = {}
    written = _values(measure)
    for row in rows:
        if row.is_complete and row.value(measure.name) is not None:
            gain = measure.gain(row.value(measure.name))
            best[row.dataset] = max(best.get(row.dataset, gain), gain)
    marks, notes = {}, {}
    for i, row in enumerate(rows):
        place, value = (i, measure.name), row.value(measure.name)
        if value is None:
            notes[place] = _why_not(row, measure)
        elif not row.is_complete:
            notes[place] = _few_splits(row)
        elif written(value) == written(measure.gain(best[row.dataset])):
            marks[place] = "best"
    lines = [{column.name: row.value(column.name) for column in made} for row in rows]
    return Table("cells", "All cells", made, lines, marks, notes, by="dataset")


def _why_not(row: Row, measure: Measure) -> str:
    return row.status if row.status != "ok" else lacking(measure)


def lacking(measure: Measure) -> str:
    """Say why a method that finished does not have a measure.

    >>> lacking(Measure("nlpd", "lower", needs="distribution")), lacking(Measure("my_loss"))
    ('no predictive distribution', 'no my_loss')
    """
    what = {"distribution": "predictive distribution", "probabilities": "probabilities"}
    return f"no {what.get(measure.needs, measure.name)}"


def _few_splits(row: Row) -> str:
    return f"{row.n_splits_done} of {row.n_splits} splits"


def main(content: ReportData) -> Table:
    """Return datasets against methods: mean and standard deviation of the measure."""
    return _against_methods("main", content, content.measure)


def plain(content: ReportData) -> Table:
    """Return the plain measure of the task in the same form, beside another that is compared."""
    measure = content.plain
    if measure is None:
        return Table("plain", "The plain measure of the task", [Column("dataset")], [])
    return _against_methods("plain", content, measure)


def _against_methods(table: str, content: ReportData, measure: Measure) -> Table:
    """Return datasets against methods by a measure; marks are those of the compared one."""
    compared, written = measure == content.measure, _values(measure, content.digits)
    names = headings_of(content.methods)
    made = [Column("dataset")]
    for name in names.values():
        made.append(Column(name, "", written, True, sd=f"{name} (sd)"))
        made.append(Column(f"{name} (sd)", "", written, True))
    rows, marks, notes = [], {}, {}
    for i, (dataset, entries) in enumerate(content.table()):
        values: dict[str, Any] = {"dataset": dataset}
        for method, entry in zip(content.methods, entries, strict=True):
            name, row = names[method], entry.row
            values[name] = row.value(measure.name) if row else None
            values[f"{name} (sd)"] = row.value(measure.sd) if row else None
            if entry.mark and compared:
                marks[i, name] = entry.mark
            if row is None:
                notes[i, name] = "not planned"
            elif row.value(measure.name) is None:
                notes[i, name] = _why_not(row, measure)
            elif row.n_splits_done < row.n_splits:
                notes[i, name] = _few_splits(row)
            elif row.converged is False:
                notes[i, name] = "not converged"
        rows.append(values)
    title = f"{measure.words} of each method on each dataset"
    if measure.in_units:
        title += ", in the units of its target"
    return Table(table, title, made, rows, marks, notes)


def headings_of(methods: Sequence[Method]) -> dict[Method, str]:
    """Return the heading of each method's column; equal names are numbered."""
    headings: dict[Method, str] = {}
    for method in methods:
        name = name_of(method)
        taken = {*headings.values(), *(f"{heading} (sd)" for heading in headings.values())}
        tries = (name if i == 1 else f"{name} [{i}]" for i in itertools.count(1))
        headings[method] = next(heading for heading in tries if heading not in taken)
    return headings


def methods(content: ReportData) -> Table:
    """Return the methods in the order of their mean ranks."""
    measure, counted = content.measure, len(content.scores.groups)
    written = _values(measure, content.digits)
    made = [
        Column("place", "no.", numeric=True),
        *_LABELS[1:],
        Column("rank", "mean rank", _two_digits, True),
        Column("mean", f"mean {measure.words}", written, True),
        Column("low", "95 % from", written, True),
        Column("high", "to", written, True),
        Column("wins", "first or tied", lambda value: f"{value} of {counted}", True),
        *STANDING_COLUMNS,
        Column("fit_time_s", "fit time", duration, True, unit=duration_unit),
        Column("predict_row_s", "to predict a row", duration, True, unit=duration_unit),
        Column("n_components", "components", number, True, wide=True),
    ]
    rows: list[dict[str, Any]] = []
    notes = {}
    for i, (standing, more) in enumerate(
        zip(content.standings, of_standings(content), strict=True)
    ):
        values = {name: _known(value) for name, value in vars(standing).items()}
        rows.append(values | dict(zip(LABELS[1:], standing.method, strict=True)) | more)
        if more["dominated_by"]:
            notes[i, "front"] = f"by {more['dominated_by']}"
    best: dict[str, float] = {}
    if rows:
        gains = [measure.gain(round(row["mean"], 12)) for row in rows]
        # the fastest method is often trivial, so that times have no mark
        best = {"rank": min(row["rank"] for row in rows), "mean": measure.gain(max(gains))}
    marks = {
        (i, name): "best"
        for i, row in enumerate(rows)
        for name, value in best.items()
        if row[name] is not None and round(row[name], 12) == round(value, 12)
    }
    return Table("methods", "Methods over all datasets", made, rows, marks, notes)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def focus(content: ReportData) -> Table:
    """Return the methods in focus beside each other method, with tests over datasets."""
    written = _differences(content.measure, content.digits)
    made = [
        Column("method"),
        Column("against"),
        Column("datasets", numeric=True),
        *(Column(name, "", numeric=True) for name in ("won", "tied", "lost", "untested")),
        Column("difference", "", written, True),
        Column("p_holm", "p (Holm)", p_value, True),
        Column("verdict", "over the datasets"),
    ]
    rows: list[dict[str, Any]] = []
    for method in content.focus:
        for each in against(content.rows, method, content.measure):
            names = {"method": name_of(method), "against": name_of(each.other)}
            more = {"datasets": each.n_datasets, "difference": _known(each.difference)}
            rows.append(vars(each) | names | more | {"p_holm": each.p})
    return Table("focus", "Methods in focus beside the others", made, rows, by="method")


def ranks(content: ReportData) -> Table:
    """Return the rank of each method on each group of datasets that counts."""
    ranked = rank_within(content.scores.gains) if content.standings else np.empty((0, 0))
    place = {method: i for i, method in enumerate(content.scores.methods)}
    names = headings_of([standing.method for standing in content.standings])
    made = [
        Column("dataset", "dataset or group"),
        *(Column(name, "", lambda value: f"{value:g}", True) for name in names.values()),
    ]
    rows: list[dict[str, Any]] = []
    marks: dict[Place, str] = {}
    for i, group in enumerate(content.scores.groups if names else ()):
        values = {name: float(ranked[i, place[method]]) for method, name in names.items()}
        rows.append({"dataset": group} | values)
        marks |= {(i, name): "best" for name, rank in values.items() if rank == ranked[i].min()}
    return Table("ranks", "Rank of each method on each dataset", made, rows, marks)


def pairs(content: ReportData) -> Table:
    """Return the methods two by two, with tests over datasets."""
    written = _differences(content.measure, content.digits)
    made = [
        Column("first"),
        Column("second"),
        Column("difference", "", written, True),
        Column("low", "95 % from", written, True),
        Column("high", "to", written, True),
        Column("median", "", written, True, wide=True),
        Column("median_low", "95 % from", written, True, wide=True),
        Column("median_high", "to", written, True, wide=True),
        *(Column(name, "", numeric=True) for name in ("won", "tied", "lost")),
        Column("p", "p", p_value, True),
        Column("p_holm", "p (Holm)", p_value, True),
        *(Column(name, "", _two_digits, True) for name in ("better", "same", "worse")),
    ]
    rows, marks = [], {}
    for i, pair in enumerate(content.pairs() if content.standings else ()):
        names = {"first": name_of(pair.first), "second": name_of(pair.second)}
        counts = {"won": pair.wins, "tied": pair.ties, "lost": pair.losses}
        pair_values = {name: _known(value) for name, value in vars(pair).items()}
        rows.append(pair_values | names | counts | {"p_holm": pair.adjusted} | vars(pair.posterior))
        if pair.adjusted <= content.alpha:
            marks[i, "p_holm"] = "best"
    return Table("pairs", "Methods two by two over datasets", made, rows, marks)


def failures(content: ReportData) -> Table:
    """Return the cells that failed, and why."""
    made = [
        *_LABELS,
        Column("status"),
        Column("n_splits_done", "splits done", numeric=True),
        Column("n_splits", "of", numeric=True),
        Column("why"),
        Column("error", "all of it", wide=True),
    ]
    rows = []
    for row in content.failures():
        lines = [line for line in row.error.strip().splitlines() if line.strip()]
        values = {column.name: row.value(column.name) for column in made}
        rows.append(values | {"why": lines[-1].strip() if lines else "", "error": row.error})
    return Table("failures", "Failed cells", made, rows)


def skipped(content: ReportData) -> Table:
    """Return the cells that were not measured, and why."""
    made = [*_LABELS, Column("status"), Column("why")]
    rows = [
        {column.name: row.value(column.name) for column in made} | {"why": _why(row)}
        for row in content.skipped()
    ]
    return Table("skipped", "Skipped cells", made, rows)


def _why(row: Row) -> str:
    return row.error or "the run ended before"


def unavailable(content: ReportData) -> Table:
    """Return the datasets without data, and why."""
    made = [Column("dataset"), Column("cells", numeric=True), Column("why")]
    rows = [
        {"dataset": name, "cells": count, "why": why}
        for name, (count, why) in content.unavailable().items()
    ]
    return Table("unavailable", "Unavailable data", made, rows)


def doubts(content: ReportData) -> Table:
    """Return the reasons why numbers are less certain: one line per cell and reason."""
    reasons: list[tuple[Row, str]] = [(row, _few_splits(row)) for row in content.partial()]
    reasons += [(row, "a fit did not converge") for row in content.not_converged()]
    for row in content.rows:
        if row.at_edge:
            reasons.append((row, f"chosen at the edge of its grid: {row.at_edge}"))
        if row.notes:
            reasons.append((row, row.notes))
        if row.contention:
            reasons.append((row, f"the machine was busy: {row.contention}"))
    rows = [dict(zip((*LABELS, "why"), (*row.labels, why), strict=True)) for row, why in reasons]
    return Table("doubts", "What makes numbers less certain", [*_LABELS, Column("why")], rows)


def sizes(content: ReportData) -> Table:
    """Return fit times by the number of training rows, and the growth fitted to them."""
    made = [
        Column("place", "no.", numeric=True),
        *_LABELS[1:],
        Column("exponent", "time grows as n to the", _two_digits, True),
        Column("r2", "R²", _two_digits, True),
        Column("datasets", "", numeric=True),
        *(Column(f"n={n}", f"n = {number(n)}", duration, True) for n in content.sizes()),
    ]
    rows = []
    for growth in content.growth():
        values: dict[str, Any] = dict.fromkeys(column.name for column in made)
        values |= vars(growth) | dict(zip(LABELS[1:], growth.method, strict=True))
        values["datasets"] = growth.n_datasets
        rows.append(values | {f"n={n:.0f}": seconds for n, seconds in growth.points})
    return Table("sizes", "Fit time by number of training rows", made, rows)


def search(content: ReportData) -> Table:
    """Return what the searches saw: their measure by the values of each parameter."""
    rows = content.searched()
    names = {row["measure"] for row in rows}
    name = names.pop() if len(names) == 1 else ""
    four = partial(shown, name)
    made = [
        *_LABELS,
        Column("parameter"),
        Column("measure", wide=bool(name)),
        Column("value", "", number, True),
        Column("mean", f"inner {name or 'mean'}", four, True),
        Column("standard_error", "standard error", four, True),
        Column("n", "inner folds", numeric=True),
        Column("at_edge", "best at an edge"),
    ]
    title = "Mean over the inner folds by searched parameter"
    return Table("search", title, made, rows, by="dataset")


def budgets(content: ReportData) -> Table:
    """Return the budget of each method: candidates, CPU time, and what the search gained."""
    found, measure = content.budgets(), content.measure
    written = _values(measure)
    made = [
        Column("family", "", lambda family: family or "its own"),
        *_LABELS[1:],
        Column("least", "candidates from", number, True),
        Column("most", "to", number, True),
        Column("search_time_cpu_s", "CPU time of a search", duration, True, unit=duration_unit),
        Column("searched", "", _without_sides),
        Column("at_edge", "best at an edge", lambda share: f"{share * 100:.0f} %", True),
    ]
    if any(budget.default is not None for budget in found):
        made += [
            Column("default", f"default {measure.words}", written, True),
            Column("tuned", "tuned", written, True),
            Column("difference", "", _differences(measure), True),
        ]
    rows = [
        dict(zip(LABELS[1:], budget.method, strict=True))
        | {name: getattr(budget, name) for name in ("family", "least", "most", "at_edge")}
        | {"search_time_cpu_s": budget.search_s, "searched": ", ".join(budget.parameters)}
        | {"default": budget.default, "tuned": budget.tuned, "difference": _difference(budget)}
        for budget in found
    ]
    return Table("budgets", "Budgets of the methods", made, rows)


def _without_sides(names: str) -> str:
    """Write searched parameters for people.

    >>> _without_sides("feature_map.bandwidth_factor, learner.kernel.degree, preprocess")
    'bandwidth_factor, kernel.degree, preprocess'
    """
    sides = ("feature_map.", "learner.")
    plain = names.split(", ")
    for side in sides:
        plain = [name.removeprefix(side) for name in plain]
    return ", ".join(dict.fromkeys(plain))


def _difference(budget: Budget) -> float | None:
    if budget.default is None or budget.tuned is None:
        return None
    return budget.tuned - budget.default


TABLES: Mapping[str, tuple[str, Callable[[ReportData], Table]]] = {
    "leaderboard": (
        "one row per method: place, mean, wins, times, size, budget",
        lambda content: leaderboard.table(
            content.leaderboard, digits=content.digits, focus=content.focus
        ),
    ),
    "main": ("datasets against methods, the best in bold", main),
    "plain": ("datasets against methods by accuracy or rmse, if neither is compared", plain),
    "focus": ("the methods in focus beside each other one: wins, ties, losses, tests", focus),
    "methods": ("mean ranks, means, times of each method", methods),
    "ranks": ("rank of each method on each dataset", ranks),
    "pairs": ("methods two by two: differences and tests", pairs),
    "others": (
        "rows that others computed, beside ours",
        lambda content: imported.table(
            beside_own(content.rows, content.others, content.measure), content.measure
        ),
    ),
    "sizes": ("fit time by number of training rows", sizes),
    "search": ("what searches saw: their measure by the values of each parameter", search),
    "budgets": ("candidates and search times of each method, default and tuned", budgets),
    "failures": ("cells that failed, and why", failures),
    "skipped": ("cells that were not measured, and why", skipped),
    "unavailable": ("unavailable datasets, and why", unavailable),
    "doubts": ("what makes numbers less certain, cell by cell", doubts),
    "cells": (
        "every cell with its columns",
        lambda content: cells(content.rows, content.measure),
    ),
}
"""Tables of the core by name: a description, and the function that makes it."""

GRIDS = ("main", "plain", "ranks")
"""Those of datasets against methods, which can be turned."""


def table_names() -> dict[str, str]:
    """Return the names of all tables, each with a line of help; no feature is imported."""
    found = [(name, text) for name, (text, _) in TABLES.items()]
    for feature in working():
        for name, table in feature.metadata.tables.items():
            names = [each for each, _ in found]
            if name not in names:
                place = names.index(table.after) + 1 if table.after in names else len(found)
                found.insert(place, (name, table.help))
    return dict(found)


def check_table(name: str) -> None:
    """Refuse a name that no table has.

    SuiteError is raised where there is none of that name.
    """
    names = table_names()
    if name not in names:
        raise SuiteError(f"no table is called {name!r}{did_you_mean(name, names)}")


def table_named(name: str, content: ReportData) -> Table:
    """Return a table of the core, or of a feature; no other feature is asked.

    Raises
    ------
    SuiteError
        There is no such table.
    FeatureError
        The feature that has it fails.
    """
    if name in TABLES:
        return TABLES[name][1](content)
    check_table(name)
    owner = next(each for each in working() if name in each.metadata.tables)
    problems = [f"the feature {owner.name!r} did not make it"]
    verbs = Verbs(lambda text: problems.insert(0, text), [owner])
    found = next((each for each in _of_features(content, verbs) if each.name == name), None)
    if found is None:
        raise FeatureError(f"there is no table {name!r}: {problems[0]}")
    return found


def tables_of(content: ReportData, verbs: Verbs | None = None) -> dict[str, Table]:
    """Return all tables by name; a feature that fails is left out, and `verbs` says so."""
    made = {each.name: each for each in _of_features(content, verbs or Verbs())}
    made |= {name: make(content) for name, (_, make) in TABLES.items()}
    return {name: made[name] for name in table_names() if name in made}


def _of_features(content: ReportData, verbs: Verbs) -> Iterator[Table]:
    for feature, section in sections_of(content, verbs):
        for table in section.every_table():
            if table.name in feature.metadata.tables:
                yield table

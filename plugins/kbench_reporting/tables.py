"""The tables of a report, before they are written in a form."""

from __future__ import annotations

from functools import partial

import numpy as np

from kbench.features import (
    LABELS,
    Budget,
    Column,
    Place,
    ReportData,
    Row,
    Table,
    Written,
    against,
    beside_own,
    best_marks,
    cells_table,
    duration,
    duration_unit,
    few_splits,
    headings_of,
    leaderboard_table,
    name_of,
    number,
    others_table,
    p_value,
    shown,
    signed,
    value_writer,
    why_not,
)
from kbench.features import ranks as rank_within
from kbench.records import Measure
from kbench_reporting.sentences import STANDING_COLUMNS, of_standings

_LABELS = (
    Column("dataset"),
    Column("feature_map", "feature map"),
    Column("learner"),
)


def _differences(measure: Measure, digits: int | None = None) -> Written:
    """Return the function that writes differences of a measure."""
    return partial(signed, written=value_writer(measure, digits))


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


def main(content: ReportData) -> Table:
    """Return datasets against methods: mean and standard deviation of the measure."""
    return _against_methods("main", content, content.measure)


def plain(content: ReportData) -> Table:
    """Return the plain measure of the task in the same form, beside another that is compared."""
    measure = content.plain
    if measure is None:
        return Table(
            "plain", "The plain measure of the task", [Column("dataset")], [], is_grid=True
        )
    return _against_methods("plain", content, measure)


def _against_methods(table: str, content: ReportData, measure: Measure) -> Table:
    """Return datasets against methods by a measure; marks are those of the compared one."""
    compared, written = measure == content.measure, value_writer(measure, content.digits)
    names = headings_of(content.methods)
    made = [Column("dataset")]
    for name in names.values():
        made.append(Column(name, "", written, True, sd=f"{name} (sd)"))
        made.append(Column(f"{name} (sd)", "", written, True))
    rows, marks, notes = [], {}, {}
    for i, (dataset, entries) in enumerate(content.table()):
        values: dict[str, object] = {"dataset": dataset}
        for method, entry in zip(content.methods, entries, strict=True):
            name, row = names[method], entry.row
            values[name] = row.value(measure.name) if row else None
            values[f"{name} (sd)"] = row.value(measure.sd) if row else None
            if entry.mark and compared:
                marks[i, name] = entry.mark
            if row is None:
                notes[i, name] = "not planned"
            elif row.value(measure.name) is None:
                notes[i, name] = why_not(row, measure)
            elif row.n_splits_done < row.n_splits:
                notes[i, name] = few_splits(row)
            elif row.converged is False:
                notes[i, name] = "not converged"
        rows.append(values)
    title = f"{measure.words} of each method on each dataset"
    if measure.in_units:
        title += ", in the units of its target"
    return Table(table, title, made, rows, marks, notes, is_grid=True)


def methods(content: ReportData) -> Table:
    """Return the methods in the order of their mean ranks."""
    measure, counted = content.measure, len(content.scores.groups)
    written = value_writer(measure, content.digits)
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
    rows: list[dict[str, object]] = []
    notes = {}
    for i, (standing, more) in enumerate(
        zip(content.standings, of_standings(content), strict=True)
    ):
        values = {name: _known(value) for name, value in vars(standing).items()}
        rows.append(values | dict(zip(LABELS[1:], standing.method, strict=True)) | more)
        if more["dominated_by"]:
            notes[i, "front"] = f"by {more['dominated_by']}"
    # the fastest method is often trivial, so that times have no mark
    marks = best_marks(rows, measure)
    return Table("methods", "Methods over all datasets", made, rows, marks, notes)


def _known(value: object) -> object:
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
    rows: list[dict[str, object]] = []
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
    rows: list[dict[str, object]] = []
    marks: dict[Place, str] = {}
    for i, group in enumerate(content.scores.groups if names else ()):
        values = {name: float(ranked[i, place[method]]) for method, name in names.items()}
        rows.append({"dataset": group, **values})
        marks |= {(i, name): "best" for name, rank in values.items() if rank == ranked[i].min()}
    return Table("ranks", "Rank of each method on each dataset", made, rows, marks, is_grid=True)


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
    reasons: list[tuple[Row, str]] = [(row, few_splits(row)) for row in content.partial()]
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
        values: dict[str, object] = dict.fromkeys(column.name for column in made)
        values |= vars(growth) | dict(zip(LABELS[1:], growth.method, strict=True))
        values["datasets"] = growth.n_datasets
        rows.append(values | {f"n={n:.0f}": seconds for n, seconds in growth.points})
    return Table("sizes", "Fit time by number of training rows", made, rows)


def search(content: ReportData) -> Table:
    """Return what the searches saw: their measure by the values of each parameter."""
    rows = content.searched()
    names = {str(row["measure"]) for row in rows}
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
    written = value_writer(measure)
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


# -- tables that commands print too


def leaderboard(content: ReportData) -> Table:
    """Return one row per method: place, mean, wins, times, size, budget."""
    return leaderboard_table(content.leaderboard, digits=content.digits, focus=content.focus)


def others(content: ReportData) -> Table:
    """Return the rows that others computed, beside ours."""
    beside = beside_own(content.rows, content.others, content.measure)
    return others_table(beside, content.measure)


def cells(content: ReportData) -> Table:
    """Return every cell with its columns."""
    return cells_table(content.rows, content.measure)

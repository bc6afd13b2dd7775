"""The tables of a report, before they are formatted."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np

from kbench.features import (
    ALPHA,
    CURVE,
    LABEL_COLUMNS,
    LABELS,
    NO_FAILURE,
    NOT_MEASURED,
    PLAIN,
    ROPE,
    Budget,
    Column,
    Metric,
    Place,
    ReportData,
    Table,
    Written,
    against,
    best_marks,
    cells_table,
    duration,
    duration_unit,
    few_splits,
    format_method,
    group_values,
    imported_table,
    leaderboard_table,
    make_headings,
    match_local_rows,
    number,
    p_value,
    share,
    stats,
    value_writer,
    why_not,
    write_cell,
    write_signed,
)
from kbench.messages import last_line
from kbench_reporting.findings import entries, growth, list_sizes, ordered_budgets, places

MAX_PAIRS = 300
"""Above this number of pairs, only those with the best method are listed."""


def _differences(metric: Metric, digits: int | None = None) -> Written:
    """Return the function that formats differences of a metric."""
    return partial(write_signed, written=value_writer(metric, digits))


def scores(content: ReportData) -> Table:
    """Return datasets against methods: mean and standard deviation of the metric."""
    return _against_methods("scores", content, content.metric)


def scores_default_metric(content: ReportData) -> Table:
    """Return the same for accuracy or RMSE, if the suite compares another metric."""
    name, metric = "scores-default-metric", PLAIN[content.task]
    has_it = any(row.value(metric.name) is not None for row in content.rows)
    if metric == content.metric or not has_it:
        return Table(name, metric.words, [Column("dataset")], [], is_grid=True)
    return _against_methods(name, content, metric)


def _against_methods(table: str, content: ReportData, metric: Metric) -> Table:
    """Return datasets against methods by a metric; only the compared one has marks."""
    compared, written = metric == content.metric, value_writer(metric, content.digits)
    names = make_headings(content.methods)
    made = [Column("dataset")]
    for name in names.values():
        made.append(Column(name, "", written, True, sd=f"{name} (sd)"))
        made.append(Column(f"{name} (sd)", "", written, True))
    rows, marks, notes = [], {}, {}
    for i, (dataset, cells_of) in enumerate(entries(content)):
        values: dict[str, object] = {"dataset": dataset}
        for method, entry in zip(content.methods, cells_of, strict=True):
            name, row = names[method], entry.row
            values[name] = row.value(metric.name) if row else None
            values[f"{name} (sd)"] = row.value(metric.sd) if row else None
            if entry.mark and compared:
                marks[i, name] = entry.mark
            if row is None:
                notes[i, name] = "not planned"
            elif row.value(metric.name) is None:
                notes[i, name] = why_not(row, metric)
            elif row.n_splits_done < row.n_splits:
                notes[i, name] = few_splits(row)
            elif row.converged is False:
                notes[i, name] = "not converged"
        rows.append(values)
    title = f"{metric.words} of each method on each dataset"
    if metric.in_units:
        title += ", in the units of its target"
    return Table(table, title, made, rows, marks, notes, is_grid=True)


def methods(content: ReportData) -> Table:
    """Return the methods, ordered by their mean ranks."""
    board = leaderboard_table(content.leaderboard, digits=content.digits)
    of_board = {column.name: replace(column, wide=False) for column in board.columns}
    counted = len(content.scores.groups)
    made = [
        *(of_board[name] for name in ("place", *LABELS[1:], "rank", "mean", "low", "high")),
        Column("wins", "first or tied", lambda value: f"{value} of {counted}", True),
        *(of_board[name] for name in ("verdict", "worse_than")),
        of_board["front"],
        Column("front_share", "on front in % of resamples", share, True, wide=True),
        of_board["dominated_by"],
        *(of_board[name] for name in ("fit_time_s", "predict_time_per_row_s")),
        replace(of_board["n_components"], wide=True),
    ]
    # the methods of the standings come first
    on_front = zip(places(content, "fit_time_s"), board.rows, strict=False)
    rows = [{**line, "front_share": place.probability} for place, line in on_front]
    marks = best_marks(rows, content.metric)
    return Table("methods", "Methods over all datasets", made, rows, marks, board.notes)


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def highlighted(content: ReportData) -> Table:
    """Return highlighted methods against each other method, with tests over datasets."""
    made = [
        Column("method"),
        Column("against"),
        Column("datasets", numeric=True),
        *(Column(name, "", numeric=True) for name in ("won", "tied", "lost", "untested")),
        Column("difference", "", _differences(content.metric, content.digits), True),
        Column("p_adjusted", "p (adjusted)", p_value, True),
        Column("verdict", "over the datasets"),
    ]
    rows: list[dict[str, object]] = []
    for method in content.focus:
        for each in against(content.rows, method, content.metric):
            names = {"method": format_method(method), "against": format_method(each.other)}
            more = {"datasets": each.n_datasets, "difference": _finite(each.difference)}
            rows.append(vars(each) | names | more | {"p_adjusted": each.p})
    title = "Highlighted methods against each other method"
    return Table("highlighted", title, made, rows, by="method")


def ranks(content: ReportData) -> Table:
    """Return the rank of each method on each dataset, or family of datasets."""
    ranked = stats.ranks(content.scores.gains) if content.standings else np.empty((0, 0))
    place = {method: i for i, method in enumerate(content.scores.methods)}
    names = make_headings([standing.method for standing in content.standings])
    made = [
        Column("dataset"),
        *(Column(name, "", lambda value: f"{value:g}", True) for name in names.values()),
    ]
    rows: list[dict[str, object]] = []
    marks: dict[Place, str] = {}
    for i, group in enumerate(content.scores.groups if names else ()):
        values = {name: float(ranked[i, place[method]]) for method, name in names.items()}
        rows.append({"dataset": group, **values})
        marks |= {(i, name): "best" for name, rank in values.items() if rank == ranked[i].min()}
    return Table("ranks", "Rank of each method on each dataset", made, rows, marks, is_grid=True)


def is_shortened(content: ReportData) -> bool:
    """Whether only pairs with the best method are listed, because there are too many."""
    return math.comb(len(content.standings), 2) > MAX_PAIRS


def pairs(content: ReportData) -> Table:
    """Return pairs of methods, ordered by their mean ranks, with tests over datasets.

    In the tests, a missing cell counts against the method that is ahead.
    """
    written = _differences(content.metric, content.digits)
    made = [
        Column("first"),
        Column("second"),
        Column("difference", "", written, True),
        *(Column(name, f"95 % CI {name}", written, True) for name in ("low", "high")),
        Column("median", "", written, True, wide=True),
        Column("median_low", "95 % CI low", written, True, wide=True),
        Column("median_high", "95 % CI high", written, True, wide=True),
        *(Column(name, "", numeric=True) for name in ("won", "tied", "lost")),
        Column("p", "p", p_value, True),
        Column("p_adjusted", "p (adjusted)", p_value, True),
        *(
            Column(name, f"P({words})", "{:.2f}".format, True)
            for name, words in (("better", "better"), ("same", "equivalent"), ("worse", "worse"))
        ),
    ]
    names = [column.name for column in made]
    title, scores = "Pairs of methods over datasets", content.scores
    index = [scores.methods.index(standing.method) for standing in content.standings]
    if not index:
        return Table("pairs", title, made, [])
    counted = stats.wins_ties_losses(scores.gains)
    rows: list[dict[str, object]] = []
    marks: dict[Place, str] = {}
    for i, j in itertools.combinations(index, 2):
        if is_shortened(content) and i != index[0]:
            break
        d = scores.values[:, i] - scores.values[:, j]
        gained = scores.tried_gains[:, i] - scores.tried_gains[:, j]
        test, ahead = stats.signed_rank(gained), np.sign(np.nansum(gained))
        gained[np.isnan(gained)] = -ahead * np.inf if ahead else 0.0
        ends = (float(d.mean()), *stats.mean_interval(d), *stats.median_interval(d))
        adjusted = float(content.adjusted[i, j])
        posterior = stats.bayesian_signed_rank(gained, ROPE, n_samples=10_000)
        values = (
            *(format_method(scores.methods[k]) for k in (i, j)),
            *map(_finite, ends),
            *map(int, counted[i, j]),
            *(_finite(test.p), adjusted),
            *(posterior.better, posterior.same, posterior.worse),
        )
        if adjusted <= ALPHA:
            marks[len(rows), "p_adjusted"] = "best"
        rows.append(dict(zip(names, values, strict=True)))
    return Table("pairs", title, made, rows, marks)


def failures(content: ReportData) -> Table:
    """Return the cells that failed, and why."""
    made = [
        *LABEL_COLUMNS,
        Column("status"),
        Column("n_splits_done", "splits done", numeric=True),
        Column("n_splits", "splits planned", numeric=True),
        Column("why"),
        Column("error", "full message", wide=True),
    ]
    rows = [
        {column.name: row.value(column.name) for column in made}
        | {"why": last_line(row.error), "error": row.error}
        for row in content.rows
        if row.status not in NO_FAILURE
    ]
    return Table("failures", "Failed cells", made, rows)


def skipped(content: ReportData) -> Table:
    """Return the cells that were not computed, and why."""
    made = [*LABEL_COLUMNS, Column("status"), Column("why")]
    rows = [
        {column.name: row.value(column.name) for column in made}
        | {"why": row.error or "the run ended first"}
        for row in content.rows
        if row.status in NOT_MEASURED
    ]
    return Table("skipped", "Skipped cells", made, rows)


def unavailable(content: ReportData) -> Table:
    """Return the datasets without data, and why."""
    made = [Column("dataset"), Column("cells", numeric=True), Column("why")]
    failed = (row for row in content.rows if row.status == "unavailable")
    rows = [
        {"dataset": name, "cells": len(errors), "why": errors[0]}
        for name, errors in group_values((row.dataset, row.error) for row in failed).items()
    ]
    return Table("unavailable", "Unavailable datasets", made, rows)


def scaling(content: ReportData) -> Table:
    """Return fit times by the number of training rows, and the exponent fitted to them."""
    made = [
        Column("place", "rank", numeric=True),
        *LABEL_COLUMNS[1:],
        Column("exponent", "exponent of n", "{:.2f}".format, True),
        Column("r2", "R²", "{:.2f}".format, True),
        Column("datasets", "", numeric=True),
        *(Column(f"n={n}", f"n = {number(n)}", duration, True) for n in list_sizes(content)),
    ]
    rows = []
    for each in growth(content):
        values: dict[str, object] = dict.fromkeys(column.name for column in made)
        values |= vars(each) | dict(zip(LABELS[1:], each.method, strict=True))
        values["datasets"] = each.n_datasets
        rows.append(values | {f"n={n:.0f}": seconds for n, seconds in each.points})
    return Table("scaling", "Fit time by number of training rows", made, rows)


def search_curves(content: ReportData) -> Table:
    """Return validation scores by the values of each searched parameter."""
    names = (*LABELS, "parameter", "metric", *CURVE)
    rows: list[dict[str, object]] = [
        dict(zip(names, (*row.labels, parameter, metric.name, *point), strict=True))
        for row in content.rows
        if (metric := row.searched) is not None
        for parameter, points in row.search.items()
        for point in points
    ]
    metrics = {str(row["metric"]) for row in rows}
    name = metrics.pop() if len(metrics) == 1 else ""
    four = partial(write_cell, name)
    made = [
        *LABEL_COLUMNS,
        Column("parameter"),
        Column("metric", wide=bool(name)),
        Column("value", "", number, True),
        Column("mean", f"validation {name or 'score'}", four, True),
        Column("standard_error", "standard error", four, True),
        Column("n", "folds", numeric=True),
        Column("at_boundary", "best at the boundary"),
    ]
    title = "Validation scores by searched parameter"
    return Table("search-curves", title, made, rows, by="dataset")


def budgets(content: ReportData) -> Table:
    """Return the search budget of each method: candidates, CPU time, and what it gained."""
    all_budgets, metric = ordered_budgets(content), content.metric
    written = value_writer(metric)
    made = [
        Column("family", "", lambda family: family or "none"),
        *LABEL_COLUMNS[1:],
        Column("least", "min candidates", number, True),
        Column("most", "max candidates", number, True),
        Column("search_time_cpu_s", "CPU time of a search", duration, True, unit=duration_unit),
        Column("searched", "searched parameters", _without_sides),
        Column("at_boundary", "best at the boundary", lambda share: f"{share * 100:.0f} %", True),
    ]
    if any(budget.default is not None for budget in all_budgets):
        made += [
            Column("default", f"default {metric.words}", written, True),
            Column("tuned", "tuned", written, True),
            Column("difference", "", _differences(metric), True),
        ]
    rows = [
        dict(zip(LABELS[1:], budget.method, strict=True))
        | {name: getattr(budget, name) for name in ("family", "least", "most", "at_boundary")}
        | {"search_time_cpu_s": budget.search_s, "searched": ", ".join(budget.parameters)}
        | {"default": budget.default, "tuned": budget.tuned, "difference": _difference(budget)}
        for budget in all_budgets
    ]
    notes = {(i, "most"): budget.note for i, budget in enumerate(all_budgets)}
    return Table("budgets", "Search budgets", made, rows, notes=notes)


def _without_sides(names: str) -> str:
    """Format the names of searched parameters.

    >>> _without_sides("feature_map.bandwidth_factor, learner.kernel.degree, scaling")
    'bandwidth_factor, kernel.degree, scaling'
    """
    plain = (n.removeprefix("feature_map.").removeprefix("learner.") for n in names.split(", "))
    return ", ".join(dict.fromkeys(plain))


def _difference(budget: Budget) -> float | None:
    if budget.default is None or budget.tuned is None:
        return None
    return budget.tuned - budget.default


# -- tables that commands print too


def leaderboard(content: ReportData) -> Table:
    """Return one row per method: rank, mean, wins, times, size, search budget."""
    return leaderboard_table(content.leaderboard, digits=content.digits, focus=content.focus)


def imported(content: ReportData) -> Table:
    """Return imported results, next to the local ones."""
    beside = match_local_rows(content.rows, content.imported, content.metric)
    return imported_table(beside, content.metric)


def cells(content: ReportData) -> Table:
    """Return every cell with all its columns."""
    return cells_table(content.rows, content.metric)

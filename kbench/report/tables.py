"""Every table of a report, whatever form it is then written in."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kbench.records import Measure
from kbench.report.axes import duration, number
from kbench.report.content import Content, name_of
from kbench.report.text import Column, Place, Table, p_value, shown, signed
from kbench.results.rows import Method, Row, columns
from kbench.results.stats import ranks as rank_within

_LABELS = (
    Column("dataset"),
    Column("feature_map", "feature map"),
    Column("learner"),
)


def _values(measure: Measure) -> Callable[[Any], str]:
    """Return what writes values of a measure."""
    return partial(shown, measure.name)


def cells(rows: Sequence[Row], measure: Measure) -> Table:
    """Return every cell with the columns of results; the best of each dataset is marked."""
    narrow = {"dataset", "feature_map", "learner", measure.name, "fit_time_s", "predict_time_s"}
    made = []
    for i, name in enumerate(columns(measure)):
        sd = measure.sd if name == measure.name else ""
        made.append(
            Column(
                name,
                written=partial(shown, name),
                numeric=i > 3,
                sd=sd,
                wide=name not in narrow,
            )
        )
    best: dict[str, float] = {}
    for row in rows:
        if row.is_complete and row.value(measure.name) is not None:
            gain = measure.gain(round(row.value(measure.name), 4))
            best[row.dataset] = max(best.get(row.dataset, gain), gain)
    marks, notes = {}, {}
    for i, row in enumerate(rows):
        place, value = (i, measure.name), row.value(measure.name)
        if value is None:
            notes[place] = _why_not(row, measure)
        elif not row.is_complete:
            notes[place] = f"{row.n_splits_done} of {row.n_splits} splits"
        elif measure.gain(round(value, 4)) == best[row.dataset]:
            marks[place] = "best"
    lines = [{column.name: row.value(column.name) for column in made} for row in rows]
    return Table("cells", "All cells", made, lines, marks, notes, by="dataset")


def _why_not(row: Row, measure: Measure) -> str:
    return row.status if row.status != "ok" else f"no {measure.name}"


def main(content: Content) -> Table:
    """Return datasets against methods: mean and standard deviation of the measure."""
    measure = content.measure
    names = _headings(content.methods)
    made = [Column("dataset")]
    for name in names.values():
        made.append(Column(name, "", _values(measure), True, sd=f"{name} (sd)"))
        made.append(Column(f"{name} (sd)", "", _values(measure), True))
    rows, marks, notes = [], {}, {}
    for i, (dataset, entries) in enumerate(content.table()):
        values: dict[str, Any] = {"dataset": dataset}
        for method, entry in zip(content.methods, entries, strict=True):
            name, row = names[method], entry.row
            values[name] = row.value(measure.name) if row else None
            values[f"{name} (sd)"] = row.value(measure.sd) if row else None
            if entry.mark:
                marks[i, name] = entry.mark
            if row is None:
                notes[i, name] = "not planned"
            elif row.value(measure.name) is None:
                notes[i, name] = _why_not(row, measure)
            elif row.n_splits_done < row.n_splits:
                notes[i, name] = f"{row.n_splits_done} of {row.n_splits} splits"
            elif row.converged is False:
                notes[i, name] = "not converged"
        rows.append(values)
    return Table("main", f"{measure.name} of each method on each dataset", made, rows, marks, notes)


def _headings(methods: Sequence[Method]) -> dict[Method, str]:
    """Name a column for each method; two that read the same are numbered."""
    found: dict[Method, str] = {}
    for method in methods:
        name = name_of(method)
        taken = {*found.values(), *(f"{each} (sd)" for each in found.values())}
        tries = (name if i == 1 else f"{name} [{i}]" for i in itertools.count(1))
        found[method] = next(each for each in tries if each not in taken)
    return found


def methods(content: Content) -> Table:
    """Return the methods in the order of their mean ranks."""
    measure, counted = content.measure, len(content.scores.groups)
    written = _values(measure)
    made = [
        Column("place", "no.", numeric=True),
        *_LABELS[1:],
        Column("rank", "mean rank", lambda value: f"{value:.2f}", True),
        Column("mean", f"mean {measure.name}", written, True),
        Column("low", "95 % from", written, True),
        Column("high", "to", written, True),
        Column("wins", "first or tied", lambda value: f"{value} of {counted}", True),
        Column("fit_time_s", "fit time", duration, True),
        Column("predict_row_s", "to predict a row", duration, True),
        Column("n_components", "components", number, True, wide=True),
    ]
    rows = []
    for each in content.standings:
        values = {name: _known(getattr(each, name, None)) for name in (c.name for c in made)}
        rows.append(values | {"feature_map": each.method[0], "learner": each.method[1]})
    best: dict[str, float] = {}
    if rows:
        gains = [measure.gain(round(row["mean"], 12)) for row in rows]
        best = {"rank": min(row["rank"] for row in rows), "mean": measure.gain(max(gains))}
        times = [row["fit_time_s"] for row in rows if row["fit_time_s"] is not None]
        best |= {"fit_time_s": min(times)} if times else {}
    marks = {
        (i, name): "best"
        for i, row in enumerate(rows)
        for name, value in best.items()
        if row[name] is not None and round(row[name], 12) == round(value, 12)
    }
    return Table("methods", "Methods over all datasets", made, rows, marks)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def ranks(content: Content) -> Table:
    """Return the rank of each method on each group of datasets that counts."""
    found = rank_within(content.scores.gains) if content.standings else np.empty((0, 0))
    place = {method: i for i, method in enumerate(content.scores.methods)}
    names = _headings([each.method for each in content.standings])
    made = [
        Column("dataset", "dataset or group"),
        *(Column(name, "", lambda value: f"{value:g}", True) for name in names.values()),
    ]
    rows: list[dict[str, Any]] = []
    marks: dict[Place, str] = {}
    for i, group in enumerate(content.scores.groups if names else ()):
        values = {name: float(found[i, place[method]]) for method, name in names.items()}
        rows.append({"dataset": group} | values)
        marks |= {(i, name): "best" for name, rank in values.items() if rank == found[i].min()}
    return Table("ranks", "Rank of each method on each dataset", made, rows, marks)


def pairs(content: Content) -> Table:
    """Return the methods two by two, with tests over datasets."""
    made = [
        Column("first"),
        Column("second"),
        Column("difference", "", signed, True),
        Column("low", "95 % from", signed, True),
        Column("high", "to", signed, True),
        *(Column(name, "", numeric=True) for name in ("won", "tied", "lost")),
        Column("p", "p", p_value, True),
        Column("p_holm", "p (Holm)", p_value, True),
        *(
            Column(name, "", lambda value: f"{value:.2f}", True)
            for name in ("better", "same", "worse")
        ),
    ]
    rows, marks = [], {}
    for i, each in enumerate(content.pairs() if content.standings else ()):
        rows.append(
            {
                "first": name_of(each.first),
                "second": name_of(each.second),
                "difference": each.difference,
                "low": each.low,
                "high": each.high,
                "won": each.wins,
                "tied": each.ties,
                "lost": each.losses,
                "p": each.p,
                "p_holm": each.adjusted,
                "better": each.posterior.better,
                "same": each.posterior.same,
                "worse": each.posterior.worse,
            }
        )
        if each.adjusted <= content.alpha:
            marks[i, "p_holm"] = "best"
    return Table("pairs", "Methods two by two over datasets", made, rows, marks)


def published(content: Content) -> Table:
    """Return ours beside the figures that papers print."""
    four = _values(content.measure)
    made = [
        *_LABELS,
        Column("measure", wide=True),
        Column("ours", "", four, True),
        Column("standard_error", "standard error", four, True),
        Column("n", "splits", numeric=True),
        Column("paper", "", four, True),
        Column("z", "", lambda value: signed(value, 1), True),
        Column("source"),
    ]
    rows = [
        {
            "dataset": each.published.dataset,
            "feature_map": each.published.feature_map,
            "learner": each.published.learner,
            "measure": each.published.measure,
            "ours": each.ours,
            "standard_error": each.standard_error,
            "n": each.n,
            "paper": each.published.value,
            "z": each.z,
            "source": each.published.source,
        }
        for each in content.beside_published()
    ]
    notes = {(i, "ours"): "no result" for i, row in enumerate(rows) if row["ours"] is None}
    return Table("published", "Beside published figures", made, rows, notes=notes)


def failures(content: Content) -> Table:
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


def unavailable(content: Content) -> Table:
    """Return the datasets without data, and why."""
    made = [Column("dataset"), Column("cells", numeric=True), Column("why")]
    rows = [
        {"dataset": name, "cells": count, "why": why}
        for name, (count, why) in content.unavailable().items()
    ]
    return Table("unavailable", "Data that could not be had", made, rows)


def doubts(content: Content) -> Table:
    """Return what makes a number less certain: one line per cell and reason."""
    found: list[tuple[Row, str]] = []
    for row in content.partial():
        found.append((row, f"{row.n_splits_done} of {row.n_splits} splits"))
    found += [(row, "a fit did not converge") for row in content.not_converged()]
    for row in content.rows:
        if row.at_edge:
            found.append((row, f"chosen at the edge of its grid: {row.at_edge}"))
        if row.notes:
            found.append((row, row.notes))
        if row.contention:
            found.append((row, f"the machine was busy: {row.contention}"))
    rows = [
        {each.name: row.value(each.name) for each in _LABELS} | {"why": why} for row, why in found
    ]
    return Table("doubts", "What makes numbers less certain", [*_LABELS, Column("why")], rows)


def sizes(content: Content) -> Table:
    """Return fit times by the number of training rows, and the growth fitted to them."""
    made = [
        Column("place", "no.", numeric=True),
        *_LABELS[1:],
        Column("exponent", "time grows as n to the", lambda value: f"{value:.2f}", True),
        Column("r2", "R²", lambda value: f"{value:.2f}", True),
        Column("datasets", "", numeric=True),
        *(Column(f"n={n}", f"n = {number(n)}", duration, True) for n in content.sizes()),
    ]
    rows = []
    for each in content.growth():
        values: dict[str, Any] = {column.name: None for column in made}
        values |= {"place": each.place, "feature_map": each.method[0], "learner": each.method[1]}
        values |= {"exponent": each.exponent, "r2": each.r2, "datasets": each.n_datasets}
        rows.append(values | {f"n={n:.0f}": seconds for n, seconds in each.points})
    return Table("sizes", "Fit time by number of training rows", made, rows)


def search(content: Content) -> Table:
    """Return what inner cross-validation saw: accuracy by the values of each parameter."""
    four = partial(shown, "accuracy")
    made = [
        *_LABELS,
        Column("parameter"),
        Column("value", "", number, True),
        Column("mean", "inner accuracy", four, True),
        Column("standard_error", "standard error", four, True),
        Column("n", "inner folds", numeric=True),
        Column("at_edge", "best at an edge"),
    ]
    rows = content.searched()
    return Table("search", "Inner accuracy by searched parameter", made, rows, by="dataset")


def all_cells(content: Content) -> Table:
    """Return every cell with the columns of results."""
    return cells(content.rows, content.measure)


TABLES: Mapping[str, tuple[str, Callable[[Content], Table]]] = {
    "main": ("datasets against methods, the best in bold", main),
    "methods": ("mean ranks, means, times of each method", methods),
    "ranks": ("rank of each method on each dataset", ranks),
    "pairs": ("methods two by two: differences and tests", pairs),
    "published": ("ours beside the figures of papers", published),
    "sizes": ("fit time by number of training rows", sizes),
    "search": ("what searches saw: inner accuracy by the values of each parameter", search),
    "failures": ("cells that failed, and why", failures),
    "unavailable": ("datasets that could not be had, and why", unavailable),
    "doubts": ("what makes numbers less certain, cell by cell", doubts),
    "cells": ("every cell with its columns", all_cells),
}
"""Each table of a report: what it holds, and what makes it."""

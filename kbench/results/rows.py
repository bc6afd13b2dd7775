"""One row per cell: from the journal's lines, or from MLflow's runs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kbench.planning.planner import PlannedCell
from kbench.records import ACCURACY, Measure, Published

COLUMNS = (
    "dataset",
    "feature_map",
    "learner",
    "status",
    "n_splits_done",
    "n_splits",
    "accuracy",
    "accuracy_sd",
    "fit_time_s",
    "predict_time_s",
    "search_time_s",
    "n_components",
    "peak_memory_mb",
    "converged",
)
"""Columns of a results table, in order, where accuracy is compared."""

CURVE = ("value", "mean", "standard_error", "n", "at_edge")
"""What is known of a point of a search's curve."""

_LABELS = 6
"""Columns that no measure fills."""
_TAGS = (
    "version",
    "at_edge",
    "notes",
    "contention",
    "timing",
    "calibration_s",
    "error",
    "equivalence",
)
Row = dict[str, Any]


def columns(measure: Measure = ACCURACY) -> tuple[str, ...]:
    """Return the columns of a results table: the measure that is compared comes first.

    >>> columns(Measure("log_loss", "lower"))[5:9]
    ('n_splits', 'log_loss', 'log_loss_sd', 'accuracy')
    """
    compared = (*COLUMNS[:_LABELS], measure.name, measure.sd, *COLUMNS[_LABELS:])
    return tuple(dict.fromkeys(compared))


def measure_of(runs: Sequence[Mapping[str, Any]]) -> Measure:
    """Return what the suite of MLflow runs compares: what most of them say."""
    told = Counter(
        (run["tags"]["kbench.measure"], run["tags"].get("kbench.better"))
        for run in runs
        if run["tags"].get("kbench.measure")
    )
    if not told:
        return ACCURACY
    name, better = told.most_common(1)[0][0]
    return Measure(name, "lower" if better == "lower" else "higher")


def means(lines: Sequence[Mapping[str, Any]], measure: Measure = ACCURACY) -> dict[str, float]:
    """Average the measures of a cell's splits.

    Parameters
    ----------
    lines : sequence of mapping
        Journal lines with status "ok".
    measure : Measure, optional
        What the suite compares.

    Returns
    -------
    dict of str to float
        The mean of each measure over the splits that have it; of the accuracy
        and of `measure` also the standard deviation of one split, such as
        ``accuracy_sd`` (ddof 1; absent for a single split).
    """
    collected: dict[str, list[float]] = {}
    for line in lines:
        for name, value in line["measures"].items():
            if value is not None and math.isfinite(value):
                collected.setdefault(name, []).append(value)
    found = {name: float(np.mean(values)) for name, values in collected.items()}
    for each in (ACCURACY, measure):
        if len(collected.get(each.name, ())) > 1:
            found[each.sd] = float(np.std(collected[each.name], ddof=1))
    return found


def of_cell(planned: PlannedCell, measure: Measure = ACCURACY) -> Row:
    """Return the row of a planned cell, whatever became of it.

    Parameters
    ----------
    planned : PlannedCell
    measure : Measure, optional
        What the suite compares.

    Returns
    -------
    dict
        `columns` of the measure, and what decides how cells are compared:
        the ``group`` of the dataset and the ``equivalence`` of the method.
    """
    done = planned.done
    row = _row(
        columns(measure),
        dataset=planned.cell.dataset.label,
        feature_map=planned.cell.feature_map.label,
        learner=planned.cell.learner.label,
        status=planned.status,
        n_splits_done=len(done),
        n_splits=planned.n_splits,
        measures=means(done, measure),
    )
    group = str(planned.dataset.get("group") or row["dataset"])
    return {**row, "group": group, "equivalence": planned.equivalence}


def of_run(run: Mapping[str, Any], measure: Measure = ACCURACY) -> Row:
    """Return the row of an MLflow run, as `kbench.tracking` reads it: `columns` only."""
    return _row(
        columns(measure),
        dataset=run["params"].get("dataset", ""),
        feature_map=run["params"].get("feature_map", ""),
        learner=run["params"].get("learner", ""),
        status=run["status"],
        n_splits_done=run["n_splits_done"],
        n_splits=_whole(run["tags"].get("kbench.n_splits", ""), run["n_splits_done"]),
        measures=run["metrics"],
    )


def of_run_in_full(run: Mapping[str, Any], measure: Measure = ACCURACY) -> Row:
    """Return the row of an MLflow run with all that its tags and metrics tell.

    Parameters
    ----------
    run : mapping
        As `kbench.tracking.Store.read` gives it.
    measure : Measure, optional
        What the suite compares.

    Returns
    -------
    dict
        `columns`, every other measure under its name, and ``group, machine,
        version, by_split`` (accuracy by number of the split),
        ``measure_by_split`` (the measure that is compared), ``values_by_split``
        (these and times, by name), ``split_hash``,
        ``protocol, at_edge, notes, contention, timing, calibration_s, error,
        equivalence, start_ms, end_ms``, and ``search``: by parameter, the
        points of what the search saw (`CURVE`). `group` is the dataset's
        label where the store does not tell.
    """
    tags = {name.removeprefix("kbench."): value for name, value in run["tags"].items()}
    row = of_run(run, measure)
    by_split = {
        name.removesuffix("_by_split"): _of_tag(value)
        for name, value in tags.items()
        if name.endswith("_by_split")
    }
    protocol = {
        name.removeprefix("protocol."): value
        for name, value in run["params"].items()
        if name.startswith("protocol.")
    }
    return {
        **run["metrics"],
        **row,
        "group": tags.get("group") or row["dataset"],
        "machine": run["machine"],
        "by_split": by_split.get("accuracy", {}),
        "measure_by_split": by_split.get(measure.name, {}),
        "values_by_split": by_split,
        "split_hash": _of_tag(tags.get("split_hash", "")),
        "protocol": protocol,
        "search": _of_tag(tags.get("search_curves", "")),
        **{name: tags.get(name, "") for name in _TAGS},
        "start_ms": run["start_ms"],
        "end_ms": run["end_ms"],
    }


def _of_tag(text: str) -> dict[str, Any]:
    """Read an object; none where the tag was too long for MLflow, or somebody has edited it."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _whole(text: str, default: int) -> int:
    """Read a number; another where somebody has edited the tag."""
    return int(text) if text.isdecimal() and len(text) < 10 else default


def _row(names: Sequence[str], measures: Mapping[str, float], **fields: Any) -> Row:
    row: Row = {**fields, **{name: measures.get(name) for name in names[_LABELS:]}}
    if row["converged"] is not None:
        # a share over the splits; one split that did not converge is enough
        row["converged"] = row["converged"] == 1.0
    if row["n_components"] is not None and float(row["n_components"]).is_integer():
        row["n_components"] = int(row["n_components"])
    return {name: row[name] for name in names}


def by_dataset(rows: Sequence[Row]) -> list[Row]:
    """Sort rows so that those of a dataset stand together, in the order of first sight.

    Datasets that cannot be had come last.
    """
    order = {name: place for place, name in enumerate(dict.fromkeys(r["dataset"] for r in rows))}
    here = {row["dataset"] for row in rows if row["status"] != "unavailable"}
    return sorted(rows, key=lambda row: (row["dataset"] not in here, order[row["dataset"]]))


def is_complete(row: Row) -> bool:
    """Tell whether a row may be ranked: all planned splits are done."""
    return bool(row["status"] == "ok" and row["n_splits_done"] == row["n_splits"])


def unequal_splits(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Return the least and the largest number of splits where a dataset's rows differ in it.

    Only rows that may be ranked count: their means are over different splits.

    >>> row = {"dataset": "iris", "status": "ok"}
    >>> unequal_splits([{**row, "n_splits_done": n, "n_splits": n} for n in (5, 2)])
    {'iris': (2, 5)}
    """
    found: dict[str, set[int]] = {}
    for row in rows:
        if is_complete(row):
            found.setdefault(row["dataset"], set()).add(row["n_splits"])
    return {name: (min(some), max(some)) for name, some in found.items() if len(some) > 1}


def tied_ranks(values: np.ndarray) -> np.ndarray:
    """Rank values, 1 for the smallest; ties share the mean of their ranks.

    As scipy's ``rankdata``, whose import takes longer than the rest of a command.

    >>> tied_ranks(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: np.ndarray = np.cumsum(counts) - (counts - 1) / 2
    return shared[number]


def ranks(rows: Sequence[Row], measure: Measure = ACCURACY) -> list[float | None]:
    """Rank each complete row among its dataset's, 1 for the best.

    Ties share the mean of their ranks; rows that are not complete, or lack
    the measure, have none.
    """
    found: list[float | None] = [None] * len(rows)
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        places = [
            i
            for i, row in enumerate(rows)
            if row["dataset"] == dataset and is_complete(row) and row[measure.name] is not None
        ]
        # rounding first: sums in another order must not break ties
        values = [-measure.gain(round(rows[i][measure.name], 12)) for i in places]
        for i, rank in zip(places, tied_ranks(np.array(values)), strict=True):
            found[i] = float(rank)
    return found


def beside_published(rows: Sequence[Row], published: Sequence[Published]) -> list[Row]:
    """Put ours beside the figures that papers print.

    Parameters
    ----------
    rows : sequence of dict
        Rows of `COLUMNS`.
    published : sequence of Published
        Figures of the suite; those of measures that rows do not have are
        left out.

    Returns
    -------
    list of dict
        ``dataset, feature_map, learner, measure, ours, standard_error, n, paper,
        z, source``, one per published figure whose cell is planned, whatever
        became of it. z is the distance in standard errors,
        (ours - paper) / sqrt(sd^2 (1/n_ours + 1/n_paper)), where sd is that
        of one run, ours, ddof 1; None where it is not known.
    """
    by_labels = {(row["dataset"], row["feature_map"], row["learner"]): row for row in rows}
    found: list[Row] = []
    for figure in published:
        row = by_labels.get((figure.dataset, figure.feature_map, figure.learner))
        if row is None or figure.measure not in row:
            continue
        ours, sd = row[figure.measure], row.get(f"{figure.measure}_sd")
        n = row["n_splits_done"]
        z = None
        if sd and figure.n_runs:
            z = (ours - figure.value) / (sd * math.sqrt(1 / n + 1 / figure.n_runs))
        found.append(
            {
                "dataset": figure.dataset,
                "feature_map": figure.feature_map,
                "learner": figure.learner,
                "measure": figure.measure,
                "ours": ours,
                "standard_error": None if sd is None else sd / math.sqrt(n),
                "n": n,
                "paper": figure.value,
                "z": z,
                "source": figure.source,
            }
        )
    return found

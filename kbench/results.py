"""One row per cell: from the journal's lines, or from MLflow's runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kbench.plan import PlannedCell
from kbench.records import Published

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
"""Columns of a results table, in order."""

_MEANS = COLUMNS[6:]
_TAGS = ("version", "at_edge", "notes", "contention", "calibration_s", "error")
Row = dict[str, Any]


def means(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Average the measures of a cell's splits.

    Parameters
    ----------
    lines : sequence of mapping
        Journal lines with status "ok".

    Returns
    -------
    dict of str to float
        The mean of each measure over the splits that have it, and
        ``accuracy_sd``, the standard deviation of one split (ddof 1; absent
        for a single split).
    """
    collected: dict[str, list[float]] = {}
    for line in lines:
        for name, value in line["measures"].items():
            if value is not None and math.isfinite(value):
                collected.setdefault(name, []).append(value)
    found = {name: float(np.mean(values)) for name, values in collected.items()}
    if len(collected.get("accuracy", ())) > 1:
        found["accuracy_sd"] = float(np.std(collected["accuracy"], ddof=1))
    return found


def of_cell(planned: PlannedCell) -> Row:
    """Return the row of a planned cell, whatever became of it."""
    done = planned.done
    return _row(
        dataset=planned.cell.dataset.label,
        feature_map=planned.cell.feature_map.label,
        learner=planned.cell.learner.label,
        status=planned.status,
        n_splits_done=len(done),
        n_splits=planned.n_splits,
        measures=means(done),
    )


def of_run(run: Mapping[str, Any]) -> Row:
    """Return the row of an MLflow run, as `kbench.tracking` reads it."""
    return _row(
        dataset=run["params"].get("dataset", ""),
        feature_map=run["params"].get("feature_map", ""),
        learner=run["params"].get("learner", ""),
        status=run["status"],
        n_splits_done=run["n_splits_done"],
        n_splits=int(run["tags"].get("kbench.n_splits", run["n_splits_done"])),
        measures=run["metrics"],
    )


def of_run_in_full(run: Mapping[str, Any]) -> Row:
    """Return the row of an MLflow run with all that its tags and metrics tell.

    Parameters
    ----------
    run : mapping
        As `kbench.tracking.Store.read` gives it.

    Returns
    -------
    dict
        `COLUMNS`, every other measure under its name, and ``group, machine,
        version, by_split, split_hash`` (by number of the split), ``protocol``,
        ``at_edge, notes, contention, calibration_s, error, start_ms, end_ms``.
        `group` is the dataset's label where the store does not tell.
    """
    tags = {name.removeprefix("kbench."): value for name, value in run["tags"].items()}
    row = of_run(run)
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
        "by_split": json.loads(tags.get("accuracy_by_split") or "{}"),
        "split_hash": json.loads(tags.get("split_hash") or "{}"),
        "protocol": protocol,
        **{name: tags.get(name, "") for name in _TAGS},
        "start_ms": run["start_ms"],
        "end_ms": run["end_ms"],
    }


def _row(measures: Mapping[str, float], **fields: Any) -> Row:
    row: Row = {**fields, **{name: measures.get(name) for name in _MEANS}}
    if row["converged"] is not None:
        # a share over the splits; one split that did not converge is enough
        row["converged"] = row["converged"] == 1.0
    if row["n_components"] is not None and float(row["n_components"]).is_integer():
        row["n_components"] = int(row["n_components"])
    return {name: row[name] for name in COLUMNS}


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


def ranks(rows: Sequence[Row]) -> list[float | None]:
    """Rank each complete row among its dataset's, 1 for the best accuracy.

    Ties share the mean of their ranks; rows that are not complete have none.
    """
    from scipy.stats import rankdata

    found: list[float | None] = [None] * len(rows)
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        places = [i for i, r in enumerate(rows) if r["dataset"] == dataset and is_complete(r)]
        # rounding first: sums in another order must not break ties
        values = [-round(rows[i]["accuracy"], 12) for i in places]
        for i, rank in zip(places, rankdata(values) if places else (), strict=True):
            found[i] = float(rank)
    return found


def method_summary(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Compare methods over the datasets that all of them finished.

    Parameters
    ----------
    rows : sequence of dict
        Rows of `COLUMNS`.

    Returns
    -------
    summary : list of dict
        ``feature_map, learner, accuracy, rank, fit_time_s, predict_time_s``:
        means over those datasets, best rank first.
    datasets : list of str
        The datasets. Methods that finished none at all are not compared.
    """
    finished = (row for row in rows if is_complete(row))
    methods = list(dict.fromkeys((row["feature_map"], row["learner"]) for row in finished))
    complete = {
        (row["dataset"], row["feature_map"], row["learner"]): row
        for row in rows
        if is_complete(row)
    }
    datasets = [
        dataset
        for dataset in dict.fromkeys(row["dataset"] for row in rows)
        if all((dataset, *method) in complete for method in methods)
    ]
    if not datasets:
        return [], []
    chosen = [complete[dataset, *method] for dataset in datasets for method in methods]
    ranked = ranks(chosen)
    summary = []
    for method in methods:
        mine = [i for i, row in enumerate(chosen) if (row["feature_map"], row["learner"]) == method]
        summary.append(
            {
                "feature_map": method[0],
                "learner": method[1],
                "rank": float(np.mean([ranked[i] for i in mine if ranked[i] is not None])),
                **{
                    name: float(np.mean([chosen[i][name] for i in mine]))
                    for name in ("accuracy", "fit_time_s", "predict_time_s")
                },
            }
        )
    return sorted(summary, key=lambda row: row["rank"]), datasets


def beside_published(rows: Sequence[Row], published: Sequence[Published]) -> list[Row]:
    """Put our accuracies beside the figures that papers print.

    Parameters
    ----------
    rows : sequence of dict
        Rows of `COLUMNS`.
    published : sequence of Published
        Figures of the suite; measures other than accuracy are left out.

    Returns
    -------
    list of dict
        ``dataset, feature_map, learner, ours, standard_error, n, paper, z,
        source``, one per published figure whose cell is planned, whatever
        became of it. z is the distance in standard errors,
        (ours - paper) / sqrt(sd^2 (1/n_ours + 1/n_paper)), where sd is that
        of one run, ours, ddof 1; None where it is not known.
    """
    by_labels = {(row["dataset"], row["feature_map"], row["learner"]): row for row in rows}
    found: list[Row] = []
    for figure in published:
        row = by_labels.get((figure.dataset, figure.feature_map, figure.learner))
        if row is None or figure.measure != "accuracy":
            continue
        n, sd, ours = row["n_splits_done"], row["accuracy_sd"], row["accuracy"]
        z = None
        if sd and figure.n_runs:
            z = (ours - figure.value) / (sd * math.sqrt(1 / n + 1 / figure.n_runs))
        found.append(
            {
                "dataset": figure.dataset,
                "feature_map": figure.feature_map,
                "learner": figure.learner,
                "ours": ours,
                "standard_error": None if sd is None else sd / math.sqrt(n),
                "n": n,
                "paper": figure.value,
                "z": z,
                "source": figure.source,
            }
        )
    return found

"""The MLflow runs of methods: means over the datasets that all of them finished."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kbench.features import LABELS, PLAIN, Method, Row, Scores, ranks, scores, task_of
from kbench.records import Measure
from kbench_mlflow.tracking import MethodRun, on_dataset

_GEOMETRIC = ("fit_time_s", "predict_time_s", "search_time_s")
_ARITHMETIC = ("n_components", "peak_memory_mb")


def method_runs(rows: Sequence[Row], measure: Measure) -> list[MethodRun]:
    """Return a run for each method that is compared, by the rules of the report.

    Datasets of one group are averaged first; times are geometric means. Values in the units of
    different targets are not averaged.
    """
    compared = scores(rows, measure)
    if not compared.datasets:
        return []
    columns = {
        name: _means(compared, rows, name, geometric=name in _GEOMETRIC)
        for name in (*_GEOMETRIC, *_ARITHMETIC)
    }
    plain = PLAIN[task_of(rows)]
    if not plain.in_units or len(compared.datasets) == 1:
        columns[plain.name] = _means(compared, rows, plain.name)
    if compared.has_one_unit:
        columns[measure.name] = compared.values.mean(axis=0)
        if len(compared.methods) > 1:
            columns["mean_rank"] = ranks(compared.gains).mean(axis=0)
    columns["n_datasets"] = np.full(len(compared.methods), float(len(compared.datasets)))
    return [
        _run(method, {name: float(values[i]) for name, values in columns.items()}, compared, rows)
        for i, method in enumerate(compared.methods)
    ]


def _means(compared: Scores, rows: Sequence[Row], name: str, geometric: bool = False) -> np.ndarray:
    values = compared.of(rows, name)
    if not geometric:
        return np.asarray(values.mean(axis=0))
    # nothing was searched, or it was not measured: a mean of logarithms would be none
    logs = np.log(np.where(values > 0, values, np.nan))
    return np.asarray(np.exp(logs.mean(axis=0)))


def _run(
    method: Method, metrics: dict[str, float], compared: Scores, rows: Sequence[Row]
) -> MethodRun:
    own = [row for row in rows if row.method == method and row.dataset in compared.datasets]
    measure = compared.measure.name
    by_dataset = {
        on_dataset(measure, row.dataset): row.measures[measure]
        for row in rows
        if row.method == method and row.status == "ok" and measure in row.measures
    }
    metrics = metrics | by_dataset
    return MethodRun(
        name=" + ".join(method),
        params=dict(zip(LABELS[1:], method, strict=True)),
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
        tags={
            "datasets": ", ".join(compared.datasets),
            "left_out": ", ".join(compared.left_out),
            "measure": measure,
            "better": compared.measure.better,
            "family": next((row.family for row in own if row.family), ""),
        },
        start_ms=min((row.start_ms for row in own if row.start_ms), default=0),
        end_ms=max((row.end_ms for row in own), default=0),
    )

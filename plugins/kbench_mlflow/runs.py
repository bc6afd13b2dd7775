"""The MLflow runs of finished cells, and of methods: means over the datasets of all methods."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kbench.features import (
    LABELS,
    PLAIN,
    TEXTS,
    TIMES,
    Method,
    PlannedCell,
    Row,
    Scores,
    collect_by_split,
    find_row_task,
    group_values,
    is_number,
    make_full_row,
    ranks,
    scores,
)
from kbench.records import ACCURACY, Metric, Ref, write_value
from kbench.records.canonical import dumps
from kbench_mlflow.tracking.run import CHOSEN, CellRun, DatasetInput
from kbench_mlflow.tracking.summaries import MethodRun, on_dataset

BY_SPLIT = (*TIMES, "search_time_s")
ERROR_TAIL = 4000
TAG_CHARS = 7900
"""Longer tags are cut by the store."""


def build_run(
    planned: PlannedCell, suite: str, machine: str, metric: Metric = ACCURACY, budget: str = ""
) -> CellRun:
    """Return the MLflow run of a finished cell, computed on `machine`.

    `metric` and `budget` are those of the suite.
    """
    row, facts = make_full_row(planned, machine, metric), planned.dataset
    # a cluster's machines; a run of this machine needs its id only
    remote = [result for result in planned.in_order if result.machine not in ("", machine)]
    tags = {
        "suite": suite,
        "n_splits": str(row.n_splits),
        "task": row.task,
        # tests over datasets need these beside the means, without a request per run
        "dataset_family": facts.dataset_family if facts else "",
        "checksum": row.checksum,
        "search_space": ", ".join(row.search_space),
        "search_curves": _curves(row),
        "budget_curve": dumps(row.budget_curve) if row.budget_curve else "",
        "map_details": _fitting(dumps(row.map_details)) if row.map_details else "",
        "metric": metric.name,
        "better": metric.better,
        "equal_budget": budget,
        **{f"{name}_by_split": _number(values) for name, values in row.values_by_split.items()},
        **{f"{name}_by_seed": _fitting(_number(v)) for name, v in row.values_by_seed.items()},
        "split_hash": _number(row.split_hash),
        **{name: getattr(row, name) for name in TEXTS},
        "hosts": ", ".join(sorted({f"{result.host} ({result.cpu})" for result in remote})),
        "error": row.error[-ERROR_TAIL:],
    }
    data = None
    if facts is not None:
        label, size = planned.cell.dataset.label, (facts.n_samples, facts.n_features)
        data = DatasetInput(label, facts.checksum, facts.source, *size)
    return CellRun(
        key=planned.version,
        machine=machine,
        name=planned.cell.name,
        status=row.status,
        start_ms=row.start_ms,
        end_ms=row.end_ms,
        params=_params(planned, row),
        tags={name: value for name, value in tags.items() if value},
        metrics={**row.metrics, **_chosen_parameters(planned)},
        n_splits_done=row.n_splits_done,
        by_split=_split_values(planned, row, metric),
        dataset=data,
        artifacts=_artifacts(planned, row),
    )


def _number(values: Mapping[str, object]) -> str:
    """Write values by the number of the split, in the order of the numbers."""
    return dumps({int(index): value for index, value in values.items()})


def _fitting(text: str) -> str:
    """Return what fits into a tag; else it is in an artifact only."""
    return text if len(text) <= TAG_CHARS else ""


def _params(planned: PlannedCell, row: Row) -> dict[str, str]:
    cell = planned.cell
    params = dict(zip(LABELS, row.labels, strict=True))
    for kind, ref in (("feature_map", cell.feature_map), ("learner", cell.learner)):
        params[f"{kind}.name"] = ref.name
        for name, value in ref.params.items():
            params.update(_flat(f"{kind}.{name}", value))
    return params | {f"protocol.{name}": value for name, value in row.protocol.items()}


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield a parameter, and those of a nested component under their own names."""
    if not isinstance(value, Ref):
        yield name, write_value(value)
        return
    yield name, value.name
    for inner, given in value.params.items():
        yield from _flat(f"{name}.{inner}", given)


def _curves(row: Row) -> str:
    """Return the search curves that fit into a tag."""
    curves = dict(row.search)
    while len(text := dumps(curves)) > TAG_CHARS:
        # the longest curve is dropped; the artifact has it
        curves.pop(max(curves, key=lambda name: len(curves[name])))
    return text if curves else ""


def _split_values(planned: PlannedCell, row: Row, metric: Metric) -> dict[str, dict[int, float]]:
    done = planned.done
    names = (metric.name, PLAIN[row.task].name, *BY_SPLIT)
    values = {name: collect_by_split(done, name) for name in names} if done else {}
    for result in done:
        for name, value in result.details.chosen.items():
            if is_number(value):
                values.setdefault(f"{CHOSEN}{name}", {})[result.split] = float(value)
    return values


def _chosen_parameters(planned: PlannedCell) -> dict[str, float]:
    """Return the mean chosen value of each searched number, which MLflow's pages can draw.

    Where the candidates span two decades, the mean is one of decimal logarithms, and its
    name says so: these pages have linear axes only.
    """
    details = [result.details for result in planned.done]
    chosen = group_values(pair for each in details for pair in each.chosen.items())
    searched = group_values(
        (name, value)
        for each in details
        for candidate in each.search
        for name, value in candidate.items()
        if name in each.chosen
    )
    found = {}
    for name, candidates in searched.items():
        values = chosen[name]
        if not all(map(is_number, candidates + values)) or len(set(candidates)) < 2:
            continue
        if min(candidates) > 0 and max(candidates) >= 100 * min(candidates):
            found[f"{CHOSEN}log10.{name}"] = float(np.mean(np.log10(values)))
        else:
            found[f"{CHOSEN}{name}"] = float(np.mean(values))
    return found


def _artifacts(planned: PlannedCell, row: Row) -> dict[str, str]:
    artifacts = {}
    for name, field in (("search", "search"), ("map", "map_details"), ("seeds", "by_seed")):
        of_split = {result.split: getattr(result.details, field) for result in planned.done}
        if any(of_split.values()):
            artifacts[f"{name}.json"] = dumps(of_split)
    if failed := next((result for result in planned.in_order if not result.is_ok), None):
        printed = f"\n\nPrinted last:\n{failed.printed}" if failed.printed else ""
        artifacts["error.txt"] = row.error + printed
    return artifacts


_GEOMETRIC = ("fit_time_s", "predict_time_s", "search_time_s")
_ARITHMETIC = ("n_components", "peak_memory_mib")


def method_runs(rows: Sequence[Row], metric: Metric) -> list[MethodRun]:
    """Return a run for each method that is compared, by the rules of the report.

    Datasets of one group are averaged first; times are geometric means. Values in the units of
    different targets are not averaged.
    """
    compared = scores(rows, metric)
    if not compared.datasets:
        return []
    columns = {
        name: _means(compared, rows, name, geometric=name in _GEOMETRIC)
        for name in (*_GEOMETRIC, *_ARITHMETIC)
    }
    plain = PLAIN[find_row_task(rows)]
    if not plain.in_units or len(compared.datasets) == 1:
        columns[plain.name] = _means(compared, rows, plain.name)
    if compared.has_one_unit:
        columns[metric.name] = compared.values.mean(axis=0)
        if len(compared.methods) > 1:
            columns["mean_rank"] = ranks(compared.gains).mean(axis=0)
    columns["n_datasets"] = np.full(len(compared.methods), float(len(compared.datasets)))
    return [
        _run(method, {name: float(values[i]) for name, values in columns.items()}, compared, rows)
        for i, method in enumerate(compared.methods)
    ]


def _means(compared: Scores, rows: Sequence[Row], name: str, geometric: bool = False) -> np.ndarray:
    values = compared.average(rows, name)
    if not geometric:
        return np.asarray(values.mean(axis=0))
    # nothing was searched, or it was not measured: a mean of logarithms would be none
    return np.asarray(np.exp(np.log(np.where(values > 0, values, np.nan)).mean(axis=0)))


def _run(
    method: Method, metrics: dict[str, float], compared: Scores, rows: Sequence[Row]
) -> MethodRun:
    own = [row for row in rows if row.method == method and row.dataset in compared.datasets]
    metric = compared.metric.name
    by_dataset = {
        on_dataset(metric, row.dataset): row.metrics[metric]
        for row in rows
        if row.method == method and row.status == "ok" and metric in row.metrics
    }
    metrics = metrics | by_dataset
    return MethodRun(
        name=" + ".join(method),
        params=dict(zip(LABELS[1:], method, strict=True)),
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
        tags={
            "datasets": ", ".join(compared.datasets),
            "left_out": ", ".join(compared.left_out),
            "metric": metric,
            "better": compared.metric.better,
            "family": next((row.family for row in own if row.family), ""),
        },
        start_ms=min((row.start_ms for row in own if row.start_ms), default=0),
        end_ms=max((row.end_ms for row in own), default=0),
    )

"""Rows of planned cells, from the journal's results."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, DEFAULT, Metric, Result
from kbench.records.canonical import JsonObject, dumps, to_json
from kbench.results.budgets import budget_curve
from kbench.results.rows import PLAIN, TIMES, UNKNOWN, Row, group_values, metric_of_search
from kbench.results.search_curves import find_searched_parameters, make_curves, summarise_choice

_SPREADS = (*(metric.name for metric in PLAIN.values()), "r2")


def means(results: Sequence[Result], metric: Metric = ACCURACY) -> dict[str, float]:
    """Average each metric over the splits of a cell that have it, if it is finite on all of them.

    `results` are those with status "ok". Of `metric`, the accuracy, the root mean
    squared error and r2 there is also the standard deviation of one split, such as
    ``accuracy_sd`` (ddof 1; absent for a single split). Of the default candidate's
    metrics there is the one of `metric` only.
    """
    values = group_values(
        (name, value)
        for result in results
        for name, value in {**result.metrics, **_costs(result)}.items()
        if not name.startswith(DEFAULT) or name == metric.default_name
    )
    every: dict[str, float] = {}
    for names in group_values((len(each), name) for name, each in values.items()).values():
        every |= zip(names, np.mean([values[name] for name in names], axis=1).tolist(), strict=True)
    # the mean of the other splits would favour a method that fails on one
    averages = {name: every[name] for name in values if math.isfinite(every[name])}
    for name in (*_SPREADS, metric.name):
        if name in averages and len(values[name]) > 1:
            averages[f"{name}_sd"] = float(np.std(values[name], ddof=1))
    return averages


def _notes(results: Iterable[Result], name: str) -> Iterator[str]:
    """Yield the notes of splits, and where a metric is not finite."""
    for result in results:
        yield from result.details.notes
        if result.details.device:
            yield f"computed on {result.details.device}"
        if not math.isfinite(result.metrics.get(name, 0.0)):
            yield f"{name} is not finite on split {result.split}, and has no mean"


def _costs(result: Result) -> dict[str, float]:
    """Return the predicted cost of a task, and its measured time beside it, as metrics."""
    cost = result.predicted
    if cost is None:
        return {}
    costs = {
        "predicted_memory_mib": cost.memory_mib.value,
        "task_time_s": result.seconds,
        "task_time_cpu_s": result.cpu_s,
    }
    if cost.seconds is not None:
        costs["predicted_time_s"] = cost.seconds.value
        costs["predicted_time_low_s"] = cost.seconds.low
        costs["predicted_time_high_s"] = cost.seconds.high
    return costs


def make_row(planned: PlannedCell, metric: Metric = ACCURACY) -> Row:
    """Return the row of a planned cell, whatever its status, without details.

    It has labels, status, means, and what decides how cells are compared: the
    ``dataset_family``, and the ``equivalence`` and ``family`` of the method.
    """
    cell, done = planned.cell, planned.done
    return Row(
        *cell.labels,
        status=planned.status,
        n_splits_done=len(done),
        n_splits=planned.n_splits,
        metrics=means(done, metric),
        task=planned.dataset.task if planned.dataset else "classification",
        dataset_family=planned.dataset.dataset_family if planned.dataset else "",
        key=planned.key,
        checksum=planned.dataset.checksum if planned.dataset else "",
        equivalence=planned.equivalence,
        family=planned.family,
        outdated=planned.outdated,
        notes=f"out of date: {planned.outdated}" if planned.outdated else "",
        made_from=" ".join(sorted({each.manifest or UNKNOWN for each in planned.in_order})),
    )


def make_full_row(planned: PlannedCell, machine: str, metric: Metric = ACCURACY) -> Row:
    """Return the row of a planned cell with all details that its MLflow run has."""
    done = planned.done
    row = make_split_row(planned, machine, metric)
    searched = metric_of_search(planned.cell.protocol.search_metric, row.task)
    candidates = {str(result.split): result.details.search for result in done}
    metrics = dict(row.metrics)
    if searches := [result for result in done if result.metrics.get("n_candidates", 0) > 1]:
        at_boundary = [bool(result.details.at_boundary) for result in searches]
        metrics["search_at_boundary"] = sum(at_boundary) / len(at_boundary)
        metrics |= summarise_choice([result.details.search for result in searches], searched)
    return replace(
        row,
        metrics=metrics,
        search=make_curves(candidates, searched),
        budget_curve=budget_curve(
            [(result.details.search, result.details.search_seconds) for result in done], searched
        ),
        search_space=find_searched_parameters(candidates.values()),
        map_details=_map_details(planned, done),
    )


def make_split_row(planned: PlannedCell, machine: str, metric: Metric = ACCURACY) -> Row:
    """Return the row of a planned cell with its values by split, without its search."""
    results, done = planned.in_order, planned.done
    since = planned.problem.since_ms if planned.problem else 0
    failed = next((result for result in results if not result.is_ok), None)
    error = failed.error if failed else planned.problem.reason if planned.problem else ""
    reasons = {reason for result in done for reason in result.details.contention}
    row = make_row(planned, metric)
    protocol = planned.cell.protocol
    cpus = {result.cpu for result in done if result.cpu}
    if len(cpus) > 1:
        reasons.add(f"its splits were timed on different CPUs: {', '.join(sorted(cpus))}")
    timings = {result.timing for result in done}
    return replace(
        row,
        machine=machine,
        protocol={
            name: value if isinstance(value, str) else dumps(value)
            for name, value in to_json(protocol).items()
        },
        values_by_split={
            name: {str(i): value for i, value in collect_by_split(done, name).items()}
            for name in (PLAIN[row.task].name, metric.name, *TIMES)
        },
        values_by_seed={
            name: {str(result.split): result.details.by_seed[name] for result in having}
            for name in dict.fromkeys((PLAIN[row.task].name, metric.name))
            if (having := [result for result in done if name in result.details.by_seed])
        },
        split_hash={str(result.split): result.details.split_hash for result in done},
        version=_join(result.version for result in results),
        at_boundary=_join(name for result in done for name in result.details.at_boundary),
        notes=_join(filter(None, [row.notes, *_notes(done, metric.name)]), "; "),
        contention=_join(reasons, "; "),
        timing="" if timings <= {"shared"} else _join(timings),
        machine_speed_s=_join(f"{result.machine_speed_s:.4g}" for result in results),
        error=error,
        start_ms=min((result.started_ms for result in results), default=since),
        end_ms=max((result.ended_ms for result in results), default=since),
    )


def _map_details(planned: PlannedCell, done: Sequence[Result]) -> JsonObject:
    """Return what the map of the first split reports of itself, with names of columns."""
    first = next((result for result in done if result.details.map_details), None)
    if first is None:
        return {}
    names = planned.dataset.feature_names if planned.dataset else ()
    columns = first.details.map_details.get("columns", ())
    reached = max(columns, default=-1) + 1 if isinstance(columns, list) else len(names)
    return {
        **first.details.map_details,
        "split": first.split,
        "feature_names": list(names[:reached]),
    }


def collect_by_split(results: Iterable[Result], name: str) -> dict[int, float]:
    """Return a metric by number of the split; a split may lack it."""
    return {
        result.split: result.metrics[name]
        for result in results
        if math.isfinite(result.metrics.get(name, math.nan))
    }


def _join(texts: Iterable[str], separator: str = ", ") -> str:
    """Join different texts in alphabetical order."""
    return separator.join(sorted(set(texts)))

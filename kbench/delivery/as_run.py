"""What the MLflow run of a finished cell looks like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbench.planning.planner import PlannedCell
from kbench.records import ACCURACY, Measure, written
from kbench.records.canonical import dumps
from kbench.results.rows import TIMES, Row
from kbench.results.sources import by_split, of_cell_in_full
from kbench.tracking import CellRun, DatasetInput

BY_SPLIT = (ACCURACY.name, *TIMES, "search_time_s")
ERROR_TAIL = 4000
TAG_CHARS = 7900
"""Longer tags are cut by the store."""


def as_run(planned: PlannedCell, suite: str, machine: str, measure: Measure = ACCURACY) -> CellRun:
    """Return what the MLflow run of a finished cell should look like.

    Parameters
    ----------
    planned : PlannedCell
    suite : str
        Name of the suite.
    machine : str
        Identity of the machine that computed it.
    measure : Measure, optional
        What the suite compares.
    """
    row = of_cell_in_full(planned, machine, measure)
    # a cluster's machines; of a run of this machine its id says it all
    away = [each for each in planned.in_order if each.machine not in ("", machine)]
    tags = {
        "suite": suite,
        "version": row.version,
        "n_splits": str(row.n_splits),
        # what tests over datasets need beside the means, without a request per run
        "group": planned.dataset.group if planned.dataset else "",
        "equivalence": row.equivalence,
        "search_curves": _curves(row),
        "measure": measure.name,
        "better": measure.better,
        **{f"{name}_by_split": _numbered(each) for name, each in row.values_by_split.items()},
        "split_hash": _numbered(row.split_hash),
        "at_edge": row.at_edge,
        "notes": row.notes,
        "contention": row.contention,
        "timing": row.timing,
        "calibration_s": row.calibration_s,
        "hosts": ", ".join(sorted({f"{each.host} ({each.cpu})" for each in away})),
        "error": row.error[-ERROR_TAIL:],
    }
    return CellRun(
        key=planned.key,
        machine=machine,
        name=planned.cell.name,
        status=row.status,
        start_ms=row.start_ms,
        end_ms=row.end_ms,
        params=_params(planned, row),
        tags={name: value for name, value in tags.items() if value},
        metrics=row.measures,
        n_splits_done=row.n_splits_done,
        by_split=_by_split(planned, measure),
        dataset=_dataset_input(planned),
        artifacts=_artifacts(planned, row),
    )


def _numbered(values: Mapping[str, Any]) -> str:
    """Write values by the number of the split, in the order of the numbers."""
    return dumps({int(index): value for index, value in values.items()})


def _params(planned: PlannedCell, row: Row) -> dict[str, str]:
    cell = planned.cell
    params = {
        "dataset": cell.dataset.label,
        "feature_map": cell.feature_map.label,
        "learner": cell.learner.label,
    }
    for kind, ref in (("feature_map", cell.feature_map), ("learner", cell.learner)):
        params[f"{kind}.name"] = ref.name
        params |= {f"{kind}.{name}": written(value) for name, value in ref.params.items()}
    return params | {f"protocol.{name}": value for name, value in row.protocol.items()}


def _curves(row: Row) -> str:
    """Return the points of the search's curves, those that fit into a tag."""
    curves = dict(row.search)
    while len(text := dumps(curves)) > TAG_CHARS:
        # a grid that nobody reads; the artifact has it
        curves.pop(max(curves, key=lambda name: len(curves[name])))
    return text if curves else ""


def _by_split(planned: PlannedCell, measure: Measure) -> dict[str, dict[int, float]]:
    done = planned.done
    values = {name: by_split(done, name) for name in (measure.name, *BY_SPLIT)} if done else {}
    for result in done:
        for name, value in result.details.chosen.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values.setdefault(f"chosen.{name}", {})[result.split] = float(value)
    return values


def _dataset_input(planned: PlannedCell) -> DatasetInput | None:
    facts = planned.dataset
    if facts is None:
        return None
    return DatasetInput(
        name=planned.cell.dataset.label,
        digest=facts.checksum,
        source=facts.source,
        n_rows=facts.n_samples,
        n_features=facts.n_features,
    )


def _artifacts(planned: PlannedCell, row: Row) -> dict[str, str]:
    artifacts = {}
    if done := planned.done:
        artifacts["search.json"] = dumps({each.split: each.details.search for each in done})
    failed = next((each for each in planned.in_order if not each.is_ok), None)
    if failed:
        printed = f"\n\nPrinted last:\n{failed.printed}" if failed.printed else ""
        artifacts["error.txt"] = row.error + printed
    return artifacts

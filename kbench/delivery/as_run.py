"""What the MLflow run of a finished cell looks like."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kbench.planning.planner import PlannedCell
from kbench.records import ACCURACY, Measure, Ref
from kbench.records.canonical import dumps, to_json
from kbench.results import rows as results
from kbench.results.search_curves import search_curves
from kbench.tracking import DatasetInput, Run

TIMES = ("fit_time_s", "predict_time_s")


BY_SPLIT = ("accuracy", *TIMES, "search_time_s")


ERROR_TAIL = 4000


TAG_CHARS = 7900
"""Longer tags are cut by the store."""


def as_run(planned: PlannedCell, suite: str, machine: str, measure: Measure = ACCURACY) -> Run:
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
    cell, lines = planned.cell, [planned.lines[i] for i in sorted(planned.lines)]
    done = planned.done
    failed = next((line for line in lines if line["status"] != "ok"), None)
    error = failed["error"] if failed else (planned.problem or ("", ""))[1]
    timings = {line.get("timing", "shared") for line in done}
    doubts = {why for line in done for why in line["details"].get("contention", ())}
    cpus = {line["cpu"] for line in done if "cpu" in line}
    if len(cpus) > 1:
        doubts.add(f"its splits were timed on different CPUs: {', '.join(sorted(cpus))}")
    # a cluster's machines; of a run of this machine its id says it all
    away = [line for line in lines if line.get("machine", machine) != machine]
    tags = {
        "suite": suite,
        "version": ", ".join(sorted({line["version"] for line in lines})),
        "n_splits": str(planned.n_splits),
        # what tests over datasets need beside the means, without a request per run
        "group": str(planned.dataset.get("group", "")),
        "equivalence": planned.equivalence,
        "search_curves": _curves(planned),
        "measure": measure.name,
        "better": measure.better,
        **{
            f"{name}_by_split": dumps(_of_each_split(done, name))
            for name in (ACCURACY.name, measure.name, *TIMES)
        },
        "split_hash": dumps({line["split"]: line["details"]["split_hash"] for line in done}),
        "at_edge": ", ".join(sorted({e for line in done for e in line["details"]["at_edge"]})),
        "notes": "; ".join(sorted({n for line in done for n in line["details"]["notes"]})),
        "contention": "; ".join(sorted(doubts)),
        "timing": "" if timings <= {"shared"} else ", ".join(sorted(timings)),
        "calibration_s": ", ".join(sorted({f"{line['calibration_s']:.4g}" for line in lines})),
        "hosts": ", ".join(sorted({f"{line['host']} ({line['cpu']})" for line in away})),
        "error": error[-ERROR_TAIL:],
    }
    artifacts = {}
    if done:
        artifacts["search.json"] = dumps(
            {line["split"]: line["details"]["search"] for line in done}
        )
    if failed:
        printed = failed.get("printed", "")
        artifacts["error.txt"] = error + (f"\n\nPrinted last:\n{printed}" if printed else "")
    since = int(planned.dataset.get("since_ms", 0))
    return Run(
        key=planned.key,
        machine=machine,
        name=cell.name,
        status=planned.status,
        start_ms=min((line["started_ms"] for line in lines), default=since),
        end_ms=max((line["ended_ms"] for line in lines), default=since),
        params=_params(planned),
        tags={name: value for name, value in tags.items() if value},
        metrics=results.means(done, measure),
        n_splits_done=len(done),
        by_split=_by_split(done, measure),
        dataset=_dataset_input(planned),
        artifacts=artifacts,
    )


def _params(planned: PlannedCell) -> dict[str, str]:
    cell = planned.cell
    params = {
        "dataset": cell.dataset.label,
        "feature_map": cell.feature_map.label,
        "learner": cell.learner.label,
    }
    for kind, ref in (("feature_map", cell.feature_map), ("learner", cell.learner)):
        params[f"{kind}.name"] = ref.name
        params |= {
            f"{kind}.{name}": Ref("", {name: v}).label[1:-1].partition("=")[2]
            for name, v in ref.params.items()
        }
    for name, value in to_json(cell.protocol).items():
        params[f"protocol.{name}"] = value if isinstance(value, str) else dumps(value)
    return params


def _curves(planned: PlannedCell) -> str:
    """Return the points of the search's curves, those that fit into a tag."""
    search = {line["split"]: line["details"]["search"] for line in planned.done}
    cell = planned.cell
    run = {
        "dataset": cell.dataset.label,
        "feature_map": cell.feature_map.label,
        "learner": cell.learner.label,
        "search": search,
    }
    curves: dict[str, list[list[Any]]] = {}
    for point in search_curves([run]):
        values = [point[name] for name in results.CURVE]
        rounded = [round(v, 6) if isinstance(v, float) else v for v in values[1:]]
        curves.setdefault(point["parameter"], []).append([values[0], *rounded])
    while len(text := dumps(curves)) > TAG_CHARS:
        # a grid that nobody reads; the artifact has it
        curves.pop(max(curves, key=lambda name: len(curves[name])))
    return text if curves else ""


def _of_each_split(done: list[Mapping[str, Any]], name: str) -> dict[int, float]:
    """Return a measure by number of the split; a split may lack it."""
    return {
        line["split"]: line["measures"][name]
        for line in done
        if math.isfinite(line["measures"].get(name, math.nan))
    }


def _by_split(done: list[Mapping[str, Any]], measure: Measure) -> dict[str, dict[int, float]]:
    found = {measure.name: _of_each_split(done, measure.name)} if done else {}
    for line in done:
        numbers = {name: line["measures"][name] for name in BY_SPLIT}
        for name, value in line["details"]["chosen"].items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                numbers[f"chosen.{name}"] = value
        for name, value in numbers.items():
            found.setdefault(name, {})[line["split"]] = float(value)
    return found


def _dataset_input(planned: PlannedCell) -> DatasetInput | None:
    known = planned.dataset
    if "checksum" not in known:
        return None
    return DatasetInput(
        name=planned.cell.dataset.label,
        digest=known["checksum"],
        source=known["source"],
        n_rows=known["n_samples"],
        n_features=known["n_features"],
    )

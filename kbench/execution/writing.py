"""Lines of the journal that a run writes: results, and problems of cells."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from kbench._version import __version__
from kbench.execution.engine import Answer
from kbench.execution.sandbox import CallOutcome
from kbench.messages import of_memory
from kbench.planning.planned import PlannedCell, task_key
from kbench.records import Cost, Details, Limits, Result, Task
from kbench.storage.journal import Journal
from kbench.storage.predictions import blob_of_seed


def _error(outcome: CallOutcome, predicted: Cost | None) -> str:
    """Return the error of a task, beside the memory that was predicted if it needed too much."""
    if outcome.status != "memory" or predicted is None:
        return outcome.error
    return f"{outcome.error}; {of_memory(predicted.memory_mb.value)} were predicted"


def write_result(
    journal: Journal,
    task: Task,
    answer: Answer,
    limits: Limits,
    predicted: Cost | None,
    jobs: int | None,
    timing: Literal["shared", "exclusive"],
) -> Result:
    """Write the result of a task to the journal and return it.

    What it was made from and its predictions are kept before the line that says that they
    are there.
    """
    outcome, host, manifest = answer.outcome, answer.host, answer.manifest
    key = task_key(task.cell_key, task.split_index)
    measures, details = {}, Details()
    if outcome.status == "ok":
        value = outcome.value
        measures = {**value["measures"], "peak_memory_mb": outcome.peak_memory_mb}
        details = replace(Details.from_json(value["details"]), contention=answer.doubts)
    result = Result(
        task_key=key,
        cell_key=task.cell_key,
        split=task.split_index,
        status=outcome.status,
        measures=measures,
        details=details,
        error=_error(outcome, predicted),
        printed=outcome.printed,
        started_ms=answer.started_ms,
        ended_ms=answer.ended_ms,
        seconds=outcome.seconds,
        limits=replace(limits, n_splits=None),
        jobs=jobs,
        timing=timing,
        version=__version__,
        machine=host.machine,
        host=host.name,
        cpu=host.cpu,
        calibration_s=host.calibration_s,
        cpu_s=outcome.cpu_s,
        predicted=predicted,
        manifest="" if manifest is None else manifest.digest,
    )
    if manifest is not None:
        journal.keep_manifest(manifest)
    for number, content in enumerate(outcome.value["predictions"] if result.is_ok else ()):
        journal.save_blob(result.address, blob_of_seed(number), content)
    journal.append("result", **result.to_json())
    return result


def note_problems(journal: Journal, cells: Iterable[PlannedCell]) -> None:
    """Journal cells that cannot be computed; their runs have the time of the first line."""
    seen = {(line["cell_key"], line["reason"]): line["at_ms"] for line in journal.read("problem")}
    for cell in cells:
        problem = cell.problem
        if problem is None:
            continue
        key = (cell.key, problem.reason)
        if key not in seen:
            seen[key] = time.time_ns() // 1_000_000
            journal.append(
                "problem",
                cell_key=cell.key,
                status=problem.status,
                reason=problem.reason,
                at_ms=seen[key],
            )
        cell.problem = replace(problem, since_ms=seen[key])

"""Predicted costs of tasks beside what was measured then, and what the report says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from kbench.features import ReportData, Row, Section
from kbench.messages import counted

CLOCKS = ("task_time_s", "task_time_cpu_s")
"""Measured times of a task: wall clock, CPU."""


@dataclass(frozen=True)
class Predicted:
    """Errors of predictions of one quantity."""

    errors: tuple[float, ...]
    """Of each cell, predicted over measured minus one."""
    n_inside: int = 0
    """Cells whose measured value is within the predicted interval."""

    @property
    def median(self) -> float:
        """Median size of the errors."""
        return median(map(abs, self.errors))

    @property
    def largest(self) -> float:
        """The largest size of an error."""
        return max(map(abs, self.errors))


def memory_errors(rows: Iterable[Row]) -> Predicted:
    """Return the errors of predicted memory, of the rows that have one."""
    pairs = [
        (row.measures.get("predicted_memory_mb"), row.measures.get("peak_memory_mb"))
        for row in rows
        if row.status == "ok"
    ]
    return Predicted(tuple(found / true - 1 for found, true in pairs if found and true))


def time_errors(rows: Iterable[Row]) -> Predicted:
    """Return the errors of predicted times, of the rows that have one.

    They are times of the CPU, or, with several threads, of the wall clock.

    Examples
    --------
    >>> measures = {"predicted_time_s": 12.0, "predicted_time_low_s": 9.0,
    ...             "predicted_time_high_s": 16.0, "task_time_cpu_s": 10.0}
    >>> found = time_errors([Row("iris", "rff", "ridge", "ok", 5, 5, measures)])
    >>> round(found.median, 2), found.n_inside
    (0.2, 1)
    """
    errors, n_inside = [], 0
    for row in rows:
        clock = CLOCKS[row.protocol.get("threads", "1") == "1"]
        found, true = row.measures.get("predicted_time_s"), row.measures.get(clock)
        if row.status != "ok" or not found or not true:
            continue
        errors.append(found / true - 1)
        low, high = (row.measures.get(f"predicted_time_{end}_s", found) for end in ("low", "high"))
        n_inside += low <= true <= high
    return Predicted(tuple(errors), n_inside)


def sentences(rows: Sequence[Row]) -> list[str]:
    """Say how far predicted memory and times were from those that were measured.

    Empty where nothing was predicted.
    """
    said = []
    memory, time = memory_errors(rows), time_errors(rows)
    if memory.errors:
        said.append(f"Memory of {_errors(memory)}.")
    if time.errors:
        inside = f"{time.n_inside} of {len(time.errors)} are in their intervals"
        said.append(f"Time of {_errors(time)}; {inside}.")
    return said


def _errors(predicted: Predicted) -> str:
    n = counted(len(predicted.errors), "cell")
    text = f"{n}: median error {predicted.median:.0%}"
    return text if len(predicted.errors) == 1 else f"{text}, largest {predicted.largest:.0%}"


def sections(data: ReportData) -> list[Section]:
    """Return what the report says of predicted costs; nothing where nothing was predicted."""
    said = sentences(data.rows)
    return [Section("predicted", "predicted before the run", said, within="run")]

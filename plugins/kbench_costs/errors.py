"""Predicted costs of tasks against the measured ones, and what the report says of them."""

from collections.abc import Iterable, Sequence
from statistics import median

from kbench.features import ReportData, Row, Section
from kbench.messages import plural


def memory_errors(rows: Iterable[Row]) -> list[float]:
    """Return predicted over measured memory, minus one, of the rows that have both."""
    # the memory of a GPU, if there is one
    pairs = (
        (m.get("predicted_memory_mib"), m.get("device_memory_mib", m.get("peak_memory_mib")))
        for m in (row.metrics for row in rows if row.status == "ok")
    )
    return [predicted / true - 1 for predicted, true in pairs if predicted and true]


def time_errors(rows: Iterable[Row]) -> tuple[list[float], int]:
    """Return predicted over measured CPU times, minus one, and how many intervals have the latter.

    Examples
    --------
    >>> metrics = {"predicted_time_s": 12.0, "predicted_time_low_s": 9.0,
    ...             "predicted_time_high_s": 16.0, "task_time_cpu_s": 10.0}
    >>> (error,), n_inside = time_errors([Row("iris", "rff", "ridge", "ok", 5, 5, metrics)])
    >>> round(error, 2), n_inside
    (0.2, 1)
    """
    errors, n_inside = [], 0
    for row in rows:
        guess, true = map(row.metrics.get, ("predicted_time_s", "task_time_cpu_s"))
        if row.status != "ok" or not guess or not true:
            continue
        errors.append(guess / true - 1)
        low, high = (row.metrics.get(f"predicted_time_{end}_s", guess) for end in ("low", "high"))
        n_inside += low <= true <= high
    return errors, n_inside


def sentences(rows: Sequence[Row]) -> list[str]:
    """Say how far predicted memory and times were from those that were measured.

    Empty if no costs were predicted.
    """
    memory, (time, n_inside) = memory_errors(rows), time_errors(rows)
    lines = [f"Memory of {_summary(memory)}."] if memory else []
    if time:
        lines.append(f"Time of {_summary(time)}; {n_inside} of {len(time)} are in their intervals.")
    return lines


def _summary(errors: Sequence[float]) -> str:
    sizes = [abs(error) for error in errors]
    start = f"{plural(len(sizes), 'cell')}: median error {median(sizes):.0%}"
    return start if len(sizes) == 1 else f"{start}, largest {max(sizes):.0%}"


def sections(data: ReportData) -> list[Section]:
    """Return what the report says of predicted costs; nothing if no costs were predicted."""
    return [Section("predicted", "predicted before the run", sentences(data.rows), within="run")]

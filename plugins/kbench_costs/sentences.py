"""Sentences on predicted costs: how good the predictions were."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.features import ReportData, Row, Section
from kbench.messages import counted
from kbench_costs import errors as costs
from kbench_costs.errors import Predicted


def sentences(rows: Sequence[Row]) -> list[str]:
    """Say how far predicted memory and times were from those that were measured.

    Empty where nothing was predicted.
    """
    said = []
    memory, time = costs.memory(rows), costs.time(rows)
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

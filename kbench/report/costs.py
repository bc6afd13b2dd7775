"""Sentences on predicted costs: how good the predictions were."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.messages import counted
from kbench.results import costs
from kbench.results.costs import Predicted
from kbench.results.rows import Row


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

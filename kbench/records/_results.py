"""What is computed, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kbench.records._suite import Protocol, Ref

Status = Literal["ok", "error", "timeout", "memory", "crash", "unavailable", "skipped"]

WORST_FIRST: tuple[Status, ...] = (
    "crash",
    "memory",
    "timeout",
    "error",
    "unavailable",
    "skipped",
    "ok",
)


@dataclass(frozen=True)
class Cell:
    """One dataset, map and learner under one protocol: one MLflow run."""

    dataset: Ref
    feature_map: Ref
    learner: Ref
    protocol: Protocol

    @property
    def name(self) -> str:
        """What people read: ``map + learner on dataset``."""
        return f"{self.feature_map.label} + {self.learner.label} on {self.dataset.label}"


@dataclass(frozen=True)
class Task:
    """One split of a cell: one unit of work, one line of the journal."""

    cell: Cell
    split_index: int


@dataclass(frozen=True)
class Result:
    """What became of a task.

    Parameters
    ----------
    task : Task
        The task.
    status : str
        ok, error, timeout, memory, crash, unavailable or skipped.
    measures : mapping of str to float
        Measured numbers; empty unless ok.
    error : str, optional
        Why it is not ok: a traceback, or the limit that was hit.
    details : mapping, optional
        What else is worth keeping, as plain JSON values: the chosen
        parameters, all scores of the search, the hash of the split, warnings.
    """

    task: Task
    status: Status
    measures: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

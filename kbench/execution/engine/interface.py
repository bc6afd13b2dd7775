"""The interface of all engines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kbench.execution.engine.request import Answer
from kbench.execution.warm_parents import Preload
from kbench.records import Limits, Task


@dataclass(frozen=True)
class Terms:
    """Terms of a run: what must be equal on every host, and what holds for all tasks."""

    preload: Preload
    """Modules and functions that the warm parents of the tasks load, by their third-party plugins
    (see `warm_parents.preload_of`)."""
    components: Mapping[str, Sequence[Any]]
    """Components by kind, with their places in the suite."""
    limits: Limits = field(default_factory=Limits)
    """Wall clock and memory of a task."""
    offline: bool = False
    """Ask no server for data."""
    until: float = math.inf
    """When running tasks are cut off on this machine, by `time.monotonic`."""


class Engine(Protocol):
    """Computes tasks: on this machine, or elsewhere."""

    def prepare(self, terms: Terms) -> None:
        """Get ready for the first task; refuse hosts that would compute something else.

        ClusterError is raised where no host can be used.
        """

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yield each task with its answer, in the order in which they end.

        A task is taken only when a slot is free: an earlier answer may still drop it.
        ClusterError is raised where no host is left.
        """

    def close(self) -> None:
        """End the tasks in flight and release the hosts; may be called twice."""


@dataclass(frozen=True)
class EngineOffer:
    """An engine that a feature offers for a run."""

    place: str
    """The name of the journal that has its results: times of different places are never mixed."""
    connect: Callable[[Any], Engine]
    """``connect(run)`` returns the engine; ClusterError is raised where it cannot be used."""

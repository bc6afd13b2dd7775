"""What every engine does, whatever computes behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kbench.execution.engine.request import Answer
from kbench.records import Limits, Task


@dataclass(frozen=True)
class Terms:
    """What every host of a run must agree to, and what holds for all of its tasks.

    Parameters
    ----------
    packages, modules : sequence of str
        As `kbench.execution.engine.parts` takes them: what must be the same
        on every host.
    preload : sequence of str
        What the warm parent of the tasks imports.
    components : mapping
        What `kbench.execution.entry_points:check` takes: components by kind,
        with their places.
    limits : Limits, optional
        Wall clock and memory of a task.
    offline : bool, default False
        Ask no server for data.
    """

    packages: Sequence[str]
    modules: Sequence[str]
    preload: Sequence[str]
    components: Mapping[str, Sequence[Any]]
    limits: Limits = field(default_factory=Limits)
    offline: bool = False


class Engine(Protocol):
    """Computes tasks: on this machine, or on the workers of a Dask cluster."""

    def prepare(self, terms: Terms) -> None:
        """Get ready for the first task; refuse hosts that would compute something else.

        Raises
        ------
        ClusterError
            There is no host that can be used.
        """

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yield each task with its answer, in the order in which they end.

        Parameters
        ----------
        tasks : iterable of Task
            Taken one by one, only when a slot is free: what an answer says
            about later tasks still counts.

        Raises
        ------
        ClusterError
            No host is left.
        """

    def close(self) -> None:
        """End what is in flight and release the hosts; may be called twice."""

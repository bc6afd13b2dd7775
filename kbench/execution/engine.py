"""Engines: they compute tasks in slots of this machine, or wherever a feature has some.

::

    runner ──Task──▶ LocalEngine (threads here)    ──▶ metric ──▶ Sandbox ──▶ Answer
           └─Task──▶ an engine of a feature        ──▶ metric ──▶ Sandbox ──▶ Answer

A task travels in a `Request`; an `Answer` has its outcome and the host that computed it.
"""

import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kbench.evaluation.device import identify_gpus
from kbench.execution.request import LOCK, Answer, Assignments, Host, Request, compute
from kbench.execution.warm_parents import Preload, WarmParents
from kbench.messages import option
from kbench.planning.current_state import Present
from kbench.records import STOPPING, Limits, Task
from kbench.storage.datacache import DataCache
from kbench.storage.files import Holder, describe_holder
from kbench.storage.journal import Journal


@dataclass(frozen=True)
class Terms:
    """Terms of a run: what must be equal on every host, and what holds for all tasks."""

    preload: Preload
    """Modules and functions that the warm parents of the tasks load, by their third-party plugins
    (see `warm_parents.make_preload`)."""
    components: Mapping[str, Sequence[object]]
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
        """Get ready for the first task; reject hosts that would compute something else.

        Raises ClusterError if no host can be used.
        """

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yield each task with its answer, in the order in which they end.

        A task is taken only when a slot is free: an earlier answer may still drop it.
        Raises ClusterError if no host is left.
        """

    def close(self) -> None:
        """End the tasks in flight and release the hosts; may be called twice."""


@dataclass(frozen=True)
class EngineOffer:
    """An engine that a feature offers for a run."""

    place: str
    """The name of the journal that has its results: times of different places are never mixed."""
    connect: Callable[[Any], Engine]
    """``connect(run)`` returns the engine; raises ClusterError if it cannot be used."""


class ThisMachine:
    """Holds this machine's lock while tasks run.

    With `exclusive`, no other kbench of this user computes meanwhile. `notice` is called
    with a message that names the process that is waited for.
    """

    def __init__(self, exclusive: bool, notice: Callable[[str], None]) -> None:
        self._exclusive, self._notice = exclusive, notice
        self._lock = ExitStack()
        self._is_held = self._has_gpus = False

    def acquire(self) -> None:
        """Wait for the lock, unless it is held."""
        if not self._is_held:
            lock = Journal().lock(LOCK, self._waiting, shared=not self._exclusive)
            self._lock.enter_context(lock)
            self._is_held = True

    def acquire_gpus(self, jobs: int) -> None:
        """Wait for the GPUs of all slots, unless they are held; two runs never share one."""
        # every run waits for them in the same order: two would wait for each other otherwise
        for gpu, name in () if self._has_gpus else sorted(identify_gpus(jobs).items()):
            waiting = partial(self._tell, f"which computes on GPU {name}")
            self._lock.enter_context(Journal().lock(f"gpu-{gpu}", waiting))
        self._has_gpus = True

    def release(self) -> None:
        """Release the locks."""
        self._lock.close()
        self._is_held = self._has_gpus = False

    def _waiting(self, holder: Holder | None) -> None:
        why = (
            "which computes on this machine: exclusive timing needs the machine alone"
            if self._exclusive
            else f"which holds this machine exclusively ({option('timing', 'exclusive')})"
        )
        self._tell(why, holder)

    def _tell(self, why: str, holder: Holder | None) -> None:
        self._notice(f"waiting for {describe_holder(holder)}, {why}")


T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Computes tasks in sandboxed processes of this machine, `jobs` at a time.

    The data cache in the folder `cache` has the data of all tasks. The machine is
    acquired before the first task. ``started(task, slot)`` is called, from several
    threads, when a slot begins a task. At the end of its terms running tasks are cut off.
    """

    def __init__(
        self,
        parents: WarmParents,
        cache: Path,
        jobs: int,
        machine: ThisMachine,
        started: Callable[[Task, int], None],
    ) -> None:
        self._parents, self._jobs = parents, jobs
        self._assignments = Assignments(DataCache(cache))
        self._machine, self._started = machine, started
        self._stopped: set[str] = set()

    def prepare(self, terms: Terms) -> None:
        """Acquire the machine and calibrate it."""
        self._machine.acquire()
        self._terms, self._host, self._present = terms, Host.here(), Present()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yield each task with its answer; see `Engine.run`."""
        # all tasks of a run have one device; an interrupt ends this wait, but not that of a slot
        first = list(islice(tasks := iter(tasks), 1))
        if any(task.cell.protocol.device == "cuda" for task in first):
            self._machine.acquire_gpus(self._jobs)
        # a slot may take its next task before the last answer was yielded
        wanted = (task for task in chain(first, tasks) if task.cell_key not in self._stopped)
        yield from over_slots(wanted, self._work, self._jobs)
        self._present.save()  # the check at the end hashes the same sources

    def close(self) -> None:
        """Kill running tasks."""
        self._parents.close()

    def _work(self, task: Task, slot: int) -> Answer:
        self._started(task, slot)
        limits, rest = self._terms.limits, self._terms.until - time.monotonic()
        # one that begins later, because it is the first, has all of its time
        is_last = 0 < rest < limits.task_timeout_s
        limits = replace(limits, task_timeout_s=rest) if is_last else limits
        request = Request(task, limits, self._terms.offline, slot=slot)
        with self._parents.using(task.plugins) as sandbox:
            answer = compute(
                request, sandbox, self._assignments, self._host, self._jobs, self._present
            )
        if is_last and answer.outcome.status == "timed_out":
            return replace(answer, is_cut_off=True)
        if answer.outcome.status in STOPPING:
            self._stopped.add(task.cell_key)
        return answer


def over_slots(
    tasks: Iterable[T], work: Callable[[T, int], R], jobs: int = 1
) -> Iterator[tuple[T, R]]:
    """Yield each task with its result, in the order in which they end.

    A task is taken only when a slot is free: an earlier result may still drop it.
    ``work(task, slot)`` is called from `jobs` threads. What it raises is raised here,
    and no further task is started.

    >>> sorted(over_slots([1, 2, 3], lambda task, slot: task * task, jobs=2))
    [(1, 1), (2, 4), (3, 9)]
    """
    waiting = iter(tasks)
    taking = threading.Lock()
    stop = threading.Event()
    ended: queue.SimpleQueue[tuple[T, R] | BaseException | None] = queue.SimpleQueue()

    def slot(number: int) -> None:
        try:
            while not stop.is_set():
                with taking:
                    task = next(waiting, _NONE)
                if task is _NONE:
                    break
                ended.put((task, work(task, number)))  # type: ignore[arg-type]
        except BaseException as error:
            ended.put(error)
        finally:
            ended.put(None)

    for number in range(jobs):
        threading.Thread(target=slot, args=(number,), name=f"slot-{number}", daemon=True).start()
    running = jobs
    try:
        while running:
            if (item := ended.get()) is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        stop.set()


_NONE = object()

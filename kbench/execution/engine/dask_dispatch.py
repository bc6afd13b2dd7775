"""Tasks over the workers of an existing Dask cluster.

Each thread of a worker is a slot, and the client decides which slot gets which
task: only so is it known who was computing when a worker died, and a task is
tried elsewhere once and not as often as the scheduler likes.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kbench.errors import ClusterError
from kbench.execution.engine import dask_worker
from kbench.execution.engine.dask_pool import ANSWER_S, Terms, Worker, Workers
from kbench.execution.engine.request import Answer, Host, Request, now_ms
from kbench.execution.sandbox import Outcome

T = TypeVar("T")

TRIES = 2
"""Workers that a task may lose before its answer is a crash."""


@dataclass(eq=False)
class _Try(Generic[T]):
    """A task on its way to an answer."""

    task: T
    request: Request
    lost: list[str] = field(default_factory=list)  # how its workers ended
    worker: Worker | None = None
    host: Host | None = None
    slot: int = -1
    future: Any = None
    sent_ms: int = 0


class Cluster:
    """The workers of a Dask cluster as slots.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``"tcp://host:8786"``.
    jobs : int, optional
        Tasks in flight at most; by default as many as the workers have threads,
        those that join later included.
    notice : callable, optional
        Is told, as text, what the user should know.

    Raises
    ------
    ClusterError
        Dask is not installed, or the scheduler does not answer.
    """

    def __init__(
        self,
        address: str,
        jobs: int | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> None:
        self._jobs = float("inf") if jobs is None else jobs
        self._notice = notice or (lambda text: None)
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers = Workers(address, self._events, self._notice)
        self._flying: dict[str, _Try[Any]] = {}
        self._lacking: dict[tuple[str, str], Answer] = {}  # by machine and checksum
        self._source: Iterator[Any] = iter(())
        self._exhausted = False

    def admit(self, terms: Terms) -> list[Host]:
        """Compare the workers with this process and warm them up; those that join later too.

        Parameters
        ----------
        terms : Terms
            What they must agree to.

        Returns
        -------
        list of Host
            The hosts of the workers that are ready, one per worker.

        Raises
        ------
        ClusterError
            There is no worker, or one of them would not compute the same.
        """
        return self._workers.admit(terms)

    def run(
        self,
        tasks: Iterable[T],
        request: Callable[[T], Request],
        started: Callable[[T, int], None],
    ) -> Iterator[tuple[T, Answer]]:
        """Yield each task with its answer, in the order in which they end.

        A task whose worker dies is tried on another once; then its answer is a
        crash. One whose host cannot get the data is tried on other hosts.

        Parameters
        ----------
        tasks : iterable
            Taken one by one, only when a slot is free.
        request : callable
            ``request(task)`` is what travels.
        started : callable
            ``started(task, slot)`` is called when a task is sent to a slot.

        Raises
        ------
        ClusterError
            The scheduler is gone, or no worker is of use.
        """
        self._source, self._exhausted = iter(tasks), False
        waiting: deque[_Try[T]] = deque()
        try:
            while True:
                yield from self._hopeless(waiting)
                if (one := self._next(waiting, request)) is not None:
                    if one.worker is not None:
                        started(one.task, one.slot)
                elif waiting or self._flying or not self._exhausted:
                    yield from self._heed(self._events.get(), waiting)
                else:
                    return
        finally:
            self._cancel()

    def close(self) -> None:
        """Cancel what is in flight and let go of the workers."""
        self._cancel()
        self._workers.close()

    # -- from a task to a slot

    def _next(self, waiting: deque[_Try[T]], request: Callable[[T], Request]) -> _Try[T] | None:
        """Send a task that waits, or take a new one; None where there is none or no slot."""
        free = [each for each in self._workers.ready() if each.n_flying < each.n_threads]
        if not free or len(self._flying) >= self._jobs:
            return None
        one = next((each for each in waiting if self._suited(each, free)), None)
        if one is not None:
            waiting.remove(one)
        # those that wait for a host which has their data must not become ever more
        elif self._exhausted or len(waiting) > self._n_slots():
            return None
        else:
            task = next(self._source, _NONE)
            if task is _NONE:
                self._exhausted = True
                return None
            one = _Try(task, request(task))  # type: ignore[arg-type]
        if suited := self._suited(one, free):
            self._send(one, min(suited, key=lambda each: each.n_flying / each.n_threads))
        else:
            waiting.append(one)
        return one

    def _send(self, one: _Try[T], worker: Worker) -> None:
        taken = {each.slot for each in self._flying.values()}
        one.slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        one.worker, one.host, one.sent_ms = worker, worker.host, now_ms()
        slots = self._n_slots(worker.host)
        one.future = self._workers.submit(
            dask_worker.answer, worker, self._workers.run, one.request, slots
        )
        worker.n_flying += 1
        self._flying[one.future.key] = one
        one.future.add_done_callback(lambda future: self._events.put(future.key))

    def _suited(self, one: _Try[T], workers: Iterable[Worker]) -> list[Worker]:
        """Return the workers whose hosts have not failed to get the data of a task."""
        return [
            each
            for each in workers
            if each.host and (each.host.machine, one.request.checksum) not in self._lacking
        ]

    def _n_slots(self, host: Host | None = None) -> int:
        """Count the slots that may be in use, of all workers or those of one machine."""
        ready = self._workers.ready()
        if host is not None:
            ready = [each for each in ready if each.host and each.host.machine == host.machine]
        return int(min(sum(each.n_threads for each in ready), self._jobs))

    # -- from a slot to an answer

    def _heed(self, event: Any, waiting: deque[_Try[T]]) -> Iterator[tuple[T, Answer]]:
        """Do what an event asks for: an end, a worker that is gone, the loss of all."""
        if isinstance(event, ClusterError):
            raise event
        if isinstance(event, Worker):
            ended = [each for each in self._flying.values() if each.worker is event]
            left = len(self._workers.ready())
            self._notice(
                f"the Dask worker {event.address} is gone, {len(ended)} tasks with it; "
                + (f"{left} are left" if left else "waiting for another")
            )
            for each in ended:
                yield from self._lose(each, waiting, "died while the task ran")
        elif event is not None and event in self._flying:
            yield from self._take(self._flying[event], waiting)

    def _take(self, one: _Try[T], waiting: deque[_Try[T]]) -> Iterator[tuple[T, Answer]]:
        """Take the answer of a task whose future is done."""
        try:
            answer: Answer = one.future.result(timeout=ANSWER_S)
        except Exception as error:
            kind = type(error).__name__
            if kind in ("CancelledError", "FutureCancelledError"):
                # by a scheduler that has forgotten it: nobody's fault, so that it is no try
                self._land(one)
                waiting.appendleft(one)
                self._workers.wait_for_word()
            elif kind in ("KilledWorker", "TimeoutError"):
                yield from self._lose(one, waiting, "died while the task ran")
            else:
                worker = one.worker
                assert worker is not None
                if kind == "ReleasedError":
                    self._workers.forget(worker)
                else:
                    yield from self._lose(one, waiting, f"failed: {kind}: {error}")
                    self._workers.dismiss(worker, f"{kind}: {error}")
                self._call_back(worker, waiting)
            return
        self._land(one)
        if answer.lacks_data:
            self._lacking[answer.host.machine, one.request.checksum] = answer
            waiting.append(one)
        else:
            yield one.task, answer

    def _lose(self, one: _Try[T], waiting: deque[_Try[T]], said: str) -> Iterator[tuple[T, Answer]]:
        """Take back a task that its worker did not end; yields it if that was once too often."""
        assert one.worker is not None
        assert one.host is not None
        one.lost.append(f"the Dask worker {one.worker.address} on {one.host.name} {said}")
        self._land(one)
        if len(one.lost) < TRIES:
            waiting.appendleft(one)
            return
        outcome = Outcome("crash", error=", and then ".join(one.lost))
        yield one.task, Answer(outcome, one.host, one.sent_ms, now_ms())

    def _call_back(self, worker: Worker, waiting: deque[_Try[T]]) -> None:
        """Take back what a worker has that is not used any longer; it is no try."""
        there = [each for each in self._flying.values() if each.worker is worker]
        self._workers.cancel([each.future for each in there])
        for each in there:
            self._land(each)
            waiting.appendleft(each)

    def _land(self, one: _Try[T]) -> None:
        """Take a task back from its slot."""
        assert one.worker is not None
        del self._flying[one.future.key]
        one.worker.n_flying -= 1
        one.worker = one.future = None  # a future that nobody holds is let go of

    def _hopeless(self, waiting: deque[_Try[T]]) -> Iterator[tuple[T, Answer]]:
        """Yield the tasks whose data no host can get."""
        ready = self._workers.ready()
        for one in list(waiting) if ready else ():
            if not self._suited(one, ready):
                host = ready[-1].host
                assert host is not None
                waiting.remove(one)
                yield one.task, self._lacking[host.machine, one.request.checksum]

    def _cancel(self) -> None:
        futures = [each.future for each in self._flying.values()]
        self._flying.clear()
        self._workers.cancel(futures)


_NONE = object()

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
from typing import Any

from kbench.errors import ClusterError
from kbench.execution.engine import dask_worker
from kbench.execution.engine.dask_pool import ANSWER_S, Worker, Workers
from kbench.execution.engine.interface import Terms
from kbench.execution.engine.request import Answer, Host, Request, now_ms, request_of
from kbench.execution.sandbox import Outcome
from kbench.records import Task

TRIES = 2
"""Workers that a task may lose before its answer is a crash."""


@dataclass(eq=False)
class _Attempt:
    """A task on its way to an answer."""

    task: Task
    request: Request
    lost: list[str] = field(default_factory=list)  # how its workers ended
    worker: Worker | None = None
    host: Host | None = None
    slot: int = -1
    future: Any = None
    sent_ms: int = 0


class DaskEngine:
    """Computes tasks on the workers of a Dask cluster.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``"tcp://host:8786"``.
    jobs : int or None
        Tasks in flight at most; None for as many as the workers have threads,
        those that join later included.
    notice : callable
        Is told, as text, what the user should know.
    started : callable
        ``started(task, slot)`` is called when a task is sent to a slot.

    Raises
    ------
    ClusterError
        Dask is not installed, or the scheduler does not answer.
    """

    def __init__(
        self,
        address: str,
        jobs: int | None,
        notice: Callable[[str], None],
        started: Callable[[Task, int], None],
    ) -> None:
        self._jobs = float("inf") if jobs is None else jobs
        self._notice, self._started = notice, started
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._workers = Workers(address, self._events, notice)
        self._in_flight: dict[str, _Attempt] = {}
        self._lacking: dict[tuple[str, str], Answer] = {}  # by machine and checksum
        self._source: Iterator[Task] = iter(())
        self._exhausted = False

    def prepare(self, terms: Terms) -> None:
        """Compare the workers with this process and warm them up; those that join later too.

        Raises
        ------
        ClusterError
            There is no worker, or one of them would not compute the same.
        """
        self._terms = terms
        self._workers.admit(terms)

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yield each task with its answer; see `Engine.run`.

        A task whose worker dies is tried on another once; then its answer is a
        crash. One whose host cannot get the data is tried on other hosts.
        """
        self._source, self._exhausted = iter(tasks), False
        waiting: deque[_Attempt] = deque()
        try:
            while True:
                yield from self._without_data(waiting)
                if (attempt := self._next(waiting)) is not None:
                    if attempt.worker is not None:
                        self._started(attempt.task, attempt.slot)
                elif waiting or self._in_flight or not self._exhausted:
                    yield from self._handle(self._events.get(), waiting)
                else:
                    return
        finally:
            self._cancel()

    def close(self) -> None:
        """Cancel what is in flight and release the workers."""
        self._cancel()
        self._workers.close()

    # -- from a task to a slot

    def _next(self, waiting: deque[_Attempt]) -> _Attempt | None:
        """Send a task that waits, or take a new one; None where there is none or no slot."""
        free = [each for each in self._workers.ready() if each.n_flying < each.n_threads]
        if not free or len(self._in_flight) >= self._jobs:
            return None
        one = next((each for each in waiting if self._suited(each, free)), None)
        if one is not None:
            waiting.remove(one)
        # those that wait for a host which has their data must not become ever more
        elif self._exhausted or len(waiting) > self._n_slots():
            return None
        else:
            task = next(self._source, None)
            if task is None:
                self._exhausted = True
                return None
            request = request_of(task, self._terms.limits, self._terms.offline)
            one = _Attempt(task, request)
        if suited := self._suited(one, free):
            self._send(one, min(suited, key=lambda each: each.n_flying / each.n_threads))
        else:
            waiting.append(one)
        return one

    def _send(self, one: _Attempt, worker: Worker) -> None:
        taken = {each.slot for each in self._in_flight.values()}
        one.slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        one.worker, one.host, one.sent_ms = worker, worker.host, now_ms()
        slots = self._n_slots(worker.host)
        one.future = self._workers.submit(
            dask_worker.answer, worker, self._workers.run, one.request, slots
        )
        worker.n_flying += 1
        self._in_flight[one.future.key] = one
        one.future.add_done_callback(lambda future: self._events.put(future.key))

    def _suited(self, one: _Attempt, workers: Iterable[Worker]) -> list[Worker]:
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

    def _handle(self, event: Any, waiting: deque[_Attempt]) -> Iterator[tuple[Task, Answer]]:
        """Do what an event asks for: an end, a worker that is gone, the loss of all."""
        if isinstance(event, ClusterError):
            raise event
        if isinstance(event, Worker):
            ended = [each for each in self._in_flight.values() if each.worker is event]
            left = len(self._workers.ready())
            self._notice(
                f"the Dask worker {event.address} is gone, {len(ended)} tasks with it; "
                + (f"{left} are left" if left else "waiting for another")
            )
            for each in ended:
                yield from self._lose(each, waiting, "died while the task ran")
        elif event is not None and event in self._in_flight:
            yield from self._take(self._in_flight[event], waiting)

    def _take(self, one: _Attempt, waiting: deque[_Attempt]) -> Iterator[tuple[Task, Answer]]:
        """Take the answer of a task whose future is done."""
        try:
            answer: Answer = one.future.result(timeout=ANSWER_S)
        except Exception as error:
            kind = type(error).__name__
            if kind in ("CancelledError", "FutureCancelledError"):
                # by a scheduler that has forgotten it: nobody's fault, so that it is no try
                self._take_back(one)
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
        self._take_back(one)
        if answer.lacks_data:
            self._lacking[answer.host.machine, one.request.checksum] = answer
            waiting.append(one)
        else:
            yield one.task, answer

    def _lose(
        self, one: _Attempt, waiting: deque[_Attempt], said: str
    ) -> Iterator[tuple[Task, Answer]]:
        """Take back a task that its worker did not end; yields it if that was once too often."""
        assert one.worker is not None
        assert one.host is not None
        one.lost.append(f"the Dask worker {one.worker.address} on {one.host.name} {said}")
        self._take_back(one)
        if len(one.lost) < TRIES:
            waiting.appendleft(one)
            return
        outcome = Outcome("crash", error=", and then ".join(one.lost))
        yield one.task, Answer(outcome, one.host, one.sent_ms, now_ms())

    def _call_back(self, worker: Worker, waiting: deque[_Attempt]) -> None:
        """Take back what a worker has that is not used any longer; it is no try."""
        there = [each for each in self._in_flight.values() if each.worker is worker]
        self._workers.cancel([each.future for each in there])
        for each in there:
            self._take_back(each)
            waiting.appendleft(each)

    def _take_back(self, one: _Attempt) -> None:
        """Take a task back from its slot."""
        assert one.worker is not None
        del self._in_flight[one.future.key]
        one.worker.n_flying -= 1
        one.worker = one.future = None  # a future that nobody holds is let go of

    def _without_data(self, waiting: deque[_Attempt]) -> Iterator[tuple[Task, Answer]]:
        """Yield the tasks whose data no host can get."""
        ready = self._workers.ready()
        for one in list(waiting) if ready else ():
            if not self._suited(one, ready):
                host = ready[-1].host
                assert host is not None
                waiting.remove(one)
                yield one.task, self._lacking[host.machine, one.request.checksum]

    def _cancel(self) -> None:
        futures = [each.future for each in self._in_flight.values()]
        self._in_flight.clear()
        self._workers.cancel(futures)

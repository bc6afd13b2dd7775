"""The Dask engine: tasks over the workers of an existing cluster.

Each thread of a worker is a slot, and the client assigns tasks to slots: it records
which tasks a dead worker had, and tries them once on another worker, not as often
as the scheduler would.
"""

import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kbench.errors import ClusterError
from kbench.features import Answer, CallOutcome, Host, Request, Task, Terms, now_ms
from kbench_dask import worker as dask_worker
from kbench_dask.pool import ANSWER_S, Worker, Workers

ATTEMPTS = 2
"""Attempts at a task whose workers die; then its answer is a crash."""


@dataclass(eq=False)
class _Attempt:
    """A task that has no answer yet."""

    task: Task
    lost: list[str] = field(default_factory=list)  # the ends of its workers
    worker: Worker | None = None
    host: Host | None = None
    slot: int = -1
    future: Any = None
    sent_ms: int = 0


class DaskEngine:
    """Computes tasks on the workers of a Dask cluster.

    The scheduler has an `address` such as ``"tcp://host:8786"``; a ClusterError is raised if
    it does not answer or Dask is not installed. At most `jobs` tasks are in flight; with None as
    many as the workers have threads, including workers that join later. `notice` is called
    with each message for the user, ``started(task, slot)`` when a task is sent to a slot.
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
        """Compare the workers with this process and warm them up; see `Workers.prepare`."""
        self._terms = terms
        self._workers.prepare(terms)

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Answer]]:
        """Yield each task with its answer; see `Engine.run`.

        A task whose worker dies is tried once on another; then its answer is a
        crash. A task whose host cannot get the data is tried on other hosts.
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
        """Cancel the tasks in flight and release the workers."""
        self._cancel()
        self._workers.close()

    # -- from a task to a slot

    def _next(self, waiting: deque[_Attempt]) -> _Attempt | None:
        """Send a waiting or a new task; None where there is none or no free slot."""
        free = [w for w in self._workers.ready() if w.n_in_flight < w.n_threads]
        if not free or len(self._in_flight) >= self._jobs:
            return None
        if (attempt := next((a for a in waiting if self._find_workers(a, free)), None)) is not None:
            waiting.remove(attempt)
        # the number of tasks that wait for a host with their data is bounded
        elif self._exhausted or len(waiting) > self._n_slots():
            return None
        else:
            if (task := next(self._source, None)) is None:
                self._exhausted = True
                return None
            attempt = _Attempt(task)
        if suited := self._find_workers(attempt, free):
            self._send(attempt, min(suited, key=lambda w: w.n_in_flight / w.n_threads))
        else:
            waiting.append(attempt)
        return attempt

    def _send(self, attempt: _Attempt, worker: Worker) -> None:
        taken = {other.slot for other in self._in_flight.values()}
        attempt.slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        attempt.worker, attempt.host, attempt.sent_ms = worker, worker.host, now_ms()
        slots = self._n_slots(worker.host)
        request = Request(attempt.task, self._terms.limits, self._terms.offline)
        attempt.future = self._workers.submit(
            dask_worker.answer, worker, self._workers.run, request, slots
        )
        worker.n_in_flight += 1
        self._in_flight[attempt.future.key] = attempt
        attempt.future.add_done_callback(lambda future: self._events.put(future.key))

    def _find_workers(self, attempt: _Attempt, workers: Iterable[Worker]) -> list[Worker]:
        """Return the workers whose hosts have not failed to get the data of a task."""
        checksum = attempt.task.checksum
        return [w for w in workers if w.host and (w.host.machine, checksum) not in self._lacking]

    def _n_slots(self, host: Host | None = None) -> int:
        """Count the slots that may be in use, of all workers or those of one machine."""
        ready = self._workers.ready()
        if host is not None:
            ready = [w for w in ready if w.host and w.host.machine == host.machine]
        return int(min(sum(worker.n_threads for worker in ready), self._jobs))

    # -- from a slot to an answer

    def _handle(self, event: object, waiting: deque[_Attempt]) -> Iterator[tuple[Task, Answer]]:
        """Handle an event: the end of a task, of a worker, or of the connection."""
        if isinstance(event, ClusterError):
            raise event
        if isinstance(event, Worker):
            lost = self._list_attempts(event)
            n_left = len(self._workers.ready())
            self._notice(
                f"lost the Dask worker {event.address} with {len(lost)} tasks; "
                + (f"{n_left} are left" if n_left else "waiting for another worker")
            )
            for attempt in lost:
                yield from self._retry(attempt, waiting, "died while the task ran")
        elif event is not None and event in self._in_flight:
            yield from self._collect(self._in_flight[event], waiting)

    def _list_attempts(self, worker: Worker) -> list[_Attempt]:
        return [attempt for attempt in self._in_flight.values() if attempt.worker is worker]

    def _collect(
        self, attempt: _Attempt, waiting: deque[_Attempt]
    ) -> Iterator[tuple[Task, Answer]]:
        """Collect the answer of a task whose future is done."""
        try:
            answer: Answer = attempt.future.result(timeout=ANSWER_S)
        except Exception as error:
            worker, kind = attempt.worker, type(error).__name__
            assert worker is not None
            if kind in ("CancelledError", "FutureCancelledError"):
                # by a scheduler that has lost its state: this does not count as an attempt
                self._free_slot(attempt)
                waiting.appendleft(attempt)
                self._workers.wait_for_scheduler()
            elif kind == "TimeoutError":
                yield from self._retry(attempt, waiting, "died while the task ran")
            elif kind == "KilledWorker":
                # the scheduler knew it before the poll; otherwise the poll's event follows
                if self._workers.rejoin(worker):
                    yield from self._handle(worker, waiting)
            else:
                if kind == "ReleasedError":
                    self._workers.rejoin(worker)
                else:
                    yield from self._retry(attempt, waiting, f"failed: {kind}: {error}")
                    self._workers.dismiss(worker, f"{kind}: {error}")
                self._requeue(worker, waiting)
            return
        self._free_slot(attempt)
        if answer.lacks_data:
            self._lacking[answer.host.machine, attempt.task.checksum] = answer
            waiting.append(attempt)
        else:
            yield attempt.task, answer

    def _retry(
        self, attempt: _Attempt, waiting: deque[_Attempt], end: str
    ) -> Iterator[tuple[Task, Answer]]:
        """Requeue a task that its worker did not finish; yield a crash after the last attempt."""
        assert attempt.worker is not None
        assert attempt.host is not None
        attempt.lost.append(
            f"the Dask worker {attempt.worker.address} on {attempt.host.name} {end}"
        )
        self._free_slot(attempt)
        if len(attempt.lost) < ATTEMPTS:
            waiting.appendleft(attempt)
            return
        outcome = CallOutcome("crashed", error=", and then ".join(attempt.lost))
        yield attempt.task, Answer(outcome, attempt.host, attempt.sent_ms, now_ms())

    def _requeue(self, worker: Worker, waiting: deque[_Attempt]) -> None:
        """Requeue the tasks of a worker that is no longer used.

        They do not count as attempts.
        """
        attempts = self._list_attempts(worker)
        self._workers.cancel([attempt.future for attempt in attempts])
        for attempt in attempts:
            self._free_slot(attempt)
            waiting.appendleft(attempt)

    def _free_slot(self, attempt: _Attempt) -> None:
        assert attempt.worker is not None
        del self._in_flight[attempt.future.key]
        attempt.worker.n_in_flight -= 1
        attempt.worker = attempt.future = None  # Dask releases a future without references

    def _without_data(self, waiting: deque[_Attempt]) -> Iterator[tuple[Task, Answer]]:
        """Yield the tasks whose data no host can get."""
        ready = self._workers.ready()
        for attempt in list(waiting) if ready else ():
            if not self._find_workers(attempt, ready):
                host = ready[-1].host
                assert host is not None
                waiting.remove(attempt)
                yield attempt.task, self._lacking[host.machine, attempt.task.checksum]

    def _cancel(self) -> None:
        futures = [attempt.future for attempt in self._in_flight.values()]
        self._in_flight.clear()
        self._workers.cancel(futures)

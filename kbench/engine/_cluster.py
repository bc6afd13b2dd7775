"""Tasks over the workers of an existing Dask cluster. Nothing else imports Dask.

Each thread of a worker is a slot, and the client decides which slot gets which
task: only so is it known who was computing when a worker died, and a task is
tried elsewhere once and not as often as the scheduler likes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kbench.engine import _worker
from kbench.engine._code import differences, parts
from kbench.engine._measure import Answer, Host, Request, now_ms
from kbench.errors import ClusterError
from kbench.sandbox import Outcome

T = TypeVar("T")

CONNECT_S = 5.0
"""Seconds in which the scheduler must answer."""

WORKERS_S = 30.0
"""Seconds in which a first worker must be there."""

READY_S = 180.0
"""Seconds in which the workers that are there must be ready for the first task."""

LOOK_S = 0.5
"""Seconds between two looks at the workers."""

SILENT_S = 30.0
"""Seconds without a word from the scheduler after which it is given up."""

_GATHER_S = 60.0
_TRIES = 2


@dataclass
class _Member:
    """A worker process in the service of this run."""

    address: str
    n_threads: int
    asked: Any = None  # future of what was asked last
    lease: Any = None  # future of `prepare`: while we hold it, the worker keeps its warm parent
    host: Host | None = None
    refused: tuple[str, ...] = ()
    n_flying: int = 0


@dataclass(eq=False)
class _Try(Generic[T]):
    """A task on its way to an answer."""

    task: T
    request: Request
    lost: list[str] = field(default_factory=list)  # how its workers ended
    member: _Member | None = None
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
        Is told, in one line of text, what the user should know.

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
        self.address = address
        self._jobs = jobs
        self._notice = notice or (lambda text: None)
        self._run = uuid.uuid4().hex
        self._client = _connect(address)
        self._members: dict[str, _Member] = {}
        self._lock = threading.Lock()
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._flying: dict[str, _Try[Any]] = {}
        self._lacking: dict[tuple[str, str], Answer] = {}  # by machine and checksum
        self._source: Iterator[Any] = iter(())
        self._exhausted = False
        self._admitted = False
        self._ended = threading.Event()
        self._heard = time.monotonic()
        self._here: dict[str, str] = {}
        self._own: Sequence[str] = ()
        self._modules: Sequence[str] = ()
        self._preload: Sequence[str] = ()
        self._components: Mapping[str, Sequence[Any]] = {}

    # -- the workers

    def admit(
        self,
        own: Sequence[str],
        modules: Sequence[str],
        preload: Sequence[str],
        components: Mapping[str, Sequence[Any]],
    ) -> list[Host]:
        """Compare the workers with this process and warm them up; those that join later too.

        Parameters
        ----------
        own, modules : sequence of str
            As `kbench.engine.parts` takes them: what must be the same there.
        preload : sequence of str
            What the warm parent of the tasks imports.
        components : mapping
            What `kbench.task:check` takes: components by kind, with their places.

        Returns
        -------
        list of Host
            The hosts of the workers that are ready, one per worker.

        Raises
        ------
        ClusterError
            There is no worker, or one of them would not compute the same.
        """
        self._own, self._modules = own, modules
        self._preload, self._components = preload, components
        self._here = parts(own, modules)
        start = time.monotonic()
        while True:
            self._look()
            waited = time.monotonic() - start
            refused = [each for each in self._members.values() if each.refused]
            ready = [each.host for each in self._members.values() if each.host is not None]
            waiting = len(self._members) - len(refused) - len(ready)
            if refused and (not waiting or waited > READY_S):
                raise ClusterError(_refusal(refused))
            if not self._members and waited > WORKERS_S:
                raise ClusterError(
                    f"the scheduler {self.address} has no workers; start some with "
                    f"`dask worker {self.address}`"
                )
            if ready and (not waiting or waited > READY_S):
                break
            if waited > READY_S:
                raise ClusterError(
                    f"no worker of {self.address} was ready within {READY_S:g} s; "
                    "are they busy with other work?"
                )
            time.sleep(0.05)
        self._admitted = True
        threading.Thread(target=self._keep_looking, name="dask-workers", daemon=True).start()
        return ready

    def _keep_looking(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self._look()
            except Exception as error:
                if time.monotonic() - self._heard > SILENT_S or self._client.status == "closed":
                    self._events.put(ClusterError(_gone(self.address, error)))
                    return

    def _look(self) -> None:
        """Ask which workers there are; welcome the new, drop the dead."""
        threads = self._client.nthreads()
        self._heard = time.monotonic()
        for address in [each for each in self._members if each not in threads]:
            with self._lock:
                member = self._members.pop(address)
            if member.host is not None:
                self._events.put(member)
        for address, n_threads in threads.items():
            if address not in self._members:
                member = _Member(address, n_threads)
                member.asked = self._submit(_worker.describe, address, self._own, self._modules)
                with self._lock:
                    self._members[address] = member
        for member in list(self._members.values()):
            if member.asked is not None and member.asked.done():
                self._hear(member)

    def _hear(self, member: _Member) -> None:
        """Take the answer of a worker to what it was asked."""
        asked, member.asked = member.asked, None
        try:
            said = asked.result(timeout=_GATHER_S)
        except Exception as error:
            if member.address not in self._client.nthreads():
                return  # it died meanwhile: the next look misses it
            member.refused = (f"kbench cannot be asked there: {type(error).__name__}: {error}",)
        else:
            if isinstance(said, _worker.Prepared):
                member.lease, member.refused = asked, said.problems
                if not said.problems:
                    member.host = said.host
                    self._events.put(None)
            elif found := differences(self._here, said):
                member.refused = tuple(found)
            else:
                member.asked = self._submit(
                    _worker.prepare, member.address, self._run, self._preload, self._components
                )
        if member.refused and self._admitted:
            self._notice(f"a worker that joined is not used; {_refusal([member])}")

    def _submit(self, function: Callable[..., Any], address: str, *arguments: Any) -> Any:
        return self._client.submit(
            function,
            *arguments,
            key=f"kbench-{function.__name__}-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )

    # -- the tasks

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
            The scheduler is gone.
        """
        self._source = iter(tasks)
        waiting: deque[_Try[T]] = deque()
        try:
            while True:
                yield from self._hopeless(waiting)
                if (one := self._next(waiting, request)) is not None:
                    if one.member is not None:
                        started(one.task, one.slot)
                elif waiting or self._flying or not self._exhausted:
                    yield from self._heed(self._events.get(), waiting)
                else:
                    return
        finally:
            self._cancel()

    def _next(self, waiting: deque[_Try[T]], request: Callable[[T], Request]) -> _Try[T] | None:
        """Send a task that waits, or take a new one; None where there is none or no slot."""
        free = self._free()
        if not free or len(self._flying) >= self._limit():
            return None
        one = next((each for each in waiting if self._fits(each, free)), None)
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
        if self._fits(one, free):
            self._send(one, free)
        else:
            waiting.append(one)
        return one

    def _hopeless(self, waiting: deque[_Try[T]]) -> Iterator[tuple[T, Answer]]:
        """Yield the tasks whose data no host can get."""
        hosts = [each.host for each in self._ready() if each.host]
        for one in list(waiting):
            failed = [self._lacking.get((each.machine, one.request.checksum)) for each in hosts]
            if failed and None not in failed:
                waiting.remove(one)
                yield one.task, failed[-1]  # type: ignore[misc]

    def _heed(self, event: Any, waiting: deque[_Try[T]]) -> Iterator[tuple[T, Answer]]:
        """Do what an event asks for: an end, a worker that is gone, the loss of all."""
        if isinstance(event, ClusterError):
            raise event
        if isinstance(event, _Member):
            ended = [t for t in self._flying.values() if t.member is event]
            left = sum(each.host is not None for each in list(self._members.values()))
            self._notice(
                f"the Dask worker {event.address} is gone, {len(ended)} tasks with it; "
                + (f"{left} workers are left" if left else "waiting for another worker")
            )
            for each in ended:
                yield from self._lose(each, waiting, "died while the task ran")
        elif event is not None and (one := self._flying.get(event)) is not None:
            try:
                answer: Answer = one.future.result(timeout=_GATHER_S)
            except Exception as error:
                if type(error).__name__ in (
                    "KilledWorker",
                    "CancelledError",
                    "FutureCancelledError",
                ):
                    said = "died while the task ran"
                else:
                    said = f"failed ({type(error).__name__}: {error})"
                yield from self._lose(one, waiting, said)
                return
            self._land(one)
            if answer.lacks_data:
                self._lacking[answer.host.machine, one.request.checksum] = answer
                waiting.append(one)
            else:
                yield one.task, answer

    def _lose(self, one: _Try[T], waiting: deque[_Try[T]], said: str) -> Iterator[tuple[T, Answer]]:
        """Take back a task that its worker did not end; yields it if that was once too often."""
        member = self._land(one)
        assert member.host is not None
        one.lost.append(f"the Dask worker {member.address} on {member.host.name} {said}")
        if len(one.lost) < _TRIES:
            waiting.appendleft(one)
            return
        outcome = Outcome("crash", error=", and then ".join(one.lost))
        yield one.task, Answer(outcome, member.host, one.sent_ms, now_ms())

    def _send(self, one: _Try[T], free: list[_Member]) -> None:
        """Send a task to the least busy of the free workers."""
        suited = [each for each in free if self._is_suited(one.request, each)]
        member = min(suited, key=lambda each: each.n_flying / each.n_threads)
        taken = {each.slot for each in self._flying.values()}
        one.slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
        one.member, one.sent_ms = member, now_ms()
        assert member.host is not None
        slots = self._n_slots(member.host.machine)
        one.future = self._submit(_worker.answer, member.address, self._run, one.request, slots)
        member.n_flying += 1
        self._flying[one.future.key] = one
        one.future.add_done_callback(lambda future: self._events.put(future.key))

    def _land(self, one: _Try[T]) -> _Member:
        """Take a task back from its slot."""
        member = one.member
        assert member is not None
        del self._flying[one.future.key]
        member.n_flying -= 1
        one.member = one.future = None  # a future that nobody holds is let go of
        return member

    def _cancel(self) -> None:
        futures = [each.future for each in self._flying.values()]
        self._flying.clear()
        if futures:
            with contextlib.suppress(Exception):
                self._client.cancel(futures)

    def _limit(self) -> float:
        return float("inf") if self._jobs is None else self._jobs

    def _ready(self) -> list[_Member]:
        with self._lock:
            return [each for each in self._members.values() if each.host is not None]

    def _free(self) -> list[_Member]:
        return [each for each in self._ready() if each.n_flying < each.n_threads]

    def _n_slots(self, machine: str | None = None) -> int:
        """Count the slots that may be in use, of all workers or those of one machine."""
        found = sum(
            each.n_threads
            for each in self._ready()
            if machine is None or (each.host and each.host.machine == machine)
        )
        return int(min(found, self._limit()))

    def _is_suited(self, request: Request, member: _Member) -> bool:
        assert member.host is not None
        return (member.host.machine, request.checksum) not in self._lacking

    def _fits(self, one: _Try[T], free: list[_Member]) -> bool:
        return any(self._is_suited(one.request, each) for each in free)

    def close(self) -> None:
        """Cancel what is in flight and let go of the workers."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._cancel()
        with self._lock:
            self._members.clear()  # the leases end with it
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)


_NONE = object()


def _connect(address: str) -> Any:
    try:
        from distributed import Client, Security
        from distributed.comm import connect
    except ImportError:
        raise ClusterError(
            "--scheduler needs Dask: pip install 'kbench-core[dask]', here and on the workers"
        ) from None

    # what it logs about a connection that is lost is said in one line by us
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    async def knock() -> None:
        own = Security().get_connection_args("client")
        comm = await connect(address, timeout=CONNECT_S, **own)
        await comm.close()

    try:
        # a client that finds nobody would say so again, at length, when it is collected
        with ThreadPoolExecutor(1) as aside:  # there may be a running loop here: a notebook's
            aside.submit(asyncio.run, knock()).result()
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"the Dask scheduler {address} cannot be reached: {error}. Is it running "
            "(`dask scheduler`), and is the address of the form tcp://host:8786?"
        ) from None


def _gone(address: str, error: Exception) -> str:
    return (
        f"the Dask scheduler {address} is gone ({type(error).__name__}); what was computed is "
        "kept, and the same command goes on where this stopped"
    )


def _refusal(refused: Sequence[_Member]) -> str:
    """Say which workers would not compute the same, those with equal reasons together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in refused:
        alike.setdefault(each.refused, []).append(each.address)
    lines = ["these Dask workers do not have the versions and code of this process:"]
    for reasons, addresses in alike.items():
        lines.append(f"  {', '.join(sorted(addresses))}")
        lines += [f"    {reason}" for reason in reasons]
    lines.append("Install the same there, restart the workers, and run again.")
    return "\n".join(lines)

"""The workers of a Dask cluster, compared with this process and warmed up.

They join and leave at any time. A worker that joins reports what it would compute the
components from; if that is what this process has, it starts the warm parent of its tasks
and is ready.
"""

import asyncio
import contextlib
import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kbench.errors import ClusterError
from kbench.features import Host, Manifest, Terms, group_values
from kbench.messages import option
from kbench_dask import worker as dask_worker
from kbench_dask.worker import read_manifest

CONNECT_S = 5.0
"""Seconds in which the scheduler must answer."""

WORKERS_S = 30.0
"""Seconds in which a first worker must have joined."""

READY_S = 180.0
"""Seconds in which the present workers must be ready for the first task."""

LOOK_S = 0.5
"""Seconds between two polls of the workers."""

SILENT_S = 30.0
"""Seconds without an answer after which the scheduler counts as gone."""

ANSWER_S = 60.0
"""Seconds in which the result of a finished future must arrive."""

_SHOWN = 12
"""Differences of a worker that are listed."""

_RESUME = "finished results are stored; run the same command to continue"

_SILENCE = (OSError, TimeoutError, CancelledError)
"""Errors of a poll while the scheduler does not answer (Dask's errors are OSErrors)."""


@dataclass(eq=False)
class Worker:
    """A worker process of the cluster."""

    address: str
    n_threads: int
    host: Host | None = None  # its machine; None until it is ready
    refused: tuple[str, ...] = ()  # reasons why it is not used
    n_in_flight: int = 0  # tasks that it has now
    asked: Any = None  # future of the last question to it
    lease: Any = None  # future of `prepare`: while it is held, the warm parent lives


class Workers:
    """The workers of a cluster, as they join and leave.

    A ClusterError is raised if the scheduler at `address` does not answer or Dask is not
    installed. `events` gets None when a worker is ready, a `Worker` that is gone, and a
    `ClusterError` when the scheduler is gone. `notice` is called with each message for the user.
    """

    def __init__(
        self, address: str, events: queue.SimpleQueue[Any], notice: Callable[[str], None]
    ) -> None:
        self.address = address
        self.run = uuid.uuid4().hex
        self._events, self._notice = events, notice
        self._client = _connect(address)
        self._known: dict[str, Worker] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heard = time.monotonic()
        self._terms = Terms({}, {})
        self._here = Manifest()
        self._is_prepared = False
        self._given_up: ClusterError | None = None

    def prepare(self, terms: Terms) -> None:
        """Wait until the present workers are ready; then watch for further ones.

        ClusterError is raised if no worker is available, or one of them would not compute
        the same.
        """
        self._terms = terms
        self._here = read_manifest(terms.preload, terms.components)
        start = time.monotonic()
        while not self._are_ready(time.monotonic() - start):
            time.sleep(0.05)
        self._is_prepared = True
        threading.Thread(target=self._watch, name="dask-workers", daemon=True).start()

    def _are_ready(self, waited: float) -> bool:
        try:
            self._poll()
        except Exception as error:
            raise self._lost_error(error) from None
        workers = list(self._known.values())
        refused = [worker for worker in workers if worker.refused]
        n_ready = sum(worker.host is not None for worker in workers)
        if waited < READY_S and len(refused) + n_ready < len(workers):
            return False
        if refused:
            raise ClusterError(_refusal(refused))
        if n_ready:
            return True
        if workers:
            raise ClusterError(
                f"no worker of {self.address} was ready within {READY_S:g} s; they may be "
                "running other work"
            )
        if waited > WORKERS_S:
            raise ClusterError(
                f"the scheduler {self.address} has no workers; start some with "
                f"`dask worker {self.address}`"
            )
        return False

    def ready(self) -> list[Worker]:
        """Return the workers that can take tasks."""
        with self._lock:
            return [worker for worker in self._known.values() if worker.host is not None]

    def submit(self, function: Callable[..., Any], worker: Worker, *arguments: Any) -> Any:
        """Call a function on one worker, and no other; return a future.

        ClusterError is raised if the connection to the scheduler is closed.
        """
        try:
            return self._ask(function, worker, *arguments)
        except Exception as error:
            raise self._lost_error(error) from None

    def _ask(self, function: Callable[..., Any], worker: Worker, *arguments: Any) -> Any:
        return self._client.submit(
            function,
            *arguments,
            key=f"kbench-{function.__name__}-{uuid.uuid4().hex}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
        )

    def cancel(self, futures: Sequence[object]) -> None:
        """Cancel futures; the workers kill their tasks."""
        if futures:
            with contextlib.suppress(Exception):
                self._client.cancel(list(futures))

    def rejoin(self, worker: Worker) -> bool:
        """Treat a worker as new at the next poll; False if the last poll found it gone."""
        with self._lock:
            return self._known.pop(worker.address, None) is not None

    def dismiss(self, worker: Worker, reason: str) -> None:
        """Stop using a worker; ClusterError is raised if it was the last."""
        worker.host, worker.lease = None, None
        worker.refused = (reason,)
        workers = list(self._known.values())
        if workers and all(other.refused for other in workers):
            raise ClusterError(_refusal(workers))
        self._notice(f"the Dask worker {worker.address} is no longer used: {reason}")

    def wait_for_scheduler(self) -> None:
        """Wait for the next answer of the scheduler; ClusterError is raised if it is gone."""
        asked = time.monotonic()
        while self._heard < asked and not self._ended.wait(LOOK_S / 5):
            if self._given_up is not None:
                raise self._given_up

    def close(self) -> None:
        """Release the workers, which end their warm parents."""
        if self._ended.is_set():
            return
        self._ended.set()
        with self._lock:
            self._known.clear()  # the leases end with it
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)

    def _lost_error(self, error: Exception) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler {self.address} was lost ({type(error).__name__}); {_RESUME}"
        )

    # -- watching

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self._poll()
            except Exception as error:
                if self._ended.is_set():
                    return
                if self._client.status == "closed" or (
                    isinstance(error, _SILENCE) and time.monotonic() - self._heard > SILENT_S
                ):
                    self._given_up = self._lost_error(error)
                elif not isinstance(error, _SILENCE):
                    # waiting would not help, and nothing else would report it
                    self._given_up = ClusterError(
                        f"the workers of {self.address} cannot be monitored "
                        f"({type(error).__name__}: {error}); {_RESUME}"
                    )
                else:
                    continue
                self._events.put(self._given_up)
                return

    def _poll(self) -> None:
        """Ask for the present workers; question new ones, drop dead ones."""
        threads = self._client.nthreads()
        self._heard = time.monotonic()
        with self._lock:  # the other thread may remove one meanwhile
            gone = [self._known.pop(known) for known in list(self._known) if known not in threads]
        for worker in gone:
            if worker.host is not None:
                self._events.put(worker)
        for address, n_threads in threads.items():
            if address not in self._known and not self._ended.is_set():
                worker, terms = Worker(address, n_threads), self._terms
                given = self.run, terms.preload, terms.components, self._here
                worker.asked = self._ask(dask_worker.prepare, worker, *given)
                with self._lock:
                    self._known[address] = worker
        for worker in list(self._known.values()):
            if worker.asked is not None and worker.asked.done():
                self._handle_reply(worker)

    def _handle_reply(self, worker: Worker) -> None:
        """Handle the answer of a worker to the last question."""
        asked, worker.asked = worker.asked, None
        try:
            host, problems = asked.result(timeout=ANSWER_S)
        except Exception as error:
            if worker.address not in self._client.nthreads():
                return  # it died meanwhile: the next poll drops it
            worker.refused = (f"kbench cannot be queried there: {type(error).__name__}: {error}",)
        else:
            worker.refused = problems
            if not problems:
                worker.lease, worker.host = asked, host
                self._events.put(None)
        if worker.refused and self._is_prepared:
            self._notice(f"a worker that joined is not used: {_refusal([worker])}")


def _connect(address: str) -> Any:
    try:
        from distributed import Client, Security
        from distributed.comm import connect
    except ImportError:
        raise ClusterError(
            f"{option('scheduler')} needs Dask: pip install 'kbench-core[dask]', here and on "
            "the workers"
        ) from None

    # kbench reports a lost connection in one line
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

    async def knock() -> None:
        comm = await connect(address, timeout=CONNECT_S, **Security().get_connection_args("client"))
        await comm.close()

    try:
        # a client without a scheduler would report it again, at length, when it is collected
        with ThreadPoolExecutor(1) as aside:  # this thread may have a running loop: a notebook's
            aside.submit(asyncio.run, knock()).result()
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"the Dask scheduler {address} cannot be reached: {error}. Check that it is running "
            "(`dask scheduler`), and that its URL has the form tcp://host:8786."
        ) from None


def _refusal(refused: Sequence[Worker]) -> str:
    """Report the workers that would not compute the same, grouped by their reasons."""
    groups = group_values((worker.refused, worker.address) for worker in refused)
    lines = [
        "these Dask workers do not have the versions and code of this process; compared with it:"
    ]
    for reasons, addresses in groups.items():
        lines.append(f"  {', '.join(sorted(addresses))}")
        lines += [f"    {reason}" for reason in reasons[:_SHOWN]]
        if len(reasons) > _SHOWN:
            lines.append(f"    {len(reasons) - _SHOWN} more")
    lines.append("Install the same versions there, restart the workers, and run again.")
    return "\n".join(lines)

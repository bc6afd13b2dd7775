"""Who computes: the workers of a Dask cluster, compared with this process and warmed up.

They come and go. A worker that joins is asked for its versions and code; one
that is alike starts the warm parent of its tasks and is ready.
"""

from __future__ import annotations

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
from kbench.execution.engine import dask_worker
from kbench.execution.engine.interface import Terms
from kbench.execution.engine.request import Host
from kbench.execution.engine.same_code import differences, parts

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

ANSWER_S = 60.0
"""Seconds in which a result that is there must have come."""

_SILENCE = (OSError, TimeoutError, CancelledError)
"""What looking raises while the scheduler does not answer (Dask's errors are OSErrors)."""


@dataclass(eq=False)
class Worker:
    """A worker process of the cluster.

    Parameters
    ----------
    address : str
    n_threads : int
    host : Host or None
        The machine it runs on; None until it is ready.
    refused : tuple of str
        Why it is not used.
    n_flying : int
        Tasks that it has now.
    """

    address: str
    n_threads: int
    host: Host | None = None
    refused: tuple[str, ...] = ()
    n_flying: int = 0
    asked: Any = None  # future of what it was asked last
    lease: Any = None  # future of `prepare`: while it is held, the warm parent lives


class Workers:
    """The workers of a cluster, as they come and go.

    Parameters
    ----------
    address : str
        Of the scheduler.
    events : queue
        Gets None when there is news of the workers, a `Worker` that is gone,
        and a `ClusterError` when the scheduler is.
    notice : callable
        Is told what the user should know.

    Raises
    ------
    ClusterError
        Dask is not installed, or the scheduler does not answer.
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
        self._terms = Terms((), (), (), {})
        self._here: dict[str, str] = {}
        self._admitted = False
        self._given_up: ClusterError | None = None

    def admit(self, terms: Terms) -> list[Host]:
        """Wait until the workers that are there are ready; then watch for others.

        Raises
        ------
        ClusterError
            There is no worker, or one of them would not compute the same.
        """
        self._terms = terms
        self._here = parts(terms.packages, terms.modules)
        start = time.monotonic()
        while not self._are_ready(time.monotonic() - start):
            time.sleep(0.05)
        self._admitted = True
        threading.Thread(target=self._keep_looking, name="dask-workers", daemon=True).start()
        return [each.host for each in self.ready() if each.host]

    def _are_ready(self, waited: float) -> bool:
        try:
            self._look()
        except Exception as error:
            raise self._gone(error) from None
        known = list(self._known.values())
        refused = [each for each in known if each.refused]
        n_ready = sum(each.host is not None for each in known)
        if waited < READY_S and len(refused) + n_ready < len(known):
            return False
        if refused:
            raise ClusterError(_refusal(refused))
        if n_ready:
            return True
        if known:
            raise ClusterError(
                f"no worker of {self.address} was ready within {READY_S:g} s; "
                "are they busy with other work?"
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
            return [each for each in self._known.values() if each.host is not None]

    def submit(self, function: Callable[..., Any], worker: Worker, *arguments: Any) -> Any:
        """Have one worker, and no other, call a function; returns a future.

        Raises
        ------
        ClusterError
            The connection to the scheduler is closed.
        """
        try:
            return self._ask(function, worker, *arguments)
        except Exception as error:
            raise self._gone(error) from None

    def _ask(self, function: Callable[..., Any], worker: Worker, *arguments: Any) -> Any:
        return self._client.submit(
            function,
            *arguments,
            key=f"kbench-{function.__name__}-{uuid.uuid4().hex}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
        )

    def cancel(self, futures: Sequence[Any]) -> None:
        """Cancel futures; the workers kill what they compute for them."""
        if futures:
            with contextlib.suppress(Exception):
                self._client.cancel(list(futures))

    def forget(self, worker: Worker) -> None:
        """Welcome a worker as if it were new, at the next look."""
        with self._lock:
            self._known.pop(worker.address, None)

    def dismiss(self, worker: Worker, reason: str) -> None:
        """Give a worker nothing more to do.

        Raises
        ------
        ClusterError
            All workers have been dismissed or refused.
        """
        worker.host, worker.lease = None, None
        worker.refused = (reason,)
        known = list(self._known.values())
        if known and all(each.refused for each in known):
            raise ClusterError(_refusal(known))
        self._notice(f"the Dask worker {worker.address} is not used any longer: {reason}")

    def wait_for_word(self) -> None:
        """Return once the scheduler has answered again.

        Raises
        ------
        ClusterError
            It is given up.
        """
        asked = time.monotonic()
        while self._heard < asked and not self._ended.wait(LOOK_S / 5):
            if self._given_up is not None:
                raise self._given_up

    def close(self) -> None:
        """Let go of the workers, which end their warm parents."""
        if self._ended.is_set():
            return
        self._ended.set()
        with self._lock:
            self._known.clear()  # the leases end with it
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)

    def _gone(self, error: Exception) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler {self.address} is gone ({type(error).__name__}); what was "
            "computed is kept, and the same command goes on where this stopped"
        )

    # -- looking

    def _keep_looking(self) -> None:
        while not self._ended.wait(LOOK_S):
            try:
                self._look()
            except Exception as error:
                if self._ended.is_set():
                    return
                if self._client.status == "closed" or (
                    isinstance(error, _SILENCE) and time.monotonic() - self._heard > SILENT_S
                ):
                    self._given_up = self._gone(error)
                elif not isinstance(error, _SILENCE):
                    # waiting would not help, and nobody would hear of it
                    self._given_up = ClusterError(
                        f"the workers of {self.address} cannot be watched any longer "
                        f"({type(error).__name__}: {error}); what was computed is kept, and the "
                        "same command goes on where this stopped"
                    )
                else:
                    continue
                self._events.put(self._given_up)
                return

    def _look(self) -> None:
        """Ask which workers there are; welcome the new, drop the dead."""
        threads = self._client.nthreads()
        self._heard = time.monotonic()
        with self._lock:  # the other thread may forget one meanwhile
            gone = [self._known.pop(each) for each in list(self._known) if each not in threads]
        for worker in gone:
            if worker.host is not None:
                self._events.put(worker)
        for address, n_threads in threads.items():
            if address not in self._known and not self._ended.is_set():
                worker = Worker(address, n_threads)
                worker.asked = self._ask(
                    dask_worker.describe, worker, self._terms.packages, self._terms.modules
                )
                with self._lock:
                    self._known[address] = worker
        for worker in list(self._known.values()):
            if worker.asked is not None and worker.asked.done():
                self._hear(worker)

    def _hear(self, worker: Worker) -> None:
        """Take the answer of a worker to what it was asked."""
        asked, worker.asked = worker.asked, None
        try:
            said = asked.result(timeout=ANSWER_S)
        except Exception as error:
            if worker.address not in self._client.nthreads():
                return  # it died meanwhile: the next look misses it
            worker.refused = (f"kbench cannot be asked there: {type(error).__name__}: {error}",)
        else:
            if isinstance(said, dask_worker.Prepared):
                worker.refused = said.problems
                if not said.problems:
                    worker.lease, worker.host = asked, said.host
                    self._events.put(None)
            elif found := differences(self._here, said):
                worker.refused = tuple(found)
            else:
                worker.asked = self._ask(
                    dask_worker.prepare,
                    worker,
                    self.run,
                    self._terms.preload,
                    self._terms.components,
                )
        if worker.refused and self._admitted:
            self._notice(f"a worker that joined is not used: {_refusal([worker])}")


def _connect(address: str) -> Any:
    try:
        from distributed import Client, Security
        from distributed.comm import connect
    except ImportError:
        raise ClusterError(
            "--scheduler needs Dask: pip install 'kbench-core[dask]', here and on the workers"
        ) from None

    # what it logs about a connection that is lost is said in one line by us
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)

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


def _refusal(refused: Sequence[Worker]) -> str:
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

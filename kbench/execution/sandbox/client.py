"""The client: start a supervisor, send it requests, wait for outcomes."""

import contextlib
import json
import math
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kbench.execution.sandbox import warm_process, wire
from kbench.execution.sandbox.child import BACKSTOP_MIB, is_trusted
from kbench.records.canonical import encodable

Converse = Callable[[socket.socket], None]
"""What talks with a task at the other end of a socket while the task runs."""


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of one call of `Sandbox.run`."""

    status: Literal["ok", "error", "timed_out", "out_of_memory", "crashed", "skipped"]
    """With "error" the function raised, or returned what is not JSON; with "crashed" its process
    died (a signal, ``os._exit``)."""
    value: Any = None
    """The result of the function; None unless ok."""
    error: str = ""
    """Traceback, limit that was hit, signal, or exit code."""
    printed: str = ""
    """The last 4,000 characters of standard output and standard error."""
    seconds: float = 0.0
    """Wall clock from the fork to the end."""
    cpu_s: float = 0.0
    """CPU seconds of the process and of the descendants that it waited for."""
    peak_memory_mib: float = 0.0
    """Largest resident memory beyond that at the start, in units of 2**20 bytes."""
    recorded: Sequence[Mapping[str, Any]] = ()
    """What the process loaded and read (see `kbench.execution.recording`), until its end."""


@dataclass(frozen=True)
class _Request:
    """A call that waits for its outcome, as bytes for the supervisor and its terms here."""

    message: bytes
    time_s: float | None
    wanted: Callable[[], bool] | None
    converse: Converse | None


class Sandbox:
    """Runs functions in processes of their own, with limits; several threads may use it.

    A warm process (the supervisor) imports the modules of `preload` once, calls the function of
    each ``"module:function"`` among them, and forks a fresh process for each call, which costs
    some milliseconds. A third-party module that fails, hangs, crashes, starts threads or imports
    mlflow in a trial import is left to the tasks. Its processes get the variables of this one
    that hold no credentials, and those of `environment`. Modules of the packages in `record`
    are recorded one by one (see `kbench.execution.recording`).

    >>> with Sandbox() as sandbox:
    ...     outcome = sandbox.run("math:factorial", 5, time_s=10)
    >>> outcome.status, outcome.value
    ('ok', 120)
    """

    def __init__(
        self,
        preload: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        record: Sequence[str] = (),
    ) -> None:
        self._record = tuple(record)
        self._preload = tuple(preload)
        self._environment = dict(environment or {})
        self._lock = threading.Lock()
        self._supervisor: warm_process.WarmProcess | None = None
        self._alone: set[Sandbox] = set()
        self._closed = False
        self._owner = os.getpid()

    def __enter__(self) -> "Sandbox":
        self.warm()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def run(
        self,
        function: str,
        payload: object,
        *,
        time_s: float | None = None,
        memory_mib: float | None = None,
        address_mib: float = BACKSTOP_MIB,
        wanted: Callable[[], bool] | None = None,
        converse: Converse | None = None,
    ) -> CallOutcome:
        """Call ``name(payload)`` of ``"module:name"`` in a fresh process; return its outcome.

        The payload and the returned value travel as JSON. `memory_mib` bounds the resident memory
        of the process and its descendants beyond that at the start, in units of 2**20 bytes; a
        failure at 90 % of it or more has status "out_of_memory". Infinity means no limit. It
        may map `address_mib` more than that: drivers of GPUs map all of their memory. Once
        `wanted`, which is called every half second, returns False, the task is killed, with the
        status "crashed". `converse` is called with a socket in another thread, once for each
        attempt, and must return once the other end, which the function gets as well, is closed.

        A task whose supervisor dies or hangs is tried again with a separate supervisor: a
        task that has killed or stopped the first one cannot harm other tasks again.

        Raises RuntimeError if the sandbox is closed or no supervisor can be started.
        """
        module, _, name = function.partition(":")
        if not module or not name:
            raise ValueError(f"function must be 'module:name', got {function!r}")
        given = {"time_s": time_s, "memory_mib": memory_mib}
        for key, limit in given.items():
            if limit is not None and not limit > 0:
                raise ValueError(f"{key} must be a number > 0, or None, got {limit!r}")
        limits = {key: None if limit == math.inf else limit for key, limit in given.items()}
        limits["address_mib"] = address_mib
        message = wire.pack({"function": function, **limits}, json.dumps(payload).encode("ascii"))
        request = _Request(message, limits["time_s"], wanted, converse)

        preload = self._preload
        try:
            outcome, ended = self._ask(request)
        except warm_process.NotStartedError as error:
            outcome, ended = None, str(error)
            # the module that did it may be one that this task does not need
            preload = tuple(name for name in preload if is_trusted(name))
        if outcome is None and not self._closed:
            outcome, again = self._ask_alone(request, preload)
            ended += f"\nit was tried again: {again}"
        if outcome is None and self._closed:
            ended = "the sandbox was closed while the task ran"
        return outcome or CallOutcome("crashed", error=ended)

    def _ask_alone(
        self, request: _Request, preload: Sequence[str]
    ) -> tuple[CallOutcome | None, str]:
        alone = Sandbox(preload, self._environment, self._record)
        with self._lock:
            alone._closed = self._closed
            self._alone.add(alone)
        try:
            return alone._ask(request)
        except RuntimeError:
            if not self._closed:
                raise
            return None, ""
        finally:
            with self._lock:
                self._alone.discard(alone)
            alone.close()

    def _ask(self, request: _Request) -> tuple[CallOutcome | None, str]:
        """Return the outcome of one request; None and the reason if its supervisor ended."""
        connection, supervisor = self._connect()
        liveness = supervisor.liveness(request.time_s)
        with connection, _conversation(request.converse) as theirs:
            try:
                reply = _ask(connection, request, theirs, liveness)
            except _UnwantedError:
                return CallOutcome("crashed", error="the task was cancelled"), ""
            except warm_process.HungError as error:
                reply = None
                supervisor.close(hung=f"killed, because {error}")
            finally:
                # ends the task if this call is interrupted, even where a forked copy of
                # this process still holds the socket
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        if reply is None:
            if not self._closed:
                supervisor.check_started()
            return None, f"the sandbox's supervisor ended while the task ran: {supervisor.close()}"
        header, body = reply
        # names of files are compared as they are
        header = encodable(header) | {"recorded": header.get("recorded", ())}
        try:
            return CallOutcome(value=json.loads(body) if body else None, **header), ""
        except (ValueError, RecursionError) as error:  # the task wrote it itself
            reason = f"the answer of the task is not JSON: {error}"
            return CallOutcome(**header | {"status": "error", "error": reason}), ""

    def close(self) -> None:
        """End every process of this sandbox; calls in flight return "crashed"."""
        if os.getpid() != self._owner:
            return  # a forked copy must not end the tasks of the original
        with self._lock:
            self._closed = True
            if self._supervisor is not None:
                self._supervisor.close()
            alone = list(self._alone)
        for sandbox in alone:
            sandbox.close()

    def warm(self) -> warm_process.WarmProcess:
        """Start the warm process; its imports run while the caller does something else."""
        if os.getpid() != self._owner:
            raise RuntimeError("a Sandbox cannot be used in a fork of the process that made it")
        with self._lock:
            if self._closed:
                raise RuntimeError("this Sandbox is closed")
            if self._supervisor is not None and not self._supervisor.alive():
                self._supervisor.close()
                self._supervisor = None
            if self._supervisor is None:
                self._supervisor = warm_process.WarmProcess(
                    self._preload, self._environment, self._record
                )
            return self._supervisor

    def _connect(self) -> tuple[socket.socket, warm_process.WarmProcess]:
        """Send the supervisor one end of a new socket; closing the other ends the task."""
        while True:
            supervisor = self.warm()
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    supervisor.send(theirs)
                    return ours, supervisor
                except OSError:  # it died this moment: nothing was started
                    ours.close()
                    supervisor.check_started()


class _UnwantedError(Exception):
    """The caller no longer wants the answer."""


@contextlib.contextmanager
def _conversation(converse: Converse | None) -> Iterator[socket.socket | None]:
    """Run `converse` in a thread at one end of a socket, and yield the other end."""
    if converse is None:
        yield None
        return
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=converse, args=(ours,), name="kbench-converse", daemon=True)
    with ours, theirs:
        thread.start()
        try:
            yield theirs
        finally:
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            thread.join()


def _ask(
    connection: socket.socket,
    request: _Request,
    theirs: socket.socket | None,
    liveness: warm_process.Liveness,
) -> tuple[wire.Header, bytes] | None:
    """Send a request and wait for the reply; None if the other side is gone."""
    buffer = bytearray()
    rest, wanted = memoryview(request.message), request.wanted
    try:
        if theirs is not None:
            # with the first byte; this copy is closed, so that the task's end is noticed
            socket.send_fds(connection, [rest[:1]], [theirs.fileno()])
            theirs.close()
            rest = rest[1:]
        connection.settimeout(warm_process.TICK_S)
        while (reply := wire.unpack(buffer)) is None:
            try:
                if rest:
                    rest = rest[connection.send(rest) :]
                    continue
                chunk = connection.recv(2**20)
            except TimeoutError:
                if wanted is not None and not wanted():
                    raise _UnwantedError from None
                liveness.look()
                continue
            if not chunk:
                return None
            buffer += chunk
    except ConnectionError:
        return None
    return reply

"""The warm process: forks a task per request, watches its limits, cleans up.

It has one thread and one loop. It expects that a task does anything to itself, and
never blocks on a task.
"""

import contextlib
import errno
import gc
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kbench.execution import recording
from kbench.execution.sandbox import child, processes, shared_memory, wire

TICK_S = 0.02 if processes.LINUX else 0.2
"""Time between two checks of memory and clock (outside Linux each one starts ``ps``)."""

IDLE_S = 0.5
"""Time between two checks that the client is alive while there is nothing to do."""

SHM_POLL_S = 0.2
"""Time between two counts of shared memory, which are slow."""

NEAR_LIMIT = 0.9
"""Share of a memory limit from which a failure is attributed to memory."""

PRINTED_CHARACTERS = 4000
MAX_RESULT = 2**28
_CHUNK = 2**16
# a task may have written anything into its pipe
_DECODE_ERRORS = (ValueError, TypeError, KeyError, OverflowError)
# statuses that a task may report itself
_SELF_REPORTED = ("ok", "error", "out_of_memory")


class Call:
    """One call of a function in a task process, from the request to the reply."""

    def __init__(self, connection: socket.socket | None) -> None:
        self.connection = connection
        self.received = bytearray()
        self.time_s: float | None = None
        self.memory_mib: float | None = None
        self.address_mib: float = child.BACKSTOP_MIB
        self.channel: int | None = None  # for the task to talk with its client
        self.pid = 0
        self.started = 0.0
        self.cpu_s = 0.0
        self.pipes: list[int] = []
        self.printed = bytearray()
        self.reported = bytearray()
        self.baseline: dict[str, int] = {}  # memory at the start, in bytes
        self.peak_resident = 0
        self.peak_files = 0
        self.peak_size = 0
        self.next_shared = 0.0
        self.shared_memory = shared_memory.SharedMemory()
        self.killed_for: tuple[str, str] | None = None
        self.reply: dict[str, Any] = {}
        self.recorded: list[dict[str, Any]] = []
        self.value = b""

    def read_baseline(self) -> None:
        """Read the first message of the task, once it has arrived."""
        if not self.baseline:
            with contextlib.suppress(*_DECODE_ERRORS):
                if message := wire.unpack(self.reported):
                    keys = ("size", "resident", "files")
                    self.baseline = {key: int(message[0][key]) for key in keys}
                    self.peak_files = self.baseline["files"]

    def record_peak(self, peak_size: int, peak_resident: int) -> None:
        """Record the largest memory beyond that at the start, without pages of mapped files."""
        if self.baseline:
            self.peak_size = max(self.peak_size, peak_size - self.baseline["size"])
            self.peak_resident = max(self.peak_resident, peak_resident - self.baseline["resident"])

    def record_high_water(self, peak_size: int, peak_with_files: int, files: int) -> None:
        """Record the peak that the kernel keeps, which has pages of mapped files too.

        The most such pages that were seen are taken off. What is left is not more than the
        peak of the other pages, unless a file was mapped and unmapped between two looks.
        """
        self.peak_files = max(self.peak_files, files)
        self.record_peak(peak_size, peak_with_files - self.peak_files)

    def conclude(self, status: int, peak_with_files: int) -> None:
        """Decide the outcome by the end of the process."""
        seconds = time.monotonic() - self.started
        outcome, error = self._end(os.waitstatus_to_exitcode(status))
        self.record_high_water(0, peak_with_files, 0)
        if outcome in ("error", "timed_out", "crashed") and (used := self._near_memory_limit()):
            outcome, error = "out_of_memory", f"{used}\n{error}"
        self.reply = {
            "status": outcome,
            "error": error,
            "printed": self.printed.decode("utf-8", "replace")[-PRINTED_CHARACTERS:],
            "seconds": seconds,
            "cpu_s": self.cpu_s,
            "peak_memory_mib": round(self.peak_resident / processes.MIB, 3),
            "recorded": self.recorded,
        }

    def _end(self, code: int) -> tuple[str, str]:
        self.read_baseline()
        if self.baseline:
            with contextlib.suppress(*_DECODE_ERRORS):
                while message := wire.unpack(self.reported):
                    header, value = message
                    if "recorded" in header:  # whether or not the task has ended by itself
                        self.recorded.append(header["recorded"])
                        continue
                    if code != 0:
                        break
                    status, error = header["status"], header["error"]
                    if status not in _SELF_REPORTED or not isinstance(error, str):
                        raise ValueError(status)
                    self.record_high_water(header["size"], header["resident"], header["files"])
                    self.value = value
                    return status, error
        if self.killed_for is not None:
            return self.killed_for
        if code == -signal.SIGXCPU:
            return "timed_out", "limit of CPU time"
        if code < 0:
            hint = " (by the system, out of memory?)" if code == -signal.SIGKILL else ""
            return "crashed", f"killed by {processes.signal_name(-code)}{hint}"
        return "crashed", f"ended with exit code {code} and no result"

    def _near_memory_limit(self) -> str:
        if self.memory_mib is None:
            return ""
        for label, used, limit in (
            ("resident memory", self.peak_resident, self.memory_mib),
            ("address space", self.peak_size, self.memory_mib + self.address_mib),
        ):
            if used >= NEAR_LIMIT * limit * processes.MIB:
                return f"{label}: {used / processes.MIB:.0f} MiB of {limit:.0f} MiB"
        return ""


class Supervisor:
    """The loop and its calls."""

    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._pid = os.getpid()
        self._running: dict[int, Call] = {}
        self._ended: list[tuple[float, Call]] = []
        self._channels: set[int] = set()
        self._next_check = 0.0
        self._open = True
        self._selector = selectors.PollSelector()  # has no descriptor that a fork would share
        self._wakeup_r, wakeup_w = socket.socketpair()
        self._wakeup_w = wakeup_w
        for end in (self._wakeup_r, wakeup_w):
            end.setblocking(False)
        signal.set_wakeup_fd(wakeup_w.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        self._listen(self._wakeup_r, self._drain_wakeups)
        if (created := shared_memory.creations()) is not None:
            self._listen(created, partial(self._scan_shared_memory, created))

    # -- life -----------------------------------------------------------------

    def warm_up(self, names: list[str], probe_s: float) -> None:
        """Import the modules that tasks need, third-party ones after a trial import."""
        # An import takes seconds, in which the loop does not run.
        signal.signal(signal.SIGALRM, lambda *_: self._exit_if_abandoned())
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, IDLE_S / 2, IDLE_S / 2)
        for name in dict.fromkeys(names):
            if child.is_trusted(name) or self._probe(name, probe_s):
                # the task that needs the module reports what is wrong with it
                with contextlib.suppress(BaseException):
                    child.warm_up(name)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        gc.collect()
        with contextlib.suppress(AttributeError):  # of glibc: tasks would use it uncounted
            processes.libc.malloc_trim(0)
        gc.freeze()  # the collector must not write to pages shared with the tasks

    def serve(self) -> None:
        """Serve requests until the client is gone."""
        self._listen(self._control, self._accept)
        with contextlib.suppress(OSError):
            self._control.send(b"R")
        while self._alive():
            self._step()

    def end(self) -> None:
        """Kill every task and its descendants."""
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            for pid in self._running:
                processes.kill(pid)
            self._reap()
            if not self._kill_orphans() and not self._running:
                break
            time.sleep(0.002)
        for _, call in self._ended:
            call.shared_memory.clean()

    def _alive(self) -> bool:
        # A process that the client has forked may hold a copy of its sockets, so that
        # the end of the file is not enough.
        return self._open and os.getppid() == self._parent

    def _stop(self) -> None:
        self._open = False

    def _exit_if_abandoned(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if not self._control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                self._stop()
        if not self._alive():
            self.end()
            os._exit(0)

    def _step(self) -> None:
        for key, _ in self._selector.select(TICK_S if self._running or self._ended else IDLE_S):
            key.data()
        self._reap()
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + TICK_S
            for call in self._running.values():
                self._check_limits(call)
        self._deliver()

    def _probe(self, name: str, probe_s: float) -> bool:
        call, function = Call(None), "kbench.execution.sandbox.child:probe"
        terms = {"function": function, "time_s": probe_s, "memory_mib": None, "address_mib": 0.0}
        self._launch(call, terms, json.dumps(name).encode())
        while not call.reply:
            if not self._alive():
                raise SystemExit
            self._step()
        return call.reply["status"] == "ok" and call.value == b"true"

    # -- requests -------------------------------------------------------------

    def _accept(self) -> None:
        try:
            got, sent, _, _ = socket.recv_fds(self._control, 1, 1)
        except ConnectionError:
            got, sent = b"", []
        if not got:
            self._stop()
        for descriptor in sent:
            connection = socket.socket(fileno=descriptor)
            self._listen(connection, partial(self._receive, Call(connection)))

    def _receive(self, call: Call) -> None:
        assert call.connection is not None
        try:
            chunk, descriptors, _, _ = socket.recv_fds(call.connection, 2**20, 1)
        except ConnectionError:
            chunk, descriptors = b"", []
        if descriptors:
            call.channel = descriptors[0]
            self._channels.add(descriptors[0])
        if not chunk:  # the client no longer waits for it
            self._ignore(call.connection)
            call.connection.close()
            call.connection = None
            self._close_channel(call)
            if call.pid in self._running:
                processes.kill(call.pid)
            return
        call.received += chunk
        if message := wire.unpack(call.received):
            self._launch(call, *message)

    def _launch(self, call: Call, terms: wire.Header, payload: bytes) -> None:
        call.time_s, call.memory_mib = terms["time_s"], terms["memory_mib"]
        call.address_mib = terms["address_mib"]
        call.started = time.monotonic()
        try:
            output, output_end = os.pipe()
            call.pipes += [output, output_end]
            result, result_end = os.pipe()
            call.pipes += [result, result_end]
            call.pid = os.fork()
        except OSError as error:
            for descriptor in call.pipes:
                os.close(descriptor)
            self._close_channel(call)
            status = "out_of_memory" if error.errno == errno.ENOMEM else "crashed"
            call.reply = {"status": status, "error": f"no process could be started: {error}"}
            self._ended.append((call.started, call))
            return
        if call.pid == 0:
            self._close_inherited(output, result, *(self._channels - {call.channel}))
            child.run(terms, payload, self._pid, output_end, result_end, call.channel)
        self._close_channel(call)
        for descriptor in (output_end, result_end):
            os.close(descriptor)
        call.pipes = [output, result]
        self._running[call.pid] = call
        for descriptor, buffer in ((output, call.printed), (result, call.reported)):
            os.set_blocking(descriptor, False)
            self._listen(descriptor, partial(self._read, call, descriptor, buffer))

    def _close_inherited(self, *pipes: int) -> None:
        signal.set_wakeup_fd(-1)
        for key in list(self._selector.get_map().values()):
            with contextlib.suppress(OSError):
                os.close(key.fd)
        for descriptor in (self._control.fileno(), self._wakeup_w.fileno(), *pipes):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _read(self, call: Call, descriptor: int, buffer: bytearray) -> bool:
        """Read from a pipe of a task; return whether there was anything."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._ignore(descriptor)
            return False
        buffer += chunk
        if buffer is call.printed:
            del buffer[: -4 * PRINTED_CHARACTERS]
        elif len(buffer) > MAX_RESULT:
            self._kill(
                call, "error", f"the result is larger than {MAX_RESULT // processes.MIB} MiB"
            )
        return True

    # -- limits ---------------------------------------------------------------

    def _check_limits(self, call: Call) -> None:
        call.read_baseline()
        if call.time_s is not None and time.monotonic() - call.started > call.time_s:
            self._kill(call, "timed_out", f"limit of {call.time_s:g} s")
        if call.baseline:
            limit = call.memory_mib
            self._measure_memory(call)
            if limit is not None and call.peak_resident > limit * processes.MIB:
                self._kill(call, "out_of_memory", f"limit of {limit:g} MiB")

    def _measure_memory(self, call: Call) -> None:
        main = processes.memory(call.pid)
        call.record_high_water(main.peak_size, main.peak_resident, main.files)
        call.record_peak(0, main.resident)
        descendants = processes.descendants(call.pid)
        for pid in descendants:
            call.record_peak(0, processes.memory(pid).resident)
        if time.monotonic() >= call.next_shared:
            held = call.shared_memory.scan((call.pid, *descendants))
            # Mapped pages are resident memory already, and may have become more since.
            # Where other shared pages are mapped too, this is too little.
            memories = [processes.memory(pid) for pid in (call.pid, *descendants)]
            # the sum of resident sizes would count shared pages once per process
            if descendants:
                resident = sum(map(processes.proportional_memory, (call.pid, *descendants)))
            else:
                resident = memories[0].resident
            call.record_peak(0, resident + max(0, held - sum(memory.shared for memory in memories)))
            call.next_shared = time.monotonic() + SHM_POLL_S

    def _scan_shared_memory(self, created: int) -> None:
        """Look for files in shared memory before they are closed."""
        with contextlib.suppress(BlockingIOError):
            os.read(created, _CHUNK)
        for call in self._running.values():
            call.shared_memory.scan(processes.family(call.pid))

    def _kill(self, call: Call, status: str, error: str) -> None:
        call.killed_for = call.killed_for or (status, error)
        processes.kill(call.pid)

    # -- the end of a task ----------------------------------------------------

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return
                if call := self._running.pop(pid, None):
                    processes.kill_group(pid)  # the rest of its session
                    call.cpu_s = usage.ru_utime + usage.ru_stime
                    self._finish(call, status, usage.ru_maxrss)

    def _finish(self, call: Call, status: int, maxrss: int) -> None:
        for descriptor, buffer in zip(call.pipes, (call.printed, call.reported), strict=True):
            # bounded: a descendant may still be printing
            for _ in range(64):
                if not self._read(call, descriptor, buffer):
                    break
            self._ignore(descriptor)
            os.close(descriptor)
        call.read_baseline()
        call.conclude(status, maxrss * 1024 if processes.LINUX else maxrss)
        self._ended.append((time.monotonic(), call))

    def _kill_orphans(self) -> bool:
        """Kill the remaining processes of ended tasks; return whether there were any.

        A task adopts the orphans among its descendants. The supervisor adopts them when
        the task has ended: a child that is not a task is one of them.
        """
        orphans = [pid for pid in processes.list_children(self._pid) if pid not in self._running]
        for pid in orphans:
            processes.kill(pid)
        return bool(orphans)

    def _deliver(self) -> None:
        """Reply to the calls that have ended, once no process of them is left."""
        if not self._ended or (self._kill_orphans() and time.monotonic() < self._ended[0][0] + 1.0):
            return
        for _, call in self._ended:
            call.shared_memory.clean()
            if call.connection is not None:
                self._ignore(call.connection)
                with call.connection, contextlib.suppress(OSError):
                    call.connection.setblocking(True)
                    call.connection.sendall(wire.pack(call.reply, call.value))
        self._ended.clear()

    # -- descriptors ----------------------------------------------------------

    def _close_channel(self, call: Call) -> None:
        if call.channel is not None:
            self._channels.discard(call.channel)
            os.close(call.channel)
            call.channel = None

    def _listen(self, source: socket.socket | int, react: Callable[[], object]) -> None:
        self._selector.register(source, selectors.EVENT_READ, react)

    def _ignore(self, source: socket.socket | int) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(source)

    def _drain_wakeups(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wakeup_r.recv(4096):
                pass


def main(settings: dict[str, Any]) -> None:
    """Run the supervisor that `Sandbox` has started."""
    if settings["record"]:
        recording.install(settings["record"], settings["hidden"])
    processes.adopt_orphans()
    # it may be stopped, and that thread may end long before its process
    processes.signal_at_parents_end(signal.SIGCONT)
    supervisor = Supervisor(socket.socket(fileno=settings["control"]), settings["parent"])
    try:
        supervisor.warm_up(settings["preload"], settings["probe_s"])
        supervisor.serve()
    finally:
        supervisor.end()
    os._exit(0)

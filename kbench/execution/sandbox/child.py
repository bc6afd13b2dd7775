"""The task process: isolate itself, call the function, report, end."""

import contextlib
import errno
import faulthandler
import importlib
import json
import math
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from functools import partial
from operator import attrgetter
from typing import Any, NoReturn

from kbench.execution import recording
from kbench.execution.sandbox import processes, wire

BACKSTOP_MIB = 2048
"""Address space beyond the memory limit: code maps more than it uses."""

TRUSTED = {"kbench", "numpy", "scipy", "sklearn"} | sys.stdlib_module_names
_LARGEST = 2**62  # a larger limit cannot be passed to the system
_NO_MEMORY = (
    *("can't start new thread", "bad_alloc", "Cannot allocate memory"),
    *("out of memory", "can't allocate memory", "ALLOC_FAILED"),  # of torch
)


def run(
    terms: wire.Header,
    payload: bytes,
    supervisor: int,
    output: int,
    result: int,
    channel: int | None,
) -> NoReturn:
    """Run a task in this process, just forked, and end it.

    The `terms` are its function and its limits; `output` and `result` are descriptors of pipes.
    Two messages go into `result`: the memory at the start, and what the function did.
    """
    try:
        task, pipe = os.getpid(), os.fstat(result)
        _isolate(supervisor, output)
        start = processes.memory(task)
        _limit(start.size, terms["time_s"], terms["memory_mib"], terms["address_mib"])
        first = {"size": start.size, "resident": start.resident, "files": start.files}
        _write(result, wire.pack(first))
        recording.report_to(partial(_report, result))
        header, body = _call(terms["function"], payload, channel)
        if os.getpid() != task:
            os._exit(0)  # a process that the function has forked returned from it
        end = processes.memory(task)
        header |= {"size": end.peak_size, "resident": end.peak_resident, "files": end.files}
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        processes.flush_c_streams()
        # the function may have closed our pipe and opened something else
        if os.fstat(result).st_ino == pipe.st_ino:
            _write(result, wire.pack(header, body))
            os._exit(0)
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    os._exit(1)


def is_trusted(name: str) -> bool:
    """Whether a module needs no trial before the supervisor imports it."""
    return name.partition(":")[0].partition(".")[0] in TRUSTED


def probe(name: str) -> bool:
    """Whether the import of a module does no harm to the supervisor."""
    threads = _n_threads()
    warm_up(name)
    return _n_threads() == threads and "mlflow" not in sys.modules


def warm_up(name: str) -> None:
    """Import ``"module"``; call the function of ``"module:function"``."""
    module, _, function = name.partition(":")
    loaded = importlib.import_module(module)
    if function:
        getattr(loaded, function)()


def _n_threads() -> int:
    # a thread of native code does not show in `threading`
    return len(os.listdir("/proc/self/task")) if processes.LINUX else threading.active_count()  # noqa: PTH208


def _isolate(supervisor: int, output: int) -> None:
    os.setsid()
    processes.signal_at_parents_end(signal.SIGKILL)
    if os.getppid() != supervisor:  # it ended before the line above
        os._exit(1)
    # This process adopts the orphans among its descendants while it lives, and the
    # supervisor after that, which always knows whose they are.
    processes.adopt_orphans()
    processes.die_first()
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        # line by line: the last output before a crash matters most
        open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        for fd in (1, 2)
    )
    faulthandler.enable(sys.stderr)  # the Python line of a segmentation fault


def _limit(size: int, time_s: float | None, memory_mib: float | None, address_mib: float) -> None:
    _lower(resource.RLIMIT_CORE, 0, 0)
    # the kernel counts nanoseconds: a limit of centuries would end a process at once
    if time_s is not None and time_s < 1e9:
        # Only for a supervisor that fails to act: every core busy all the time.
        seconds = math.ceil(time_s) * (os.cpu_count() or 1) + 2
        _lower(resource.RLIMIT_CPU, seconds, seconds + 2)
    if memory_mib is not None and processes.LINUX:
        bound = size + int((memory_mib + address_mib) * processes.MIB)
        # the reserve above the soft limit is needed to report that it was hit
        _lower(resource.RLIMIT_AS, bound, bound + 256 * processes.MIB)


def _lower(which: int, soft: int, hard: int) -> None:
    given = resource.getrlimit(which)
    most_soft, most_hard = (_LARGEST if n == resource.RLIM_INFINITY else n for n in given)
    hard = min(hard, most_hard, _LARGEST)
    resource.setrlimit(which, (min(soft, most_soft, hard), hard))


def _call(function: str, payload: bytes, channel: int | None) -> tuple[wire.Header, bytes]:
    try:
        module, _, name = function.partition(":")
        called = attrgetter(name)(importlib.import_module(module))
        more = () if channel is None else (socket.socket(fileno=channel),)
        value = called(json.loads(payload), *more)
        try:
            return {"status": "ok", "error": ""}, json.dumps(value).encode("ascii")
        except (TypeError, ValueError, RecursionError) as reason:
            raise TypeError(f"{function} returned a value that is not JSON: {reason}") from None
    except BaseException as error:
        if no_memory := _is_no_memory(error):
            traceback.clear_frames(error.__traceback__)
            if processes.LINUX:
                hard = resource.getrlimit(resource.RLIMIT_AS)[1]
                resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        trace = "".join(traceback.format_exception(type(error), error, frames))
        header = {"status": "out_of_memory" if no_memory else "error"}
        return header | {"error": trace[-100_000:]}, b""


def _is_no_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _NO_MEMORY)


def _report(result: int, report: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # a function may have closed what is not its own
        _write(result, wire.pack({"recorded": report}))


def _write(fd: int, message: bytes) -> None:
    rest = memoryview(message)
    while rest:
        rest = rest[os.write(fd, rest) :]

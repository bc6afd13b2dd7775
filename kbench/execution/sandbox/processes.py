"""Memory, descendants and ends of processes, as the operating system reports them.

Linux answers through ``/proc`` and ``prctl``: psutil would be slow and large in the supervisor.
Elsewhere memory comes from ``ps``, and processes that leave their session are not found.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LINUX = sys.platform == "linux"
MIB = 2**20
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MAPPED, _MIN_MAPPED = 2**25, 2**16
"""Bytes from which an array is always mapped, by default and at least."""
libc = ctypes.CDLL(None)
_PROC = Path("/proc")
# a kernel may be built without this file
_HAS_CHILDREN = (_PROC / f"{os.getpid()}/task/{os.getpid()}/children").exists()


_SIZES = ("VmSize", "VmPeak", "VmHWM", "RssShmem", "RssFile")


class Memory(NamedTuple):
    """Bytes of one process: address space and resident part, present and peak.

    `shared` is the resident part of shared memory: memfds, files in ``/dev/shm`` and shared
    anonymous mappings. `files` are pages of mapped files, which the system takes back when it needs
    memory; `resident` is without them, `peak_resident` is not: the kernel keeps no other peak.
    """

    size: int = 0
    peak_size: int = 0
    peak_resident: int = 0
    shared: int = 0
    files: int = 0
    resident: int = 0


def signal_at_parents_end(number: int) -> None:
    """Let the kernel send this process a signal when its parent ends: the thread that forked it."""
    if LINUX:
        libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its parent."""
    if LINUX:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_first() -> None:
    """Let the kernel kill this process first when the machine is out of memory."""
    with contextlib.suppress(OSError):
        (_PROC / "self/oom_score_adj").write_text("1000")


def map_arrays(share: float) -> None:
    """Let arrays of a sample of the rows be allocated as those of all rows, where glibc can.

    Large arrays are unmapped once they are free. Of smaller ones, holes and an end stay mapped.
    """
    with contextlib.suppress(AttributeError):
        n_bytes = max(_MIN_MAPPED, int(share * _MAPPED))
        libc.mallopt(_M_MMAP_THRESHOLD, n_bytes)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * n_bytes)


def flush_c_streams() -> None:
    """Flush the output of C code, which ``os._exit`` would drop."""
    libc.fflush(None)


def memory(pid: int) -> Memory:
    """Memory of a process; zeros if it is gone."""
    if not LINUX:
        done = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True)
        resident = int(done.stdout.strip() or 0) * 1024
        return Memory(resident=resident, peak_resident=resident)
    sizes = _read_sizes(pid, "status")
    resident = sizes.get("VmRSS", 0) - sizes.get("RssFile", 0)
    size, peak_size, peak, shared, files = (sizes.get(name, 0) for name in _SIZES)
    return Memory(size, peak_size, peak, shared, files, resident)


def proportional_memory(pid: int) -> int:
    """Resident bytes without mapped files; a page is divided by the processes that share it."""
    sizes = _read_sizes(pid, "smaps_rollup")
    return sizes.get("Pss", 0) - sizes.get("Pss_File", 0)


def _read_sizes(pid: int, file: str) -> dict[str, int]:
    sizes = {}
    with contextlib.suppress(OSError):
        for line in (_PROC / f"{pid}/{file}").read_text().splitlines():
            if line.endswith(" kB"):
                name, _, size = line.removesuffix(" kB").partition(":")
                sizes[name] = int(size) * 1024
    return sizes


def pulse(pid: int) -> object:
    """Return counters that change whenever a process runs; None if they are unknown.

    A process that waits but wakes up regularly changes them too; a stopped one does not.
    """
    if not LINUX:
        done = subprocess.run(
            ["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True
        )
        return "stopped" if done.stdout.startswith("T") else None
    try:
        # a kernel may not count switches
        status = (_PROC / f"{pid}/status").read_text()
        switches = [line for line in status.splitlines() if "ctxt_switches" in line]
        # switches, and CPU time for a process that nothing interrupts
        return (*switches, *_stat(pid)[11:13]) if switches else None
    except OSError:
        return None


def list_children(pid: int) -> list[int]:
    """Direct children of a process, zombies included."""
    if not LINUX:
        return []
    if not _HAS_CHILDREN:
        return [child for child in _all() if _parent(child) == pid]
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (ten times slower)
            with contextlib.suppress(OSError):
                pids += map(int, (_PROC / f"{pid}/task/{thread}/children").read_text().split())
    return pids


def descendants(pid: int) -> list[int]:
    """Children of a process, their children, and so on."""
    pids = list_children(pid)
    for child in pids:
        pids += list_children(child)  # grows while it is walked
    return pids


def family(pid: int) -> Iterator[int]:
    """Yield a process, and then its descendants."""
    yield pid
    yield from descendants(pid)


def list_marked(mark: str) -> list[int]:
    """Processes with ``mark`` in their environment, except this one."""
    pids = []
    for pid in _all():
        with contextlib.suppress(OSError):
            if mark.encode() in (_PROC / f"{pid}/environ").read_bytes().split(b"\0"):
                pids.append(pid)
    return [pid for pid in pids if pid != os.getpid()]


def kill(pid: int) -> None:
    """Kill a process and the group that it leads, if they exist."""
    kill_group(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """Kill the remaining processes of the group that a process has led."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def signal_name(number: int) -> str:
    """``"SIGSEGV"``; the number where a signal has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _all() -> list[int]:
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()] if LINUX else []


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(_stat(pid)[1])
    return 0


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the third (the state) on."""
    # the command, in parentheses, may hold anything
    return (_PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()

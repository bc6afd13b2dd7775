"""The machine that takes the times: CPU, cores, memory, versions, calibration, contention.

Times mean something only together with the machine that took them. Nothing heavy is imported here.
A value that the operating system does not report (outside Linux, for example) is 0, empty or None.
"""

import contextlib
import hashlib
import math
import os
import platform
import statistics
import time
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

PROC = Path("/proc")
_CPUS = Path("/sys/devices/system/cpu")
_CGROUPS = Path("/sys/fs/cgroup")
_DISTRIBUTIONS = ("kbench-core", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Machine:
    """Everything that decides how long a computation takes.

    The functions of this module describe the fields: `machine_id` the id, `cpu_model`
    the CPU, others the fields of their names. `memory_mib` is in units of 2**20 bytes.
    """

    id: str
    host: str
    cpu: str
    system: str
    physical_cores: int
    logical_cores: int
    memory_mib: float
    versions: dict[str, str]


def describe() -> Machine:
    """Describe this machine.

    >>> describe().id == machine_id()
    True
    """
    return Machine(
        id=machine_id(),
        host=platform.node(),
        cpu=cpu_model(),
        system=platform.platform(),
        physical_cores=physical_cores(),
        logical_cores=logical_cores(),
        memory_mib=memory_mib(),
        versions=versions(),
    )


@cache
def machine_id() -> str:
    """Identify the machine, the same in every process and after a restart.

    The 12 hexadecimal digits are a hash of host name, CPU model and number of cores
    (all cores, not only those that this process may use).
    """
    facts = f"{platform.node()}\n{_cpuinfo('model name', 'Model')}\n{os.cpu_count()}"
    return hashlib.sha256(facts.encode()).hexdigest()[:12]


def cluster_id() -> str:
    """Identify computations of clusters that this machine started, on whatever workers.

    It is ``cluster-`` and the `machine_id`: workers come and go, and their times must
    not be taken for times of this machine.
    """
    return f"cluster-{machine_id()}"


@cache
def cpu_model() -> str:
    """Name and widest vectors of the CPU, such as ``"AMD EPYC 9354 (avx512f)"``.

    Vectors choose the functions of BLAS that run, and so the last digits of results. In virtual
    machines, different CPUs may report the same name.
    """
    flags = _cpuinfo("flags").split()
    vectors = next((f" ({each})" for each in ("avx512f", "avx2") if each in flags), "")
    return _cpuinfo("model name", "Model") + vectors


def _cpuinfo(*keys: str) -> str:
    """Return the first value of one of the keys that the CPU reports."""
    for line in lines(PROC / "cpuinfo"):
        if line.startswith(keys):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def logical_cores() -> int:
    """Hardware threads that this process may use, by its affinity and cgroup quota."""
    return _within_quota(len(_usable()))


def physical_cores() -> int:
    """Cores that this process may use, threads of one core counted once.

    The number of tasks to run concurrently: two threads of a core share its
    arithmetic units. Affinity and cgroup quota count. If the topology is unknown, this is
    the number of logical cores.
    """
    cores = {_text(_CPUS / f"cpu{n}/topology/thread_siblings_list") or str(n) for n in _usable()}
    return _within_quota(len(cores))


def memory_mib() -> float:
    """Memory that this process may use, in units of 2**20 bytes; 0 if unknown."""
    import psutil

    limits = [_text(folder / "memory.max") for folder in _cgroup_folders()]
    sizes = [psutil.virtual_memory().total, *(int(each) for each in limits if each.isdigit())]
    return min(filter(None, sizes), default=0) / 2**20


@cache
def versions() -> dict[str, str]:
    """Versions of Python, kbench, numpy, scipy, scikit-learn and BLAS, where installed.

    They are listed by the name of the distribution; "blas" is the library that numpy
    was built with.
    """
    installed = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    with contextlib.suppress(ImportError, KeyError, TypeError):
        import numpy as np

        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        installed["blas"] = f"{blas['name']} {blas['version']}"
    return installed


def calibrate(repeats: int = 7) -> float:
    """Time a small fixed computation, to compare machines and moments.

    It consists of products of matrices, elementwise functions and a sort, which take
    equally long, on arrays that stay in the cache and are small enough for BLAS to use
    one thread. The result is the median of the wall-clock seconds (near 0.01).
    """
    import numpy as np

    matrix = np.random.default_rng(0).standard_normal((60, 60))
    row = matrix.ravel()

    def work() -> float:
        start = time.perf_counter()
        for _ in range(100):
            matrix @ matrix
            np.exp(row).sum()
            np.sort(row)
        return time.perf_counter() - start

    work()  # loads code and wakes the CPU
    return statistics.median(work() for _ in range(repeats))


def _usable() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _within_quota(cores: int) -> int:
    for folder in _cgroup_folders():
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            cores = min(cores, math.ceil(int(quota) / int(period)))
    return max(1, cores)


def _cgroup_folders() -> list[Path]:
    """Folder of this process's cgroup (version 2) and those above it."""
    for line in lines(PROC / "self/cgroup"):
        if line.startswith("0::"):
            folder = _CGROUPS / line[3:].lstrip("/")
            return [path for path in (folder, *folder.parents) if path.is_relative_to(_CGROUPS)]
    return []


def lines(path: Path) -> list[str]:
    """Read the lines of a small file; empty if it cannot be read."""
    return _text(path).splitlines()


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


STEAL = 0.02
"""Share of CPU steal time above which times are unreliable."""

STALLED = 0.2
"""Share of the time with a process waiting for a CPU above which times are unreliable."""


@dataclass(frozen=True)
class Snapshot:
    """Counters of the whole machine at one moment; compare two with `contention`."""

    time_s: float
    """Monotonic clock."""
    running: int
    """Processes that run or wait for a CPU now; 0 if unknown."""
    cpu_ticks: int
    steal_ticks: int
    """Time of all CPUs since the start, and how much of it was steal time."""
    stalled_s: float | None
    """Seconds since the start in which some process waited for a CPU; None if the kernel does not
    count them."""


@dataclass(frozen=True)
class Contention:
    """Shares of CPU steal time, and of time with a process that waited for a CPU.

    `reasons` say why times taken meanwhile are unreliable; empty if they are reliable.
    """

    steal: float
    stalled: float | None
    reasons: tuple[str, ...] = ()


def snapshot() -> Snapshot:
    """Read the counters of the machine (about 0.1 ms)."""
    ticks = [0] * 10
    running = 0
    for line in lines(PROC / "stat"):
        if line.startswith("cpu "):
            # user, nice, system, idle, iowait, irq, softirq, steal; guests are in user
            ticks = [int(count) for count in line.split()[1:9]]
        elif line.startswith("procs_running"):
            running = int(line.split()[1])
    stalled = None
    for line in lines(PROC / "pressure/cpu"):
        if line.startswith("some"):
            stalled = int(line.rpartition("total=")[2]) / 1e6
    return Snapshot(
        time_s=time.monotonic(),
        running=running,
        cpu_ticks=sum(ticks),
        steal_ticks=ticks[7] if len(ticks) > 7 else 0,
        stalled_s=stalled,
    )


def contention(
    before: Snapshot, after: Snapshot, slots: int = 1, waited: float | None = None
) -> Contention:
    """Decide whether times taken between two snapshots are reliable.

    `slots` is the number of tasks that ran concurrently; `waited` the share of the timed
    steps that their process spent off the CPU. If it is available, it counts instead of
    the waiting of other processes: these may be kbench's writer, which has low priority.

    >>> quiet = Snapshot(0.0, 1, 0, 0, 0.0)
    >>> contention(quiet, Snapshot(10.0, 1, 2000, 100, 0.1)).reasons
    ('5% of the CPU time was stolen by the host (steal time)',)
    """
    ticks = after.cpu_ticks - before.cpu_ticks
    steal = (after.steal_ticks - before.steal_ticks) / ticks if ticks > 0 else 0.0
    elapsed = after.time_s - before.time_s
    stalled = None
    if before.stalled_s is not None and after.stalled_s is not None and elapsed > 0:
        stalled = min(1.0, (after.stalled_s - before.stalled_s) / elapsed)

    cores, physical = _cores()
    reasons = []
    if slots > physical:
        reasons.append(f"{slots} slots on {physical} physical cores")
    if steal > STEAL:
        reasons.append(f"{steal:.0%} of the CPU time was stolen by the host (steal time)")
    if waited is not None:
        if waited > STALLED:
            reasons.append(f"the timed steps waited for a CPU during {waited:.0%} of their time")
    elif stalled is not None and stalled > STALLED:
        reasons.append(f"processes waited for a CPU during {stalled:.0%} of the time")
    # counted at both ends only: used where nothing better is known
    elif stalled is None and min(before.running, after.running) > cores:
        reasons.append(f"{min(before.running, after.running)} processes on {cores} logical cores")
    return Contention(steal, stalled, tuple(reasons))


@cache
def _cores() -> tuple[int, int]:
    """Return the numbers of logical and physical cores, read from many small files once."""
    return logical_cores(), physical_cores()

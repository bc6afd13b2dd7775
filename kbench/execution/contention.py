"""Contention on the machine between two snapshots of its counters."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from kbench.machine import PROC, lines, logical_cores, physical_cores

STEAL = 0.02
"""Share of CPU time of other guests of the host above which times are doubted."""

STALLED = 0.2
"""Share of the time with a process waiting for a CPU above which times are doubted."""


@dataclass(frozen=True)
class Snapshot:
    """Counters of the whole machine at one moment; compare two with `contention`."""

    time_s: float
    """Monotonic clock."""
    running: int
    """Processes that run or wait for a CPU now; 0 if unknown."""
    cpu_ticks: int
    steal_ticks: int
    """Time of all CPUs since the start, and the share of other guests of the host."""
    stalled_s: float | None
    """Seconds since the start in which some process waited for a CPU; None if the kernel does not
    count them."""


@dataclass(frozen=True)
class Contention:
    """Shares of CPU time of other guests, and of time with a process that waited for a CPU.

    `reasons` to doubt times taken meanwhile are empty if there are none.
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
    steps that their process spent off the CPU. Where it is known, it counts instead of
    the waiting of other processes: these may be kbench's writer, which has low priority.

    >>> quiet = Snapshot(0.0, 1, 0, 0, 0.0)
    >>> contention(quiet, Snapshot(10.0, 1, 2000, 100, 0.1)).reasons
    ('5% of the CPU time went to other guests of the host',)
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
        reasons.append(f"{steal:.0%} of the CPU time went to other guests of the host")
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

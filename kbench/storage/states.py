"""States of files, which tell in a microsecond that a file is as it was.

A state is not relied on where it can lie: on a file system in memory, where a write through a
memory map changes no time, and for a file that changed in the last seconds, which may change
again within one tick of the clock.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import cache
from pathlib import Path

RECENT_NS = 2_000_000_000
"""Age up to which a change may be followed by another one with the same times."""

State = list[int]


def state_of(path: str | Path) -> State | None:
    """Return device, inode, size and times of a file or folder; None where it is not there."""
    try:
        known = os.stat(path)  # noqa: PTH116 (thousands of files: Path takes twice as long)
    except (OSError, ValueError):
        return None
    return [known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns]


def may_lie(state: State) -> bool:
    """Tell whether a file may have changed although its state has not."""
    recent = time.time_ns() - RECENT_NS
    return state[0] in _devices_in_memory() or max(state[3:]) > recent


@cache
def _devices_in_memory() -> frozenset[int]:
    devices = set()
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            mount, _, described = line.partition(" - ")
            if described.split()[0] in ("tmpfs", "ramfs", "hugetlbfs"):
                major, _, minor = mount.split()[2].partition(":")
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)

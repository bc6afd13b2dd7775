"""Locks that name their holders."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass

from kbench.messages import masked, printable

_HOLDERS_BYTES = 2**15


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    `command` is its command line, `since` the Unix time at which it got the lock.
    """

    pid: int
    host: str
    command: str
    since: float


def named(holder: Holder | None) -> str:
    """Name the holder of a lock, for a message."""
    if holder is None:
        return "another kbench"
    # again: an earlier version wrote the command as it was
    command = " ".join(map(masked, holder.command.split(" ")))
    return printable(f"{command} (process {holder.pid} on {holder.host})")


def try_lock(fd: int, shared: bool) -> bool:
    """Take a lock if nobody holds it."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_holder(fd: int, shared: bool) -> None:
    """Record this process as the holder: the only line, or one beside those of others."""
    holder = Holder(os.getpid(), platform.node(), " ".join(map(masked, sys.argv)), time.time())
    line = json.dumps(asdict(holder)).encode() + b"\n"
    if shared:
        # the others' lines stay, without those of processes that are gone
        alive = [json.dumps(asdict(other)).encode() + b"\n" for other in _holders(fd)]
        line = b"".join(alive)[-_HOLDERS_BYTES:] + line
    os.pwrite(fd, line, 0)
    os.ftruncate(fd, len(line))


def read_holder(fd: int) -> Holder | None:
    """Return the process that has held the lock longest; None where it is not known."""
    return next(iter(_holders(fd)), None)


def _holders(fd: int) -> list[Holder]:
    holders = []
    for line in os.pread(fd, 2 * _HOLDERS_BYTES, 0).splitlines():
        with contextlib.suppress(ValueError, TypeError):
            holder = Holder(**json.loads(line))
            if _may_live(holder):
                holders.append(holder)
    return holders


def _may_live(holder: Holder) -> bool:
    """Whether a holder may still run; a process of another machine always may."""
    import psutil

    return holder.host != platform.node() or psutil.pid_exists(holder.pid)

"""The process that writes a run, and whether it still exists."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path


def owner() -> dict[str, str]:
    """Return the tags that identify the writing process."""
    return {
        "kbench.host": socket.gethostname(),
        "kbench.pid": str(os.getpid()),
        "kbench.pid_start": process_start(os.getpid()),
    }


def owner_is_gone(tags: Mapping[str, str]) -> bool:
    """Return whether the writer of a run has certainly ended."""
    pid = tags.get("kbench.pid", "")
    if tags.get("kbench.host") != socket.gethostname() or not pid.isdigit():
        return False
    return process_start(int(pid)) != tags.get("kbench.pid_start")


def process_start(pid: int) -> str:
    """Return the start of a process, different for a later process of that number.

    Empty where there is no such process.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
        command = ["ps", "-o", "lstart=", "-p", str(pid)]  # macOS
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"  # the name may hold blanks


def user() -> str:
    """Return the name of the user, as MLflow shows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"

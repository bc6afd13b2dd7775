"""Processes that tests wait for."""

import sys
import time
from pathlib import Path

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")


def gone(pid):
    """Tell whether a process has ended."""
    try:
        # whoever has inherited it may not have asked how it ended
        return (Path("/proc") / f"{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until(condition, seconds=60.0):
    """Wait for a condition; returns what it gave last."""
    end = time.monotonic() + seconds
    while not (done := condition()) and time.monotonic() < end:
        time.sleep(0.005)
    return done

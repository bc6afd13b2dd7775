"""Sandboxes: each task runs in a separate process, with limits on time and memory.

There are three kinds of process::

    client       the parent (kbench itself, a Dask worker, a notebook): `Sandbox.run`
    supervisor   warm: modules imported, one thread, no data; forks, watches and kills
    task         forked per call; leads a session; runs one function and ends

Whatever a task does (hang, crash, exhaust memory, leave processes behind), the
client gets a `CallOutcome` and the other tasks continue.
"""

from kbench.execution.sandbox.child import BACKSTOP_MIB
from kbench.execution.sandbox.client import CallOutcome, Sandbox

__all__ = ["BACKSTOP_MIB", "CallOutcome", "Sandbox"]

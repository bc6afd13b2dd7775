"""One task in a process of its own, with limits on time and memory.

Three kinds of process take part::

    client       the parent (kbench itself, a Dask worker, a notebook): `Sandbox.run`
    supervisor   warm: modules imported, one thread, no data; forks, watches and kills
    task         forked per call; a session of its own; runs one function and ends

Whatever a task does (hang, crash, exhaust memory, leave processes behind), the
client gets an `Outcome` and the other tasks go on.
"""

from kbench.execution.sandbox.client import Outcome, Sandbox

__all__ = ["Outcome", "Sandbox"]

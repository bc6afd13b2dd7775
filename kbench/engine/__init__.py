"""Tasks over slots: of this machine, or of the workers of a Dask cluster.

::

    runner ──Request──▶ slots (threads here)          ──▶ measure ──▶ Sandbox ──▶ Answer
           └─Request──▶ Cluster (threads of workers)  ──▶ measure ──▶ Sandbox ──▶ Answer

A `Request` is a task as plain values, an `Answer` what became of it with the host
that computed it. Only `_workers` and `_worker` import Dask.
"""

from kbench.engine._cluster import Cluster
from kbench.engine._code import differences, parts
from kbench.engine._measure import Answer, Host, Request, measure
from kbench.engine._slots import run
from kbench.engine._workers import Terms

__all__ = [
    "Answer",
    "Cluster",
    "Host",
    "Request",
    "Terms",
    "differences",
    "measure",
    "parts",
    "run",
]

"""Tasks over slots: of this machine, or of the workers of a Dask cluster.

::

    runner ──Request──▶ slots (threads here)          ──▶ measure ──▶ Sandbox ──▶ Answer
           └─Request──▶ Cluster (threads of workers)  ──▶ measure ──▶ Sandbox ──▶ Answer

A `Request` is a task as plain values, an `Answer` what became of it with the host
that computed it. Only `_workers` and `_worker` import Dask.
"""

from kbench.execution.engine.dask_dispatch import Cluster
from kbench.execution.engine.dask_pool import Terms
from kbench.execution.engine.local import run
from kbench.execution.engine.request import Answer, Host, Request, measure
from kbench.execution.engine.same_code import differences, parts

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

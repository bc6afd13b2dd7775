"""Two engines, one interface: slots of this machine, or of the workers of a Dask cluster.

::

    runner ──Task──▶ LocalEngine (threads here)         ──▶ measure ──▶ Sandbox ──▶ Answer
           └─Task──▶ DaskEngine (threads of workers)    ──▶ measure ──▶ Sandbox ──▶ Answer

A task travels in a `Request`; an `Answer` has its outcome and the host that computed
it. Only `dask_pool` and `dask_worker` import Dask.
"""

from kbench.execution.engine.dask_dispatch import DaskEngine
from kbench.execution.engine.interface import Engine, Terms
from kbench.execution.engine.local import LocalEngine, over_slots
from kbench.execution.engine.request import Answer, Host, Request, measure
from kbench.execution.engine.same_code import differences, parts
from kbench.execution.engine.this_machine import ThisMachine

__all__ = [
    "Answer",
    "DaskEngine",
    "Engine",
    "Host",
    "LocalEngine",
    "Request",
    "Terms",
    "ThisMachine",
    "differences",
    "measure",
    "over_slots",
    "parts",
]

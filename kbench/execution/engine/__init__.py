"""Engines: they compute tasks in slots of this machine, or wherever a feature has some.

::

    runner ──Task──▶ LocalEngine (threads here)    ──▶ measure ──▶ Sandbox ──▶ Answer
           └─Task──▶ an engine of a feature        ──▶ measure ──▶ Sandbox ──▶ Answer

A task travels in a `Request`; an `Answer` has its outcome and the host that computed it.
"""

from kbench.execution.engine.interface import Engine, EngineOffer, Terms
from kbench.execution.engine.local import LocalEngine, over_slots
from kbench.execution.engine.request import Answer, Host, Request, measure
from kbench.execution.engine.this_machine import ThisMachine

__all__ = [
    "Answer",
    "Engine",
    "EngineOffer",
    "Host",
    "LocalEngine",
    "Request",
    "Terms",
    "ThisMachine",
    "measure",
    "over_slots",
]

"""Costs in words."""

from __future__ import annotations

from kbench.messages import of_memory
from kbench.records import Cost


def too_large(
    cost: Cost,
    limit_mb: float,
    name: str = "",
    largest: int | None = None,
    in_blocks: int | None = None,
) -> str:
    """Say that a task does not fit into the limit of memory, and what would.

    An embedding of `in_blocks` columns is never one matrix, so that it fits again.

    >>> from kbench.records import Estimate
    >>> cost = Cost(Estimate(41_984, 39_000, 45_000))
    >>> too_large(cost, 4096, "n_components", 2000)
    'needs 41 GB, the limit is 4 GB; n_components up to about 2,000 should fit'
    >>> too_large(cost, 4096, "n_components", in_blocks=3000)
    'needs 41 GB, the limit is 4 GB; n_components from 3,000 on should fit, in blocks'
    """
    least = "at least " if cost.is_least else ""
    text = f"needs {least}{of_memory(cost.memory_mb.value)}, the limit is {of_memory(limit_mb)}"
    narrow = [] if largest is None else [f"up to about {largest:,}"]
    wide = [] if in_blocks is None else [f"from {in_blocks:,} on"]
    if not narrow + wide:
        return text
    which = " and ".join(narrow + wide)
    return f"{text}; {name} {which} should fit{', in blocks' if wide else ''}"

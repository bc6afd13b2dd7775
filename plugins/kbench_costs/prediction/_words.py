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
    'needs 41 GB, the limit is 4 GB; the largest n_components that fits is 2,000'
    >>> too_large(cost, 4096, "n_components", 2000, in_blocks=3000)
    'needs 41 GB, the limit is 4 GB; n_components up to 2,000 fit, and from 3,000 on, in blocks'
    """
    least = "at least " if cost.is_least else ""
    text = f"needs {least}{of_memory(cost.memory_mb.value)}, the limit is {of_memory(limit_mb)}"
    if in_blocks is not None:
        smaller = "" if largest is None else f"{name} up to {largest:,} fit, and "
        return f"{text}; {smaller}from {'' if smaller else f'{name} = '}{in_blocks:,} on, in blocks"
    return text if largest is None else f"{text}; the largest {name} that fits is {largest:,}"

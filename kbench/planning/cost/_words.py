"""Costs in words."""

from __future__ import annotations

from kbench.records import Cost, Estimate


def of_memory(megabytes: float) -> str:
    """Write an amount of memory with two digits; 1 GB is 1024 MB.

    >>> of_memory(41_984), of_memory(4096), of_memory(1536), of_memory(512), of_memory(2_200_000)
    ('41 GB', '4 GB', '1.5 GB', '512 MB', '2,100 GB')
    """
    if megabytes < 1024:
        return f"{_digits(megabytes, 3)} MB"
    return f"{_digits(megabytes / 1024, 2)} GB"


def of_seconds(seconds: float) -> str:
    """Write a time with two digits.

    >>> of_seconds(0.123), of_seconds(41.3), of_seconds(640), of_seconds(7300), of_seconds(1e6)
    ('0.12 s', '41 s', '11 min', '2 h', '280 h')
    """
    if seconds < 100:
        return f"{_digits(seconds, 2)} s"
    if seconds < 6000:
        return f"{_digits(seconds / 60, 2)} min"
    return f"{_digits(seconds / 3600, 2)} h"


def of_interval(estimate: Estimate) -> str:
    """Write a time with the ends of its interval.

    >>> of_interval(Estimate(41.3, 30.2, 55.9))
    '41 s (30 s to 56 s)'
    """
    low, high = of_seconds(estimate.low), of_seconds(estimate.high)
    return f"{of_seconds(estimate.value)} ({low} to {high})"


def too_large(
    cost: Cost,
    limit_mb: float,
    name: str = "",
    largest: int | None = None,
    in_blocks: int | None = None,
) -> str:
    """Say that a task does not fit into the limit of memory, and what would.

    An embedding of `in_blocks` columns is never one matrix, so that it fits again.

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


def _digits(value: float, digits: int) -> str:
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"

"""The largest number of components that fits into a limit of memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

MARGIN = 0.95
"""Share of the limit that is aimed at."""


def next_width(needs: Mapping[int, float], limit_mb: float) -> int | None:
    """Return a smaller width to try; None if one fits already, or if none can.

    `needs` has the memory that was predicted for widths.
    """
    width, need = min(needs.items())
    if need <= MARGIN * limit_mb or width <= 1:
        return None
    return min(width - 1, _rounded(width * MARGIN * limit_mb / need)) or None


def largest_width(needs: Mapping[int, float], limit_mb: float) -> int | None:
    """Return the largest width that fits, in two digits; None where none is known to fit.

    Between two widths of which one fits, memory grows by a power law.

    >>> largest_width({8000: 41.0, 2000: 12.0, 500: 3.0}, 4.0)
    630
    """
    fit = {width: need for width, need in needs.items() if need <= MARGIN * limit_mb}
    if not fit:
        return None
    width, need = max(fit.items())
    beyond, its_need = min((w, n) for w, n in needs.items() if w > width)
    exponent = math.log(its_need / need) / math.log(beyond / width)
    if exponent <= 0:
        return width
    return max(width, _rounded(width * (MARGIN * limit_mb / need) ** (1 / exponent)))


def rounded_up(width: float) -> int:
    """Round up to two digits, and to more than `width`.

    >>> rounded_up(699.05), rounded_up(700), rounded_up(4000)
    (700, 710, 4100)
    """
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, width))) - 1)
    return (int(width // unit) + 1) * unit


def _rounded(width: float) -> int:
    """Round down to two digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(1.0, width))) - 1)
    return int(width // unit) * unit

"""The choice of results to recompute, which the author of a bundle cannot foresee."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

Unit = tuple[str, int]
"""Key of a cell, and number of a split."""


def new_nonce() -> str:
    """Return 16 random hexadecimal digits."""
    return secrets.token_hex(8)


def sample(units: Iterable[Unit], bundle_id: str, nonce: str, k: int) -> list[Unit]:
    """Return k results, in the order of a hash of the bundle, the nonce and the result.

    The nonce is drawn after the bundle was made, so that its author cannot know which
    results are recomputed. The same nonce gives the same choice.

    >>> sample([("a", 0), ("a", 1), ("b", 0)], "id", "00", 2) == sample(
    ...     [("b", 0), ("a", 1), ("a", 0)], "id", "00", 2)
    True
    """

    def place(unit: Unit) -> bytes:
        key, split = unit
        return hashlib.sha256(f"{bundle_id}/{nonce}/{key}/{split}".encode()).digest()

    return sorted(units, key=place)[:k]


def noticed(share: float, k: int) -> float:
    """Return the least probability to choose a forged result, of a share of forged ones.

    Choices are without replacement, which can only raise it.

    >>> round(noticed(0.1, 5), 4)
    0.4095
    """
    return 1.0 - (1.0 - share) ** k

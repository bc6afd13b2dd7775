"""Limits on what a file of results may expand to, by its size: a few bytes are not gigabytes.

The project's own bundles unpack to 11 times their size, and become 51 times as many characters of
JSON, one result after the other, at most; a rows file, which is not packed, 11 times. The factors
here are several times larger.
"""

from __future__ import annotations

from dataclasses import dataclass

_FREE = 8 << 20
"""Bytes that a small file may take too."""

_UNPACKED, _RESULTS_OF_PACKED, _RESULTS_OF_TEXT, _LISTS, _PREDICTIONS = 50, 300, 100, 10, 300
"""Factors of the size; lists and objects are counted, and not their bytes."""

_FREE_LISTS = 200_000

MOST_BYTES = 1 << 30
"""Bytes of all files of a bundle together."""

MOST_EXPANDED = 512 << 20
"""Characters of all results as JSON; in memory each takes about five bytes."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of a file with so many bytes, packed or not.

    >>> Bounds(12_000, is_packed=True).unpacked >> 20
    8
    """

    n_bytes: int
    is_packed: bool

    @property
    def unpacked(self) -> int:
        """Bytes of all files in it."""
        return min(MOST_BYTES, _FREE + _UNPACKED * self.n_bytes)

    @property
    def results(self) -> int:
        """Characters of its results."""
        factor = _RESULTS_OF_PACKED if self.is_packed else _RESULTS_OF_TEXT
        return min(MOST_EXPANDED, _FREE + factor * self.n_bytes)

    @property
    def lists(self) -> int:
        """Lists and objects of all lines."""
        return _FREE_LISTS + _LISTS * self.n_bytes

    @property
    def predictions(self) -> int:
        """Bytes of all predictions."""
        return min(MOST_BYTES, _FREE + _PREDICTIONS * self.n_bytes)

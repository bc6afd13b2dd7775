"""Columns of a user's table: names that occur twice, and free text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

TEXT_ABOVE = 50
"""A column with more different strings than this, and more than half as many as
rows, is taken for text."""


def is_free_text(different: Sequence[Any], n_rows: int) -> bool:
    """Distinguish free text and dates, which are not features, from names of categories.

    `different` are the different values of a column that is neither numeric nor
    declared to be nominal, without missing ones. Values other than strings and
    truth values are not categories; nor are more than `TEXT_ABOVE` different ones
    that are more than half as many as rows.

    >>> is_free_text(["red", "blue"], n_rows=3)
    False
    >>> is_free_text([f"comment {i}" for i in range(60)], n_rows=100)
    True
    """
    mixed = {type(value) for value in different} - {str, bool}
    return bool(mixed) or (len(different) > TEXT_ABOVE and len(different) > n_rows / 2)


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in alphabetical order.

    >>> repeated(["b", "a", "b"])
    ['b']
    """
    return sorted(name for name, n in Counter(names).items() if n > 1)

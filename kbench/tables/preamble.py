"""Lines of a CSV file before that of column names; this module leaves with a model."""

from __future__ import annotations

import csv
import re

PREAMBLE = 1 << 16
"""Characters in which lines before that of column names are looked for."""

SEP = re.compile(r'"?sep=(.)"?[\s;,]*', re.IGNORECASE)
"""A first line that names the delimiter."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def preamble(text: str) -> tuple[int, str]:
    r"""Count the lines before that of column names, and return the delimiter that one names.

    They begin with ``#``, unless the only one of them is a line of names itself; or the first
    is ``sep=;``, as Excel takes it.

    >>> preamble("sep=;\na;b\n1;2"), preamble("# a\n# b\nc,d"), preamble("#a,b\n1,2")
    ((1, ';'), (2, ''), (0, ''))
    """
    lines = text[:PREAMBLE].splitlines()
    named = SEP.fullmatch(lines[0]) if lines else None
    n = 1 if named else 0
    while n < len(lines) and lines[n].startswith("#"):
        n += 1
    following = next(csv.reader(lines[n : n + 1], delimiter=named[1] if named else ","), [])
    has_numbers = any(_NUMBER.fullmatch(value.strip()) for value in following)
    if n - bool(named) == 1 and (has_numbers or n == len(lines)):
        n -= 1
    return n, named[1] if named else ""

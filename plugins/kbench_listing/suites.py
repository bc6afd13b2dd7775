"""What suite files say of themselves, read without checking them."""

from __future__ import annotations

import contextlib
import re
import tomllib
from typing import Any

from kbench.features import first_sentence

_TABLE = re.compile(r"^\s*\[", re.MULTILINE)
"""The header of a table in TOML, or a line of a nested list."""


def summary_of(text: str) -> str:
    r"""Return the first sentence of a suite's description, or of the comment it begins with.

    Examples
    --------
    >>> summary_of("# Small sets, for a look\n# in 20 seconds. Not more.\nname = 'x'")
    'Small sets, for a look in 20 seconds.'
    """
    described = _description(text)
    if isinstance(described, str) and described:
        return first_sentence(described)
    comment = []
    for line in text.splitlines():
        if not line.startswith("#") or not line.strip("# "):
            break
        comment.append(line.lstrip("#"))
    return first_sentence("\n".join(comment))


def _description(text: str) -> Any:
    """Return a suite's ``description``, which can only stand before the first table."""
    # a cut inside a value of several lines leaves invalid TOML: then all of it is parsed
    for part in (_TABLE.split(text, maxsplit=1)[0], text):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(part).get("description")
    return None

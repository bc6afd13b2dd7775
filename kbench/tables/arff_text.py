"""Lines of ARFF files and the values in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbench.tables.table import Column

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""

_VALUE = re.compile(rf"\s*(?:({QUOTED})|([^,'\"]*?))\s*(,|$)", re.S)

_ESCAPE = re.compile(r"\\(.)", re.S)

_NEEDS_CARE = (b"'", b'"', b"\\", b"%")


class LineError(ValueError):
    """A line that is not ARFF; the message says why."""


def unquoted(token: str) -> str:
    """Return a token without its quotes and escapes."""
    if token[:1] in ("'", '"'):
        return _ESCAPE.sub(r"\1", token[1:-1])
    return token


def text_of(raw: bytes, number: int) -> str:
    """Decode a line, or say which one is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise LineError(f"line {number} is not UTF-8") from None


def lines_of(block: bytes, start: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block that say something, with their numbers."""
    for number, raw in enumerate(block.split(b"\n"), start):
        line = text_of(raw, number).strip()
        if line and not line.startswith("%"):
            yield number, line


def tokens_of(line: str, number: int) -> list[tuple[str, bool]]:
    """Split at commas outside quotes; each value with whether it stood in quotes."""
    values, place = [], 0
    while True:
        found = _VALUE.match(line, place)
        if not found:
            raise LineError(f"line {number}: {line[place : place + 40]!r} is not a value")
        quoted = found[1] is not None
        values.append((unquoted(found[1]) if quoted else found[2], quoted))
        place = found.end()
        if not found[3]:
            return values


def number_of(token: str, quoted: bool, column: Column, number: int) -> float:
    """Return the value of a token of a numeric column; NaN where it is missing."""
    if not quoted and token in ("?", ""):
        return float("nan")
    try:
        return float(token)
    except ValueError:
        raise LineError(
            f"line {number}: {token[:40]!r} in the numeric column {column.name!r}"
        ) from None


def code_of(token: str, quoted: bool, column: Column, known: dict[str, int], number: int) -> int:
    """Return the place of a token among the values of its column; -1 where it is missing."""
    code = known.get(token)
    if code is None and (quoted or token not in ("?", "")):
        code = known.get(token.strip())
        if code is None:
            raise LineError(
                f"line {number}: {token[:40]!r} is not among the declared values of {column.name!r}"
            )
    return -1 if code is None else code


def needs_care(block: bytes) -> bool:
    """Tell whether a block has quotes, escapes or comments."""
    return any(sign in block for sign in _NEEDS_CARE)


class Body:
    """What both kinds of files share: the declared values by name."""

    def __init__(self, columns: list[Column]):
        self.columns = columns
        self.known = [{name: code for code, name in enumerate(c.categories)} for c in columns]
        # such files could not tell a missing value from one of that name
        self.plain = not any("?" in known or "" in known for known in self.known)
        self.n_rows = 0

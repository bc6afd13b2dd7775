"""Wording that messages share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def counted(n: int, what: str, many: str = "") -> str:
    """Write a number with a noun.

    >>> counted(1, "cell"), counted(1200, "cell"), counted(2, "class", "classes")
    ('1 cell', '1,200 cells', '2 classes')
    """
    return f"{n:,} {what if n == 1 else many or what + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or the known names, for an error message.

    Examples
    --------
    >>> did_you_mean("nystrom", ["nystroem", "rff"])
    "; did you mean 'nystroem'?"
    >>> did_you_mean("zzz", ["nystroem", "rff"])
    '; there are: nystroem, rff'
    """
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; there are: {shown}" if names else ""


def listed(names: Sequence[str], most: int = 8) -> str:
    """Write names for a message, the first ones of many."""
    shown = ", ".join(repr(name[:60]) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def last_line(text: str) -> str:
    r"""Return the last line of a traceback, or of another text, that is not empty.

    >>> last_line("Traceback:\n  ...\nValueError: no\n\n")
    'ValueError: no'
    """
    return text.strip().rpartition("\n")[2].strip()


def printable(text: str, most: int = 1000) -> str:
    """Replace characters that would move the cursor or colour the screen.

    At most `most` characters of a text from outside are kept.

    Examples
    --------
    >>> printable("wine" + chr(27) + "[31m")
    'wine�[31m'
    """
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text[:most])

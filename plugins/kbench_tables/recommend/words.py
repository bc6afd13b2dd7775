"""Messages about a user's own table, in the words of Python."""

from __future__ import annotations

import re

_ARGUMENTS = (
    *("target", "task", "measure", "proba", "feature-map", "learner", "time-limit", "explain"),
    *("ignore", "nominal", "keep", "date", "group", "order-by", "jobs", "store", "fresh"),
    *("delimiter", "decimal", "thousands", "encoding", "missing", "sheet"),
)
_VERBS = ("names", "is", "has", "are", "and", "or", "for", "sets", "to", "adds", "which")
_OPTION = re.compile(
    rf"--({'|'.join(_ARGUMENTS)})(?![\w-])"
    rf"(?: (?!(?:{'|'.join(_VERBS)})\b)(\$?'[^']*'|\"[^\"]*\"|[^\s;,:()\"']+))?"
)


def in_python(text: str) -> str:
    """Return a message about options of the command line with the arguments of `kbench.run`.

    >>> in_python("--order-by when tests on the last rows; --encoding names another one")
    "order_by='when' tests on the last rows; encoding names another one"
    >>> in_python("give a larger one, say --time-limit 120, or --date 'c=%d.%m.%Y'")
    "give a larger one, say time_limit=120, or date='c=%d.%m.%Y'"
    """
    return _OPTION.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    name, value = found[1].replace("-", "_"), found[2]
    if value is None:
        return name
    if value.startswith("$'"):  # an escape of the shell
        value = value[1:]
    quoted = value if value[0] in "'\"" or value.isdecimal() else repr(value)
    return f"{name}={quoted}"

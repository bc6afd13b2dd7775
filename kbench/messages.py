"""Wording that messages share."""

import difflib
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote


def plural(n: int, noun: str, many: str = "") -> str:
    """Write a number with a noun.

    >>> plural(1, "cell"), plural(1200, "cell"), plural(2, "class", "classes")
    ('1 cell', '1,200 cells', '2 classes')
    """
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


def option(name: str, value: object = None) -> str:
    """Name an option in a message, as Python and suite files write it.

    A command that has the option shows its flag instead: see `kbench.cli.echo.put_flags`.

    >>> option("keep"), option("time_limit", 120), option("drop", ["a", "b"])
    ('`keep`', '`time_limit=120`', "`drop=['a', 'b']`")
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{name}`" if value is None else f"`{name}={value!r}`"


def number(value: float) -> str:
    """Write a number with four digits, which may be in any unit.

    >>> number(24310.56), number(0.0123), number(-3), number(0), number(1e300)
    ('24,310', '0.01230', '-3.000', '0', '1e+300')
    """
    rounded = float(f"{value:.4g}")
    if not math.isfinite(rounded) or not rounded:
        return f"{rounded:g}"
    exponent = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, 3 - exponent)}f}" if -4 <= exponent < 9 else f"{rounded:.4g}"


def explain_shared_targets(feature_map: str) -> str:
    """Return why a map that uses the targets is not fitted once for all inner folds."""
    return (
        f"{feature_map} uses the targets, and refit_maps_in_inner_folds = false in [protocol] "
        "would show it those of the inner test rows; set refit_maps_in_inner_folds = true"
    )


def explain_missing(dataset: str, columns: Sequence[tuple[str, int]], n_missing: int) -> str:
    """Return why the missing values of a dataset, which some columns have, need a treatment."""
    shown = ", ".join(f"{name} ({count})" for name, count in columns[:5])
    more = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
    return (
        f"{dataset} has {plural(n_missing, 'missing value')} in {shown}{more}; "
        'set missing = "impute", "impute_with_indicators" or "drop_rows" in [protocol]'
    )


SHARED_CATEGORIES = (
    "columns of categories that are encoded by the targets need refit_maps_in_inner_folds = true: "
    "one encoding for all inner folds would have seen the targets of their test rows"
)
"""Why `refit_maps_in_inner_folds` must not be false for datasets with columns of categories."""


def similar(word: str, names: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for a message that lists the known names itself.

    Examples
    --------
    >>> similar("nystrom", ["nystroem", "rff"]), similar("zzz", ["nystroem", "rff"])
    ("; did you mean 'nystroem'?", '')
    """
    near = difflib.get_close_matches(word, sorted(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"``, or the known names, for an error message.

    Examples
    --------
    >>> did_you_mean("nystrom", ["nystroem", "rff"])
    "; did you mean 'nystroem'?"
    >>> did_you_mean("zzz", ["nystroem", "rff"])
    '; available: nystroem, rff'
    """
    names = sorted(set(allowed))
    if near := similar(word, names):
        return near
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; available: {shown}" if names else ""


def list_some(names: Sequence[str], most: int = 8) -> str:
    """Write names for a message, the first ones of many."""
    shown = ", ".join(repr(name[:60]) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def last_line(text: str) -> str:
    r"""Return the last line of a traceback, or of another text, that is not empty.

    >>> last_line("Traceback:\n  ...\nValueError: no\n\n")
    'ValueError: no'
    """
    return text.strip().rpartition("\n")[2].strip()


def printable(text: str, most: int | None = 1000) -> str:
    """Replace characters that would move the cursor, colour the screen or turn the line around.

    These are control characters, also those of bidirectional text, and halves of characters,
    which cannot be encoded. At most `most` characters of an untrusted string are kept.

    Examples
    --------
    >>> printable("wine" + chr(27) + "[31m")
    'wine�[31m'
    """
    text = text[:most]
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def printable_lines(text: str) -> str:
    r"""Make a string printable, and keep its lines and tabs.

    >>> printable_lines("a\tb\n" + chr(0x202E))
    'a\tb\n�'
    """
    if text.isprintable():
        return text
    return "".join(each if each in "\n\t" else printable(each) for each in text)


def printable_json(value: object, **options: Any) -> str:
    r"""Write JSON that can be shown: characters that are not printable are escaped.

    >>> print(printable_json({"naïve": "a" + chr(27) + chr(0x202E)}))
    {"naïve": "a\u001b\u202e"}
    """
    content = json.dumps(value, ensure_ascii=False, **options)
    if content.isprintable():
        return content
    # outside of its strings JSON has printable characters and line breaks only
    return "".join(
        sign if sign == "\n" or sign.isprintable() else json.dumps(sign)[1:-1] for sign in content
    )


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_QUERY = re.compile(r"[\w.%-]+=.*", re.DOTALL)
_NO_USER = re.compile(r"[^:@]*(?::\d*(?:/[^@]*)?)?", re.DOTALL)
_NAME = re.compile(r"[\w.%~+-]+")
_SECRET = re.compile(r"pass|pwd|secret|token|key|auth|cred|sig|odbc", re.IGNORECASE)
_MASK = "***"


def split_url(address: str) -> tuple[str, str, str, str]:
    """Split a URL into scheme, user info, the rest, and its query.

    The user info ends with the last @, so that it may have any characters, also those
    that must be quoted there.

    >>> split_url("postgresql://me:a/b@c@host/db?sslmode=require")
    ('postgresql', 'me:a/b@c', 'host/db', 'sslmode=require')
    """
    scheme, _, rest = address.partition("://")
    main, _, query = rest.partition("?")
    if "@" in query and not (_QUERY.fullmatch(query) and ("@" in main or _NO_USER.fullmatch(main))):
        user, _, tail = rest.rpartition("@")  # the question mark is part of a password
        main, _, query = tail.partition("?")
        return scheme, user, main, query
    user, _, main = main.rpartition("@")
    return scheme, user, main, query


def mask(text: str) -> str:
    """Hide what may be a secret in the URL that a string contains or ends with.

    The user name in a database URL is kept; in the URL of a server it may be a token.

    >>> mask("--store=postgresql://me:secret@host/db?password=x&sslmode=require")
    '--store=postgresql://me:***@host/db?password=***&sslmode=require'
    >>> mask("https://TOKEN@host/path")
    'https://***@host/path'
    """
    match = _SCHEME.search(text)
    if match is None or match[1].lower().startswith(("sqlite", "file")):
        return text
    before, address = text[: match.start()], text[match.start() :]
    scheme, user, rest, query = split_url(address)
    if user:
        name, colon, _ = user.partition(":")
        is_name = _NAME.fullmatch(name) and not scheme.lower().startswith("http")
        user = (f"{name}:{_MASK}@" if colon else f"{name}@") if is_name else f"{_MASK}@"
    if query:
        query = "?" + "&".join(map(_masked_pair, query.split("&")))
    return f"{before}{scheme}://{user}{rest}{query}"


def _masked_pair(pair: str) -> str:
    name, sign, _ = pair.partition("=")
    return f"{name}={_MASK}" if sign and _SECRET.search(unquote(name)) else pair


def format_memory(megabytes: float) -> str:
    """Write an amount of memory with two digits; 1 GiB is 1024 MiB.

    >>> [format_memory(n) for n in (41_984, 4096, 1536, 512, 2_200_000)]
    ['41 GiB', '4 GiB', '1.5 GiB', '512 MiB', '2,100 GiB']
    """
    if megabytes < 1024:
        return f"{_digits(megabytes, 3)} MiB"
    return f"{_digits(megabytes / 1024, 2)} GiB"


def format_seconds(seconds: float) -> str:
    """Write a time with two digits.

    >>> [format_seconds(s) for s in (0.123, 41.3, 640, 7300, 1e6)]
    ['0.12 s', '41 s', '11 min', '2 h', '280 h']
    """
    if seconds < 100:
        return f"{_digits(seconds, 2)} s"
    if seconds < 6000:
        return f"{_digits(seconds / 60, 2)} min"
    return f"{_digits(seconds / 3600, 2)} h"


def _digits(value: float, digits: int) -> str:
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
